// What comes out of a ring is what was written to it, whatever the ring, the records and the
// schedule are. Each property is followed by the faults that it finds.

#include <gtest/gtest.h>

#include <algorithm>

#include "proptests/faulty_consumers.h"
#include "proptests/faulty_kernels.h"
#include "proptests/plan.h"
#include "proptests/property.h"
#include "proptests/world.h"

namespace perfring::proptests {
namespace {

using testing::Seen;
using Core = Ring<WatchedMemory>;
using Kind = Action::Kind;

// One record, anywhere: its payload is in two slices exactly if it straddles the end.
template <class Consumer>
void wraps() {
  const Settings of = *settings();
  const auto length = *rc::gen::suchThat(
      lengths(), [of](std::uint32_t n) { return oracle::record_size(n) <= of.size() - 8; });
  World<WatchedCpu, Consumer> world{of};
  RC_ASSERT(world.output({Kind::Output, length}) == 0);
  world.drain({Kind::Drain});
  world.settle();
  expect_good(world);
  const std::uint64_t raw = oracle::raw_size(length);
  const std::uint64_t before_end = of.size() - (of.start + 12) % of.size();
  const std::vector<Seen> seen = world.take_seen();
  RC_ASSERT(seen.size() == 1U);
  RC_ASSERT(seen[0].head_size == std::min(raw, before_end));
}

TEST(Wraparound, AnyStartAnySize) {
  always(wraps<Core>, 2000);
}
TEST(Wraparound, FindsAConsumerThatForgetsTheTail) {
  EXPECT_TRUE(counterexample(wraps<ForgetsTheTail>));
}

// A whole run: everything written is delivered or told of as lost, once, in order and intact.
template <class Cpu, class Consumer>
void runs(const Plan& plan) {
  World<Cpu, Consumer> world{plan.settings};
  world.run(plan.actions);
  world.settle();
  expect_good(world);
}

template <class Cpu, class Consumer>
void delivers() {
  runs<Cpu, Consumer>(*plans(everything()));
}

TEST(Delivered, EqualsWrittenInOrder) {
  always(delivers<WatchedCpu, Core>, 1000);
}
TEST(Delivered, FindsAKernelThatPublishesEarly) {
  EXPECT_TRUE((counterexample(delivers<PublishesEarly, Core>)));
}
// At step 16 all bytes of the record are there: only who published it tells that it is too early.
TEST(Delivered, FindsAKernelThatShowsWhatItHasNotPublished) {
  World<ShowsTheUnpublished, Core> world{Settings{}};
  world.run({Kind::Output, 4});
  world.run({Kind::Output, 4, 1, 0, {{Kind::Drain, 0, 1, 16}}});
  ASSERT_TRUE(world.violation().has_value());
  EXPECT_TRUE(world.violation()->starts_with("no_invention: ")) << *world.violation();
}
TEST(Delivered, FindsAKernelThatOverwritesTheUnread) {
  EXPECT_TRUE((counterexample(delivers<OverwritesTheUnread, Core>)));
}
TEST(Delivered, FindsAKernelThatMisjudgesRoom) {
  EXPECT_TRUE((counterexample(delivers<MisjudgesRoom, Core>)));
}
TEST(Delivered, FindsAConsumerThatCommitsEarly) {
  EXPECT_TRUE((counterexample(delivers<WatchedCpu, CommitsEarly>)));
}

// Every position that is published or committed, by records of every size, is a multiple of 8.
template <class Cpu, class Consumer>
void stays_aligned() {
  Mix mix = everything();
  mix.payloads = rc::gen::weightedOneOf<std::uint32_t>({{30, lengths()}, {1, oversize_lengths()}});
  runs<Cpu, Consumer>(*plans(mix));
}

TEST(Positions, AreMultiplesOf8) {
  always(stays_aligned<WatchedCpu, Core>);
}
TEST(Positions, FindsAKernelThatPublishesOffTheGrid) {
  EXPECT_TRUE((counterexample(stays_aligned<PublishesOffTheGrid, Core>)));
}
TEST(Positions, FindsAConsumerThatCommitsOffTheGrid) {
  EXPECT_TRUE((counterexample(stays_aligned<WatchedCpu, Ring<CommitsOffTheGrid>>)));
}

// Runs that start shortly before 2^31, 2^32, 2^63 or 2^64 and go past it.
template <class Consumer>
void crosses() {
  Settings of = *settings();
  const auto base = *one_of<std::uint64_t>({1ULL << 32, 0, 1ULL << 31, 1ULL << 63, 12345ULL << 32});
  of.start = base - 8 * *rc::gen::inRange<std::uint64_t>(1, 500);
  World<WatchedCpu, Consumer> world{of};
  world.run(*actions({{Kind::Output, Kind::Output, Kind::Drain, Kind::Break}, 1}));
  while (oracle::after(base + 100, world.ledger().position()) && !world.violation()) {
    world.drain({Kind::Drain});
    world.output({Kind::Output, 36});
  }
  world.settle();
  expect_good(world);
}

TEST(Positions, MayCrossAnyPowerOf2) {
  always(crosses<Core>);
}
TEST(Positions, FindsAConsumerOf64BitPositions) {
  EXPECT_TRUE(counterexample(crosses<Believes>));
}

// Small rings, long bursts and pauses: of what is refused, each is told of once.
template <class Cpu, class Consumer>
void accounts() {
  Settings of = *settings();
  of.pages = 1;
  const auto list = *actions({{Kind::Output, Kind::Output, Kind::Output, Kind::Break, Kind::Drain,
                               Kind::Pause, Kind::Resume},
                              1,
                              rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(0, 1500))});
  World<Cpu, Consumer> world{of};
  world.run(list);
  world.pause(false);
  world.drain({Kind::Drain});
  const std::uint64_t refused = world.ledger().totals().refused;
  world.output({Kind::Output, 8});  // an empty ring has room for it, and for the LOST
  world.settle();
  expect_good(world);
  RC_ASSERT(world.ledger().unreported() == 0U);
  RC_ASSERT(world.received().lost == refused);
}

TEST(LostAccounting, IsExact) {
  always(accounts<WatchedCpu, Core>);
}
TEST(LostAccounting, FindsAKernelThatMiscounts) {
  EXPECT_TRUE((counterexample(accounts<Miscounts, Core>)));
}
TEST(LostAccounting, FindsAConsumerThatLosesLosses) {
  EXPECT_TRUE((counterexample(accounts<WatchedCpu, LosesLosses>)));
}

}  // namespace
}  // namespace perfring::proptests
