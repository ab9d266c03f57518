// RingSet's merges, on a stand-in for the kernel. ring_set_test.cc tests rounds without an order.

#include <gmock/gmock.h>
#include <linux/perf_event.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "perfring/merge/key_at.h"
#include "perfring/perf_event.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/testing/fake_set.h"
#include "perfring/wait/waiter.h"

namespace perfring {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Clock = RingSet::Clock;

class RingSetMergeTest : public testing::RingSetTest {};

TEST_F(RingSetMergeTest, AMergeIsInTheOrderOfTheKeys) {
  RingSet set = open();
  write(0, 10);
  write(0, 40);
  write(1, 20);
  write(1, 30);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 10), Pair(1, 20), Pair(1, 30), Pair(0, 40)));
  EXPECT_EQ(set.merge_counts().delivered, 4U);
  write(0, 50);
  write(1, 60);
  EXPECT_EQ(set.merge(KeyAt{}, {.events = 1}, collected_), DrainEnd::Limit);
  EXPECT_EQ(set.merge(KeyAt{}, {.events = 1}, collected_), DrainEnd::Drained);
}

TEST_F(RingSetMergeTest, ATimedSetIsMergedByTheTimeOfItsEvents) {
  RingSetOptions options = small();
  options.timed = true;
  RingSet set = open(options);
  EXPECT_EQ(kernel_.event.sample_type, PERF_SAMPLE_RAW | PERF_SAMPLE_TIME);
  EXPECT_EQ(kernel_.event.use_clockid, 1U);
  EXPECT_EQ(kernel_.event.clockid, CLOCK_MONOTONIC);
  write_timed(0, 10);
  write_timed(0, 30);
  write_timed(1, 20);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::WrongKey);
  EXPECT_EQ(set.merge(EventTime{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 10), Pair(1, 20), Pair(0, 30)));
  EXPECT_EQ(set.merge_counts().delivered, 3U);
  EXPECT_EQ(set.merge_slack(), options.merge.slack);
  write_timed(1, 40);
  std::size_t bytes = 0;
  set.drain(
      [&](std::uint32_t, const PerfEvent& event) { bytes += std::get<Sample>(event).size(); });
  EXPECT_EQ(bytes, 4U) << "a drain passes the time";
  write_timed(0, ~std::uint64_t{0});
  EXPECT_EQ(set.flush(Flush::Visible, EventTime{}, collected_).value(), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(4));
}

TEST_F(RingSetMergeTest, EventsWithoutATimeAreNotMergedByIt) {
  RingSet set = open();
  write(0, 10);
  EXPECT_EQ(set.merge(EventTime{}, {}, collected_), DrainEnd::WrongKey);
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(1));
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch() / 1ns);
}

TEST_F(RingSetMergeTest, YoungEventSetsDeadlineAfterSlack) {
  RingSetOptions options = small();
  options.merge.slack = 20'000'000;
  RingSet set = open(options);
  set.poll();
  write(0, now_ns());
  const auto before = Clock::now();
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  ASSERT_THAT(collected_.keys, IsEmpty());
  EXPECT_GE(set.next_deadline(), before + 20ms);
  EXPECT_LE(set.next_deadline(), Clock::now() + 20ms);
  EXPECT_EQ(set.wait(), Woken::Timeout);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(1));
  EXPECT_GT(set.next_deadline(), Clock::now() + 1s);
}

TEST_F(RingSetMergeTest, ASlackOfYearsHoldsEventsUntilTheyAreFlushed) {
  RingSetOptions options = small();
  options.merge.slack = std::numeric_limits<std::uint64_t>::max();
  RingSet set = open(options);
  set.poll();
  write(0, 7);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, IsEmpty());
  EXPECT_EQ(tail(0), 0U);
  EXPECT_GT(set.next_deadline(), Clock::now());
  EXPECT_EQ(set.flush(Flush::Visible, KeyAt{}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 7)));
}

TEST_F(RingSetMergeTest, ASlackOf0MergesWhatIsThere) {
  RingSetOptions options = small();
  options.merge.slack = 0;
  RingSet set = open(options);
  write(0, now_ns());
  write(1, 0);
  write(1, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  ASSERT_THAT(collected_.keys, SizeIs(Ge(2U)));
  EXPECT_EQ(collected_.keys[0], std::pair(1U, std::uint64_t{0}));
  EXPECT_EQ(set.flush(Flush::Visible, KeyAt{}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(3));
}

TEST_F(RingSetMergeTest, AMergeContinuesAfterADrainOfTheSameRings) {
  RingSetOptions options = small();
  options.merge.slack = std::numeric_limits<std::uint64_t>::max();
  RingSet set = open(options);
  for (std::uint64_t i = 0; i < 4; ++i) write(0, i);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained) << "it holds all of them";
  EXPECT_EQ(set.drain({.events = 2}, collected_), DrainEnd::Limit);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 0), Pair(0, 1)));
  EXPECT_EQ(set.flush(Flush::Visible, KeyAt{}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 0), Pair(0, 1), Pair(0, 2), Pair(0, 3)));
  EXPECT_EQ(tail(0), 4 * kRecord);
}

// The keys change to a clock other than CLOCK_MONOTONIC and back. All are delivered and counted.
TEST_F(RingSetMergeTest, KeysOfAnotherClockAreStillDelivered) {
  RingSet set = open();
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t years = now_ns() + 1'000'000'000'000'000'000;
  for (const std::uint64_t key : {std::uint64_t{0}, most, years, std::uint64_t{0}}) write(0, key);
  write(1, 5);
  for (int i = 0; i < 100 && collected_.keys.size() < 5; ++i) {
    set.wait();
    EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  }
  EXPECT_THAT(collected_.keys, SizeIs(5)) << "none stops its ring";
  EXPECT_EQ(set.merge_counts().ahead, 2U);
  write(1, 4);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_EQ(set.merge_counts().late, 1U);
  EXPECT_EQ(set.merge_counts().delivered, 6U);
}

}  // namespace
}  // namespace perfring
