// RingSet's rounds, on a stand-in for the kernel.

#include "perfring/rings/ring_set.h"

#include <gmock/gmock.h>
#include <linux/perf_event.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>

#include "perfring/testing/fake_set.h"

namespace perfring {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::Collect;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using testing::key_of;
using ::testing::Le;
using ::testing::Pair;
using testing::RingSetTest;
using ::testing::SizeIs;
using Clock = RingSet::Clock;

TEST_F(RingSetTest, ADrainDeliversWhatEveryRingHolds) {
  RingSet set = open();
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, IsEmpty());
  write(0, 1);
  write(1, 2);
  write(1, 3);
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 2), Pair(1, 3), Pair(0, 1)));
  EXPECT_EQ(tail(0), kRecord);
  EXPECT_EQ(tail(1), 2 * kRecord);
  EXPECT_EQ(set.poll(), Woken::Report) << "the first";
  EXPECT_EQ(set.poll(), Woken::Timeout);
}

// S11: data_head goes back, as on kernels before 5.2 (K59).
TEST_F(RingSetTest, RingWithRewoundHeadIsTreatedAsEmpty) {
  RingSet set = open();
  set.poll();
  write(0, 1);
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  const std::uint64_t back = kRecord - 8;
  put(0, &back, 8, offsetof(perf_event_mmap_page, data_head));
  EXPECT_EQ(set.drain({.events = 0}, collected_), DrainEnd::Drained) << "nothing is there";
  write(1, 2);
  EXPECT_EQ(set.drain({.per_ring = 1}, collected_), DrainEnd::Drained);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 1), Pair(1, 2)));
  EXPECT_EQ(tail(0), kRecord);
  EXPECT_GT(set.next_deadline(), Clock::now() + 1s) << "nothing waits";
  write(0, 3);
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 1), Pair(1, 2), Pair(0, 3)));
}

TEST_F(RingSetTest, ARingsTurnEndsAfterPerRing) {
  RingSet set = open();
  for (std::uint64_t i = 0; i < 4; ++i) write(0, i);
  for (std::uint64_t i = 10; i < 12; ++i) write(1, i);
  EXPECT_EQ(set.drain({.per_ring = 1}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 10), Pair(0, 0), Pair(1, 11), Pair(0, 1),
                                           Pair(0, 2), Pair(0, 3)));
}

TEST_F(RingSetTest, ATurnGivesItsRoomBack) {
  RingSet set = open();
  for (std::uint64_t i = 0; i < 4; ++i) write(0, i);
  std::vector<std::uint64_t> tails;
  set.drain({.per_ring = 2}, [&](std::uint32_t, const PerfEvent&) { tails.push_back(tail(0)); });
  EXPECT_THAT(tails, ElementsAre(0, 0, 2 * kRecord, 2 * kRecord));
}

TEST_F(RingSetTest, APerRingOf0IsOne) {
  RingSet set = open();
  write(0, 1);
  write(1, 2);
  write(1, 3);
  EXPECT_EQ(set.drain({.per_ring = 0}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 2), Pair(0, 1), Pair(1, 3)));
}

TEST_F(RingSetTest, NextRoundContinuesAfterLimit) {
  RingSet set = open();
  set.poll();
  for (std::uint64_t i = 0; i < 3; ++i) write(0, i);
  for (std::uint64_t i = 10; i < 13; ++i) write(1, i);
  EXPECT_EQ(set.drain({.events = 2, .per_ring = 1}, collected_), DrainEnd::Limit);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 10), Pair(0, 0)));
  EXPECT_LE(set.next_deadline(), Clock::now());
  EXPECT_EQ(set.wait(), Woken::Report);
  EXPECT_EQ(set.drain({.events = 1, .per_ring = 1}, collected_), DrainEnd::Limit);
  EXPECT_EQ(set.drain({.events = 1, .per_ring = 1}, collected_), DrainEnd::Limit);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 10), Pair(0, 0), Pair(1, 11), Pair(0, 1)))
      << "not the same ring first";
  EXPECT_EQ(set.drain({.events = 2}, collected_), DrainEnd::Drained)
      << "exactly as many as there are";
  EXPECT_THAT(collected_.keys, SizeIs(6));
  EXPECT_EQ(set.drain({.events = 0}, collected_), DrainEnd::Drained) << "nothing is there";
  write(0, 5);
  EXPECT_EQ(set.drain({.events = 0}, collected_), DrainEnd::Limit);
  EXPECT_THAT(collected_.keys, SizeIs(6));
}

