// Where a drain stops makes no difference to what is delivered, only to when.

#include <gtest/gtest.h>

#include "proptests/faulty_consumers.h"
#include "proptests/plan.h"
#include "proptests/property.h"
#include "proptests/world.h"

namespace perfring::proptests {
namespace {

using testing::Seen;
using Core = Ring<WatchedMemory>;
using Kind = Action::Kind;

// Break or throw at any event: so many events were delivered, and the next drain starts with the
// one after.
template <class Consumer>
void resumes() {
  const auto stops = *actions({{Kind::Break, Kind::Throw}});
  World<WatchedCpu, Consumer> world{*settings()};
  world.run(*actions({{Kind::Output, Kind::Output, Kind::Pause, Kind::Resume}, 1}));
  for (const Action& stop : stops) {
    const std::uint64_t events = world.drain(stop);
    expect_good(world);
    RC_ASSERT(events == stop.number || !world.readable());
  }
  world.settle();
  expect_good(world);
}

TEST(Resuming, AfterBreakAndThrowAtAnyEvent) {
  always(resumes<Core>);
}
TEST(Resuming, FindsAConsumerThatRepeatsTheBroken) {
  EXPECT_TRUE(counterexample(resumes<RepeatsTheBroken>));
}
TEST(Resuming, FindsAConsumerThatForgetsOnThrow) {
  EXPECT_TRUE(counterexample(resumes<ForgetsOnThrow>));
}

// The same ring, drained at once and drained in pieces.
template <class Consumer>
void splits() {
  const Settings of = *settings();
  const auto written = *actions({{Kind::Output, Kind::Output, Kind::Pause, Kind::Resume}, 1});
  const auto pieces = *rc::gen::container<std::vector<Action>>(rc::gen::build<Action>(
      rc::gen::set(&Action::kind, one_of<Kind>({Kind::Break, Kind::Throw})),
      rc::gen::set(&Action::number, rc::gen::inRange<std::uint32_t>(1, 12))));
  World whole{of};
  World<WatchedCpu, Consumer> split{of};
  whole.run(written);
  split.run(written);
  whole.drain({Kind::Drain});
  split.run(pieces);
  split.drain({Kind::Drain});
  expect_good(whole);
  RC_ASSERT(split.take_seen() == whole.take_seen());
  RC_ASSERT(split.ring().page().data_tail == whole.ring().page().data_tail);
}

TEST(Splitting, AnySplitGivesTheSameEvents) {
  always(splits<Core>);
}
TEST(Splitting, FindsAConsumerThatDropsTheRest) {
  EXPECT_TRUE(counterexample(splits<DropsTheRest>));
}

}  // namespace
}  // namespace perfring::proptests
