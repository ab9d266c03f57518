// WakeupChoice: when a timer takes the place of wakeups (W27).

#include "perfring/rings/wakeups.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace perfring {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr auto kEach = Wakeups::EachRecord;
constexpr auto kNone = Wakeups::None;

// A consumer that looks after so long, again and again, and finds so many events each time.
struct Looks {
  explicit Looks(nanoseconds latency) : choice{latency} {}

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

TEST(WakeupChoiceTest, ItBeginsWithAWakeupForEachRecord) {
  EXPECT_EQ(WakeupChoice{1ms}.wakeups(), kEach);
  EXPECT_EQ(WakeupChoice{1ms}.latency(), 1ms);
}

TEST(WakeupChoiceTest, OneRecordInEachLatencyIsWokenFor) {
  Looks looks{1ms};
  EXPECT_EQ(looks.look(10'000, 1ms, 1), 0);
  EXPECT_EQ(looks.choice.wakeups(), kEach);
}

TEST(WakeupChoiceTest, MoreThanOneRecordInEachLatencyIsWaitedForByTimer) {
  Looks looks{1ms};
  EXPECT_EQ(looks.look(20, 900us, 1), 1);
  EXPECT_EQ(looks.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, ABurstIsSeenBeforeItsWindowEnds) {
  Looks looks{1ms};
  looks.look(3, 10us, 1);
  EXPECT_EQ(looks.choice.wakeups(), kEach);
  looks.look(1, 10us, 14);
  EXPECT_EQ(looks.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, ABurstAfterAQuietTimeIsSeen) {
  Looks looks{1ms};
  looks.look(2, 1s, 1);
  EXPECT_EQ(looks.look(1, 10us, 20), 1);
  EXPECT_EQ(looks.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, TheTimerIsGivenUpBelowHalfTheRate) {
  Looks looks{1ms};
  looks.look(1, 1us, 100);
  ASSERT_EQ(looks.choice.wakeups(), kNone);
  EXPECT_EQ(looks.look(100, 2ms, 1), 0) << "one in each 2 latencies is half the rate";
  EXPECT_EQ(looks.look(40, 2100us, 1), 1);
  EXPECT_EQ(looks.choice.wakeups(), kEach);
}

TEST(WakeupChoiceTest, ATimerIsDueInALatencyAndSoAreTwoLooksAfterItIsGivenUp) {
  Looks looks{1ms};
  looks.look(1, 1us, 1);
  EXPECT_EQ(looks.choice.due(), WakeupChoice::Clock::time_point::max());
  looks.look(1, 1us, 100);
  EXPECT_EQ(looks.choice.due(), looks.now + 1ms);
  looks.look(1, 160ms, 0);
  ASSERT_EQ(looks.choice.wakeups(), kEach);
  EXPECT_EQ(looks.choice.due(), looks.now + 1ms);
  looks.look(1, 1ms, 0);
  EXPECT_EQ(looks.choice.due(), looks.now + 1ms);
  looks.look(1, 1ms, 0);
  EXPECT_EQ(looks.choice.due(), WakeupChoice::Clock::time_point::max());
}

TEST(WakeupChoiceTest, AWindowThatLastedLongerCountsAsSoMany) {
  Looks looks{1ms};
  looks.look(1, 1us, 100);
  looks.look(1, 160ms, 79);  // 10 windows, of which each had 7.9
  EXPECT_EQ(looks.choice.wakeups(), kEach);
  looks.look(1, 1us, 100);
  looks.look(1, 160ms, 80);
  EXPECT_EQ(looks.choice.wakeups(), kNone);
}

TEST(WakeupChoiceTest, ASteadyRateSwitchesOnceAtMost) {
  for (int each = 50; each <= 4000; each += 50) {
    Looks looks{1ms};
    EXPECT_LE(looks.look(5000, std::chrono::microseconds{each}, 1), 1) << each << " us";
    EXPECT_EQ(looks.choice.wakeups(), each < 1000 ? kNone : kEach) << each << " us";
  }
}

TEST(WakeupChoiceTest, ALatencyOf0OrLessIsAWakeupForEachRecord) {
  for (const nanoseconds latency : {0ns, nanoseconds{-5}, nanoseconds::min()}) {
    Looks looks{latency};
    EXPECT_EQ(looks.look(100, 1us, 1000), 0);
    EXPECT_EQ(looks.choice.wakeups(), kEach);
  }
}

TEST(WakeupChoiceTest, ALatencyOfYearsIsAnHour) {
  Looks looks{nanoseconds::max()};
  EXPECT_EQ(looks.choice.latency(), 1h);
  looks.look(17, 1s, 1);
  EXPECT_EQ(looks.choice.wakeups(), kNone);
  looks.look(1, 16h, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(looks.choice.wakeups(), kNone);
  looks.look(1, 16h, 0);
  EXPECT_EQ(looks.choice.wakeups(), kEach);
}

}  // namespace
}  // namespace perfring
