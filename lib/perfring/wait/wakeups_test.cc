// WakeupChoice: when a timer replaces wakeups (W27). And a RingSet with a latency, which uses it.

#include "perfring/wait/wakeups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "perfring/merge/key_at.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/testing/fake_set.h"
#include "perfring/wait/waiter.h"

namespace perfring {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

class RingSetLatencyTest : public testing::RingSetCpusTest {};

constexpr auto kEach = Wakeups::EachRecord;
constexpr auto kNone = Wakeups::None;

// A consumer that reads at fixed intervals and finds the same number of events each time.
struct WakeupConsumer {
  explicit WakeupConsumer(nanoseconds latency) : choice{latency} {}

  // Returns how often the choice changed.
  int look(int times, nanoseconds apart, std::uint64_t events) {
    int changes = 0;
    for (int i = 0; i < times; ++i) {
      now += apart;
      const Wakeups before = choice.wakeups();
      changes += choice.looked(events, now) != before;
    }
    return changes;
  }

  WakeupChoice choice;
  WakeupChoice::Clock::time_point now{1h};
};

TEST(WakeupChoiceTest, BeginsWithAWakeupForEachRecord) {
  EXPECT_EQ(WakeupChoice{1ms}.wakeups(), kEach);
  EXPECT_EQ(WakeupChoice{1ms}.latency(), 1ms);
}

TEST(WakeupChoiceTest, OneRecordInEachLatencyIsWokenFor) {
  WakeupConsumer consumer{1ms};
  EXPECT_EQ(consumer.look(10'000, 1ms, 1), 0);
  EXPECT_EQ(consumer.choice.wakeups(), kEach);
}

TEST(WakeupChoiceTest, MoreThanOneRecordPerLatencyUsesTimer) {
  WakeupConsumer consumer{1ms};
  EXPECT_EQ(consumer.look(20, 900us, 1), 1);
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, ABurstIsDetectedBeforeItsWindowEnds) {
  WakeupConsumer consumer{1ms};
  consumer.look(3, 10us, 1);
  EXPECT_EQ(consumer.choice.wakeups(), kEach);
  consumer.look(1, 10us, 14);
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, ABurstAfterAQuietTimeIsDetected) {
  WakeupConsumer consumer{1ms};
  consumer.look(2, 1s, 1);
  EXPECT_EQ(consumer.look(1, 10us, 20), 1);
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, EventsOfLookEndingWindowCountInNext) {
  WakeupConsumer consumer{1ms};
  consumer.look(1, 1s, 10);
  EXPECT_EQ(consumer.look(1, 17ms, 10), 0);
  EXPECT_EQ(consumer.look(1, 10us, 6), 0) << "16 in all are one in each latency";
  EXPECT_EQ(consumer.look(1, 10us, 1), 1);
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, TheTimerIsGivenUpBelowHalfTheRate) {
  WakeupConsumer consumer{1ms};
  consumer.look(1, 1us, 100);
  ASSERT_EQ(consumer.choice.wakeups(), kNone);
  EXPECT_EQ(consumer.look(100, 2ms, 1), 0) << "one in each 2 latencies is half the rate";
  EXPECT_EQ(consumer.look(40, 2100us, 1), 1);
  EXPECT_EQ(consumer.choice.wakeups(), kEach);
}

TEST(WakeupChoiceTest, TimerStaysDueTwoLooksAfterItIsGivenUp) {
  WakeupConsumer consumer{1ms};
  consumer.look(1, 1us, 1);
  EXPECT_EQ(consumer.choice.due(), WakeupChoice::Clock::time_point::max());
  consumer.look(1, 1us, 100);
  EXPECT_EQ(consumer.choice.due(), consumer.now + 1ms);
  consumer.look(1, 160ms, 0);
  ASSERT_EQ(consumer.choice.wakeups(), kEach);
  EXPECT_EQ(consumer.choice.due(), consumer.now + 1ms);
  consumer.look(1, 1ms, 0);
  EXPECT_EQ(consumer.choice.due(), consumer.now + 1ms);
  consumer.look(1, 1ms, 0);
  EXPECT_EQ(consumer.choice.due(), WakeupChoice::Clock::time_point::max());
}

TEST(WakeupChoiceTest, AWindowThatLastedLongerCountsAsSoMany) {
  WakeupConsumer consumer{1ms};
  consumer.look(1, 1us, 100);
  consumer.look(1, 160ms, 79);  // 10 windows with 7.9 events each
  EXPECT_EQ(consumer.choice.wakeups(), kEach);
  consumer.look(1, 1us, 100);
  consumer.look(1, 160ms, 80);
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, ASteadyRateSwitchesOnceAtMost) {
  for (int each = 50; each <= 4000; each += 50) {
    WakeupConsumer consumer{1ms};
    EXPECT_LE(consumer.look(5000, std::chrono::microseconds{each}, 1), 1) << each << " us";
    EXPECT_EQ(consumer.choice.wakeups(), each < 1000 ? kNone : kEach) << each << " us";
  }
}

TEST(WakeupChoiceTest, ALatencyOf0OrLessIsAWakeupForEachRecord) {
  for (const nanoseconds latency : {0ns, nanoseconds{-5}, nanoseconds::min()}) {
    WakeupConsumer consumer{latency};
    EXPECT_EQ(consumer.look(100, 1us, 1000), 0);
    EXPECT_EQ(consumer.choice.wakeups(), kEach);
  }
}

TEST(WakeupChoiceTest, ALatencyOfYearsIsAnHour) {
  WakeupConsumer consumer{nanoseconds::max()};
  EXPECT_EQ(consumer.choice.latency(), 1h);
  consumer.look(17, 1s, 1);
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
  consumer.look(1, 16h, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(consumer.choice.wakeups(), kNone);
  consumer.look(1, 16h, 0);
  EXPECT_EQ(consumer.choice.wakeups(), kEach);
}

RingSetOptions within(std::chrono::nanoseconds latency) {
  RingSetOptions options;
  options.page_count = 1;
  options.follows_cpus = false;
  options.latency = latency;
  options.longest_wait = 10s;
  options.wakeup_watermark = 512;
  return options;
}

TEST_F(RingSetLatencyTest, WithALatencyARingHasAnEventThatWakesNobody) {
  RingSet set = open(within(10ms));
  EXPECT_THAT(kernel_.updates, SizeIs(2));
  EXPECT_EQ(kernel_.event.watermark, 1U) << "the last event that was opened";
  EXPECT_EQ(kernel_.events.front().watermark, 0U) << "each record wakes, whatever is asked for";
  EXPECT_EQ(set.wakeups(), Wakeups::EachRecord);
  set.poll();
  set.drain(collected_);
  EXPECT_GT(set.next_deadline(), RingSet::Clock::now() + 5s) << "a wakeup will come";
}

TEST_F(RingSetLatencyTest, ALatencyOf0OrLessWakesForEachRecord) {
  for (const auto latency : {0ns, std::chrono::nanoseconds::min()}) {
    RingSet set = open(within(latency));
    EXPECT_EQ(kernel_.event.wakeup_watermark, 512U);
    for (std::uint64_t i = 0; i < 100; ++i) write(0, i);
    set.poll();
    set.drain(collected_);
    EXPECT_EQ(set.wakeups(), Wakeups::EachRecord);
    EXPECT_GT(set.next_deadline(), RingSet::Clock::now() + 5s);
    heads_.clear();
    kernel_.updates.clear();
  }
}

TEST_F(RingSetLatencyTest, ALatencyOfYearsIsAnHour) {
  RingSet set = open(within(std::chrono::nanoseconds::max()));
  for (std::uint64_t i = 0; i < 100; ++i) write(0, i);
  set.poll();
  set.drain(collected_);
  EXPECT_EQ(set.wakeups(), Wakeups::None);
  EXPECT_LE(set.next_deadline(), RingSet::Clock::now() + 10s) << "the longest wait";
}

TEST_F(RingSetLatencyTest, ManyRecordsAreWaitedForByTimer) {
  RingSet set = open(within(10ms));
  set.poll();
  const int loud = event_of(0);
  for (std::uint64_t i = 0; i < 100; ++i) write(0, i);
  kernel_.updates.clear();
  const auto began = RingSet::Clock::now();
  set.drain(collected_);
  EXPECT_EQ(set.wakeups(), Wakeups::None);
  ASSERT_THAT(kernel_.updates, SizeIs(2));
  EXPECT_NE(event_of(0), loud);
  EXPECT_GE(set.next_deadline(), began + 10ms);
  EXPECT_LE(set.next_deadline(), RingSet::Clock::now() + 10ms);
  EXPECT_EQ(set.wait(), Woken::Timeout);
  EXPECT_LT(RingSet::Clock::now(), began + 5s);
}

TEST_F(RingSetLatencyTest, TheEntryOfACpuThatIsGoneStays) {
  RingSet set = open(within(10ms));
  set.poll();
  set.cpu_changed(1, false).value();
  for (std::uint64_t i = 0; i < 100; ++i) write(0, i);
  kernel_.updates.clear();
  set.drain(collected_);
  EXPECT_EQ(set.wakeups(), Wakeups::None);
  EXPECT_THAT(kernel_.updates, ElementsAre(Pair(0, ::testing::_)));
}

TEST_F(RingSetLatencyTest, ASlackDoesNotPutOffTheLatencysRound) {
  RingSetOptions options = within(10ms);
  options.merge.slack = 60'000'000'000;
  RingSet set = open(options);
  set.poll();
  for (std::uint64_t i = 0; i < 100; ++i) write(0, i);
  set.drain(collected_);
  write(0, static_cast<std::uint64_t>(RingSet::Clock::now().time_since_epoch() / 1ns));
  const auto before = RingSet::Clock::now();
  set.merge(KeyAt{}, {}, collected_);
  ASSERT_THAT(collected_.keys, SizeIs(100)) << "it holds events that are too young";
  EXPECT_GE(set.next_deadline(), before);
  EXPECT_LE(set.next_deadline(), RingSet::Clock::now() + 10ms);
}

TEST_F(RingSetLatencyTest, TwoTimedRoundsFollowReturnToWakeups) {
  RingSet set = open(within(1ms));
  set.poll();
  const int loud = event_of(0);
  for (std::uint64_t i = 0; i < 100; ++i) write(0, i);
  set.drain(collected_);
  ASSERT_EQ(set.wakeups(), Wakeups::None);
  for (int i = 0; i < 1000 && set.wakeups() == Wakeups::None; ++i) {
    EXPECT_EQ(set.wait(), Woken::Timeout);
    set.drain(collected_);
  }
  ASSERT_EQ(set.wakeups(), Wakeups::EachRecord);
  EXPECT_EQ(event_of(0), loud);
  // A program that had fetched the quiet event may output after the last drain.
  EXPECT_LT(set.next_deadline(), RingSet::Clock::now() + 1ms);
  EXPECT_EQ(set.wait(), Woken::Timeout);
  set.drain(collected_);
  EXPECT_LT(set.next_deadline(), RingSet::Clock::now() + 1ms);
  EXPECT_EQ(set.wait(), Woken::Timeout);
  set.drain(collected_);
  EXPECT_GT(set.next_deadline(), RingSet::Clock::now() + 5s);
}

TEST_F(RingSetLatencyTest, ARevivedCpuHasBothEventsAgain) {
  RingSet set = open(within(10ms));
  set.cpu_changed(1, false).value();
  calls();
  ASSERT_TRUE(set.cpu_changed(1, true).has_value());
  int opened = 0;
  for (const std::string& call : calls()) opened += call.starts_with("set_output");
  EXPECT_EQ(opened, 2);
}

TEST(WakeupChoiceTest, ATimeThatNoClockHasIsTheNextThatOneMayHave) {
  constexpr auto kLast = WakeupChoice::Clock::time_point::max();
  constexpr auto kFirst = WakeupChoice::Clock::time_point::min();
  WakeupChoice choice{1ms};
  EXPECT_EQ(choice.looked(1, kFirst), kEach);
  EXPECT_EQ(choice.looked(17, kLast), kEach) << "many windows later: one event in each, at most";
  EXPECT_EQ(choice.looked(17, kLast), kNone);
  EXPECT_GT(choice.due(), WakeupChoice::Clock::time_point{} + 24h * 36500);
  EXPECT_LT(choice.due(), kLast);
  EXPECT_EQ(choice.looked(0, kFirst), kNone) << "no time has passed";
  EXPECT_EQ(choice.due(), WakeupChoice::Clock::time_point{} + 1ms);
}

}  // namespace
}  // namespace perfring