TEST_F(RingSetTest, ADeadlineThatHasPassedDeliversNothing) {
  RingSet set = open();
  set.poll();
  write(0, 1);
  EXPECT_EQ(set.drain({.deadline = Clock::now()}, collected_), DrainEnd::Deadline);
  EXPECT_EQ(set.merge(KeyAt{}, {.deadline = Clock::now()}, collected_), DrainEnd::Deadline);
  EXPECT_THAT(collected_.keys, IsEmpty());
  EXPECT_EQ(set.wait(), Woken::Report);
  EXPECT_EQ(set.drain({.deadline = Clock::now() + 1h}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(1));
}

TEST_F(RingSetTest, ADeadlineEndsARoundWithin64Events) {
  RingSet set = open();
  set.poll();
  for (std::uint64_t i = 0; i < 160; ++i) write(i % 2 == 0 ? 0 : 1, i);
  const auto slow = [&](std::uint32_t, const auto&) {
    const auto until = Clock::now() + 1ms;
    while (Clock::now() < until) {
    }
    ++calls_;
  };
  EXPECT_EQ(set.drain({.per_ring = 1000, .deadline = Clock::now() + 50ms}, slow),
            DrainEnd::Deadline);
  EXPECT_THAT(calls_, AllOf(Ge(1), Le(64)));
  EXPECT_EQ(tail(0) + tail(1), static_cast<std::uint64_t>(calls_) * kRecord);
  calls_ = 0;
  EXPECT_EQ(set.merge(KeyAt{}, {.deadline = Clock::now() + 50ms}, slow), DrainEnd::Deadline);
  EXPECT_EQ(calls_, 64);
  EXPECT_EQ(set.wait(), Woken::Report);
}

TEST_F(RingSetTest, TheCallbackStopsARound) {
  RingSet set = open();
  set.poll();
  for (std::uint64_t i = 0; i < 3; ++i) write(0, i);
  EXPECT_EQ(set.drain([](std::uint32_t, const PerfEvent& event) { return key_of(event) != 1; }),
            DrainEnd::Stopped);
  EXPECT_EQ(tail(0), 2 * kRecord) << "the event that it stopped on counts";
  EXPECT_EQ(set.wait(), Woken::Report);
  EXPECT_EQ(set.merge(KeyAt{}, {}, [](std::uint32_t, const Ordered&) { return false; }),
            DrainEnd::Stopped);
  EXPECT_EQ(tail(0), 3 * kRecord);
  EXPECT_EQ(set.wait(), Woken::Report);
  EXPECT_EQ(set.poll(), Woken::Timeout);
}

TEST_F(RingSetTest, ACallbackThatThrowsLosesNothing) {
  RingSet set = open();
  set.poll();
  for (std::uint64_t i = 0; i < 3; ++i) write(0, i);
  const auto throws = [](std::uint32_t, const auto&) { throw 7; };
  EXPECT_THROW(set.drain(throws), int);
  EXPECT_EQ(tail(0), kRecord);
  EXPECT_EQ(set.wait(), Woken::Report);
  EXPECT_THROW(set.merge(KeyAt{}, {}, throws), int);
  EXPECT_EQ(tail(0), 2 * kRecord);
  EXPECT_EQ(set.wait(), Woken::Report);
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained) << "the round has ended";
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 2)));
}

TEST_F(RingSetTest, FromACallbackEveryRoundIsNested) {
  RingSet set = open();
  for (std::uint64_t i = 0; i < 2; ++i) write(0, i);
  const auto nests = [&](std::uint32_t cpu, const auto& event) {
    Collect nested;
    EXPECT_EQ(set.drain(nested), DrainEnd::Nested);
    EXPECT_EQ(set.drain_fullest({}, nested), DrainEnd::Nested);
    EXPECT_EQ(set.merge(KeyAt{}, {}, nested), DrainEnd::Nested);
    EXPECT_EQ(set.flush(Flush::Complete, nested), DrainEnd::Nested);
    EXPECT_EQ(set.flush(Flush::Visible, KeyAt{}, nested), DrainEnd::Nested);
    EXPECT_THAT(nested.keys, IsEmpty());
    EXPECT_EQ(set.wait(), Woken::Timeout) << "and does not sleep";
    EXPECT_EQ(set.add(5).error().io_error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(set.cpu_changed(0, true).error().io_error(), std::errc::device_or_resource_busy);
    collected_(cpu, event);
  };
  calls();
  EXPECT_EQ(set.drain(nests), DrainEnd::Drained);
  write(1, 9);
  EXPECT_EQ(set.merge(KeyAt{}, {}, nests), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 0), Pair(0, 1), Pair(1, 9)));
  EXPECT_THAT(calls(), IsEmpty()) << "nor does it wait for programs";
}

TEST_F(RingSetTest, ARoundEndsWhileTheKernelKeepsWriting) {
  RingSet set = open();
  for (const bool fullest : {false, true}) {
    set.drain(collected_);
    for (std::uint64_t i = 0; i < 6; ++i) write(0, i);
    int events = 0;
    const auto writes = [&](std::uint32_t cpu, const PerfEvent&) {
      if (++events < 10'000) write(cpu, 0);
    };
    const Limits limits{.per_ring = 3};
    EXPECT_EQ(fullest ? set.drain_fullest(limits, writes) : set.drain(limits, writes),
              DrainEnd::Drained);
    EXPECT_EQ(events, 6) << "and none that came meanwhile, as the turn was over by then";
  }
}

TEST_F(RingSetTest, TheFullestRingHasTheTurn) {
  RingSet set = open();
  for (std::uint64_t i = 0; i < 5; ++i) write(0, i);
  for (std::uint64_t i = 10; i < 13; ++i) write(1, i);
  EXPECT_EQ(set.drain_fullest({.per_ring = 2}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 0), Pair(0, 1), Pair(0, 2), Pair(0, 3),
                                           Pair(1, 10), Pair(1, 11), Pair(0, 4), Pair(1, 12)));
  write(1, 1);
  write(0, 2);
  write(0, 3);
  EXPECT_EQ(set.drain_fullest({.events = 2}, collected_), DrainEnd::Limit);
  EXPECT_EQ(set.poll(), Woken::Report);
}

// Another consumer moves data_tail, between the rounds and within one.
TEST_F(RingSetTest, DataTailNeverGoesBackBehindAnotherConsumer) {
  RingSet set = open();
  for (std::uint64_t i = 0; i < 6; ++i) write(0, i);
  const auto consume = [&](std::uint64_t records) {
    const std::uint64_t to = records * kRecord;
    put(0, &to, 8, offsetof(perf_event_mmap_page, data_tail));
  };
  consume(2);
  EXPECT_EQ(set.drain({.events = 1}, collected_), DrainEnd::Limit);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 2)));
  EXPECT_EQ(set.merge(KeyAt{}, {},
                      [&](std::uint32_t, const Ordered& each) {
                        if (each.key == 3) consume(5);
                        return each.key < 3;
                      }),
            DrainEnd::Stopped);
  EXPECT_EQ(tail(0), 5 * kRecord);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 2), Pair(0, 5)));
}

// A round ends, whatever bytes a ring holds.
TEST_F(RingSetTest, AHostileRingIsReadBesideASoundOne) {
  RingSet set = open();
  for (const std::uint64_t head : {std::uint64_t{0xffffffffffffff00}, std::uint64_t{1 << 20},
                                   std::uint64_t{12}, std::uint64_t{1} << 40}) {
    put(0, &head, 8, offsetof(perf_event_mmap_page, data_head));
    write(1, head);
    collected_.keys.clear();
    EXPECT_EQ(set.drain({.per_ring = 1}, collected_), DrainEnd::Drained);
    EXPECT_THAT(collected_.keys, ::testing::Contains(Pair(1, head)));
    write(1, head);
    EXPECT_EQ(set.drain_fullest({.per_ring = 1}, collected_), DrainEnd::Drained);
    write(1, head);
    collected_.keys.clear();
    EXPECT_EQ(set.flush(Flush::Visible, KeyAt{}, collected_), DrainEnd::Drained);
    EXPECT_THAT(collected_.keys, ::testing::Contains(Pair(1, head)));
  }
}

static_assert(!std::is_copy_constructible_v<RingSet>);
static_assert(std::is_nothrow_move_constructible_v<RingSet>);

TEST_F(RingSetTest, AMovedFromSetHasNoRing) {
  RingSet first = open();
  write(0, 1);
  RingSet second{std::move(first)};
  EXPECT_EQ(first.rings(), 0U);  // NOLINT: moved from, on purpose
  EXPECT_EQ(first.drain(collected_), DrainEnd::Drained);
  EXPECT_EQ(first.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_EQ(first.wait(), Woken::Stop);
  EXPECT_EQ(first.fd(), -1);
  EXPECT_EQ(first.add(3).error().io_error(), std::errc::bad_file_descriptor);
  EXPECT_EQ(first.merge_counts(), MergeCounts{});
  EXPECT_THAT(collected_.keys, IsEmpty());
  EXPECT_EQ(second.drain(collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(1));
  first = std::move(second);
  write(1, 2);
  EXPECT_EQ(first.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(2));
}

// C3: a round delivers what a ring holds when the round begins, and at most one turn more.
TEST_F(RingSetTest, RoundGivesRingAtMostOneExtraTurn) {
  RingSet set = open();
  for (const std::uint64_t per_ring : {1U, 4U, 64U}) {
    set.drain(collected_);
    for (std::uint64_t i = 0; i < 6; ++i) write(0, i);
    std::uint64_t events = 0;
    const auto writes = [&](std::uint32_t cpu, const PerfEvent&) {
      if (++events < 1000) write(cpu, 0);
    };
    EXPECT_EQ(set.drain({.per_ring = per_ring}, writes), DrainEnd::Drained);
    EXPECT_GE(events, 6U) << per_ring;
    EXPECT_LE(events, 6 + per_ring) << per_ring;
  }
}

}  // namespace
}  // namespace perfring
