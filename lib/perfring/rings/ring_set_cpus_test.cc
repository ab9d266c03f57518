// RingSet and the calls that it makes to the kernel: CPUs, the order of the calls, flushes.
// wakeups_test.cc tests the latency.

#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_set.h"
#include "perfring/testing/operator_new.h"
#include "perfring/wait/waiter.h"

namespace perfring {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::RingSetCpusTest;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(RingSetCpusTest, EachRingIsWatchedBeforeItsEntryIsFilled) {
  RingSet set = open();
  const int first = event_of(0);
  const int second = event_of(1);
  EXPECT_THAT(kernel_.calls,
              ElementsAre("info", of("open", first), of("enable", first, ", mapped"),
                          of("watch", first), "update", of("open", second),
                          of("enable", second, ", mapped"), of("watch", second), "update"));
  EXPECT_EQ(set.wait(), Woken::Report) << "so that what came before is read";
  EXPECT_EQ(set.rings(), 2U);
}

TEST_F(RingSetCpusTest, TheIndexOfAnEntryIsItsCpu) {
  online("1,3");
  RingSet set = open();
  EXPECT_THAT(kernel_.updates,
              ElementsAre(Pair(1, set.rings() != 0 ? event_of(1) : 0), Pair(3, event_of(3))));
  EXPECT_EQ(set.cpu(0), 1U);
  EXPECT_EQ(set.cpu(1), 3U);
  write(3, 7);
  set.drain(collected_);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(3, 7)));
}

TEST_F(RingSetCpusTest, AnOpenThatFailsEmptiesItsEntries) {
  RingSetOptions options = small();
  options.cpus = {1, 0, 1};
  EXPECT_FALSE(try_open(options).has_value()) << "one CPU is named twice";
  EXPECT_THAT(kernel_.updates, SizeIs(2));
  std::vector<std::string> deleted;
  std::ranges::copy_if(kernel_.calls, std::back_inserter(deleted),
                       [](const std::string& each) { return each.starts_with("delete"); });
  EXPECT_THAT(deleted, ElementsAre("delete 1", "delete 0"));
}

TEST_F(RingSetCpusTest, OnlyTheChosenCpusHaveRings) {
  RingSetOptions options = small();
  options.cpus = {1};
  RingSet set = open(options);
  EXPECT_THAT(kernel_.updates, SizeIs(1));
  EXPECT_TRUE(set.cpu_changed(0, true).has_value());
  EXPECT_EQ(set.rings(), 1U) << "0 is not wanted";
}

TEST_F(RingSetCpusTest, DestructionLeavesNothingButTheMapEntries) {
  std::vector<int> events;
  {
    RingSet set = open();
    events = {event_of(0), event_of(1)};
    calls();
  }
  EXPECT_THAT(kernel_.calls, SizeIs(2));
  for (const int event : events) {
    EXPECT_THAT(kernel_.calls, ::testing::Contains(of("disable", event, ", mapped")));
    EXPECT_FALSE(FakeKernel::is_open(event));
  }
  EXPECT_EQ(FakeKernel::mappings(), 0);
}

TEST_F(RingSetCpusTest, DestructionDisablesBothEventsWithLatency) {
  RingSetOptions options = small();
  options.latency = 10ms;
  std::vector<std::string> events;
  {
    RingSet set = open(options);
    for (const std::string& call : calls()) {
      if (call.starts_with("open ")) events.push_back(call.substr(5));
    }
  }
  EXPECT_THAT(events, SizeIs(4));
  for (const std::string& event : events) {
    EXPECT_THAT(kernel_.calls, ::testing::Contains(StartsWith("disable " + event + ","))) << event;
  }
}

TEST_F(RingSetCpusTest, AddingACpuTwiceIsRefused) {
  RingSet set = open();
  const auto again = set.add(1);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().explain(),
            "asked for: add of a ring on CPU 1\n"
            "the system said: File exists\n"
            "to change: add each ring once: this one has been added already");
  EXPECT_TRUE(set.add(2).has_value());
  write(2, 5);
  set.drain(collected_);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(2, 5)));
  EXPECT_EQ(set.poll(), Woken::Report);
}

TEST_F(RingSetCpusTest, NothingFailsOnceTheMapEntryIsFilled) {
  static const FakeKernel* watched = nullptr;
  static std::size_t updates_with_memory = 0;  // of map entries
  watched = &kernel_;
  RingSet set = open();
  for (const std::uint32_t cpu : {2U, 3U, 4U, 5U}) {
    updates_with_memory = kernel_.updates.size();
    testing::is_out_of_memory = []() noexcept {
      return watched->updates.size() > updates_with_memory;
    };
    bool added = false;
    EXPECT_NO_THROW(added = set.add(cpu).has_value());
    testing::is_out_of_memory = nullptr;
    EXPECT_TRUE(added);
  }
  write(5, 7);
  EXPECT_EQ(set.merge(KeyAt{}, {}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(5, 7)));
}

TEST_F(RingSetCpusTest, FailedAddLeavesNothingBehind) {
  RingSet set = open();
  kernel_.open_errno = EINVAL;
  EXPECT_EQ(set.add(70'000).error().message(), "perf_event_open failed: Invalid argument");
  EXPECT_THAT(set.add(70'000).error().explain(), HasSubstr("choose an online CPU"));
  kernel_.open_errno = 0;
  kernel_.update_errno = E2BIG;
  const auto beyond = set.add(9);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_THAT(beyond.error().explain(), HasSubstr("BPF_MAP_UPDATE_ELEM of index 9"));
  EXPECT_EQ(of("unwatch", event_of(9)), kernel_.calls.at(kernel_.calls.size() - 2))
      << "a forked child's copy would keep it in the epoll; the last call disables it";
  EXPECT_EQ(set.rings(), 2U);
  EXPECT_EQ(FakeKernel::mappings(), 2);
  kernel_.update_errno = 0;
  kernel_.enable_errno = EPERM;
  EXPECT_FALSE(set.add(9).has_value());
  kernel_.enable_errno = 0;
  EXPECT_TRUE(set.add(9).has_value());
}

TEST_F(RingSetCpusTest, FailedOpenLeavesNothingBehind) {
  kernel_.open_errno = EACCES;
  EXPECT_EQ(try_open().error().message(), "perf_event_open failed: Permission denied");
  kernel_.open_errno = 0;
  RingSetOptions options = small();
  options.page_count = 3;
  EXPECT_THAT(try_open(options).error().message(), HasSubstr("invalid page count 3"));
  online("none");
  EXPECT_THAT(try_open().error().message(), EndsWith("not a list of CPUs: 'none'"));
  online("0-1");
  kernel_.update_errno = E2BIG;
  EXPECT_FALSE(try_open().has_value());
  EXPECT_EQ(FakeKernel::mappings(), 0);
  auto array = PerfEventArray::from_fd(map_fd_).value();
  const PerfEventArray moved{std::move(array)};
  EXPECT_EQ(RingSet::open(array).error().io_error(), std::errc::bad_file_descriptor);
}

TEST_F(RingSetCpusTest, ACpuThatWentWhileItWasOpenedIsLeftOut) {
  kernel_.open_errno = ENODEV;
  EXPECT_EQ(open().rings(), 0U);
  RingSetOptions options = small();
  options.cpus = {0};
  EXPECT_FALSE(try_open(options).has_value()) << "one that was asked for";
}

TEST_F(RingSetCpusTest, ACpuThatGoesIsRead) {
  RingSet set = open();
  set.poll();
  write(1, 5);
  ASSERT_TRUE(set.cpu_changed(1, false).has_value());
  EXPECT_EQ(set.wait(), Woken::Report);
  set.drain(collected_);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 5)));
  EXPECT_TRUE(set.cpu_changed(77, false).has_value()) << "one that it does not have";
}

TEST_F(RingSetCpusTest, ACpuThatComesBackOutputsToTheSameRing) {
  RingSet set = open();
  const int before = event_of(1);
  set.cpu_changed(1, false).value();
  calls();
  ASSERT_TRUE(set.cpu_changed(1, true).has_value());
  const int after = event_of(1);
  EXPECT_NE(after, before);
  EXPECT_THAT(kernel_.calls, ElementsAre(of("open", after), of("set_output", after),
                                         of("enable", after, ", not mapped"), "update"));
  EXPECT_EQ(set.rings(), 2U);
  write(1, 6);  // to the old event's ring
  set.drain(collected_);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(1, 6)));
}

TEST_F(RingSetCpusTest, ACpuThatIsNewGetsARing) {
  RingSet set = open();
  set.poll();
  ASSERT_TRUE(set.cpu_changed(4, true).has_value());
  EXPECT_EQ(set.rings(), 3U);
  EXPECT_EQ(set.wait(), Woken::Report);
  write(4, 1);
  set.merge(KeyAt{}, {}, collected_);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(4, 1)));
}

TEST_F(RingSetCpusTest, ACpuThatCannotBeRevivedIsAnError) {
  RingSet set = open();
  set.cpu_changed(1, false).value();
  kernel_.output_errno = EINVAL;
  const auto revived = set.cpu_changed(1, true);
  ASSERT_FALSE(revived.has_value());
  EXPECT_EQ(revived.error().message(),
            "`ioctl(PERF_EVENT_IOC_SET_OUTPUT)` of the event on CPU 1 failed: Invalid argument");
  EXPECT_THAT(revived.error().explain(), HasSubstr("see ioctl(2)"));
  kernel_.output_errno = 0;
  kernel_.update_errno = EPERM;
  EXPECT_THAT(set.cpu_changed(1, true).error().explain(), HasSubstr("of index 1"));
  kernel_.update_errno = 0;
  EXPECT_TRUE(set.cpu_changed(1, true).has_value());
}

TEST_F(RingSetCpusTest, TheListOfCpusIsReadWhereNoUeventCame) {
  RingSetOptions options = small();
  options.follows_cpus = true;
  RingSet set = open(options);
  set.poll();
  online("0,2");
  set.poll();
  EXPECT_EQ(set.rings(), 2U) << "once a second is enough";
  EXPECT_EQ(set.wait(RingSet::Clock::now() + 1100ms), Woken::Timeout);
  EXPECT_EQ(set.rings(), 3U);
  EXPECT_EQ(set.cpu(2), 2U);
  calls();
  online("0-2");
  set.poll();
  set.wait(RingSet::Clock::now() + 1100ms);
  EXPECT_THAT(kernel_.calls, SizeIs(4)) << "CPU 1 was revived";
  const auto end = RingSet::Clock::now() + 1100ms;
  while (RingSet::Clock::now() < end) set.wait(end);
  EXPECT_THAT(kernel_.calls, SizeIs(4)) << "once";
  EXPECT_EQ(set.hotplug_error(), std::nullopt);
}

class RingSetUeventsTest : public RingSetCpusTest {
 protected:
  RingSet open_following() {
    RingSetOptions options = small();
    options.follows_cpus = true;
    RingSet set = open(options);
    set.poll();
    calls();
    return set;
  }
};

TEST_F(RingSetUeventsTest, FollowsOnlyKernelUevents) {
  RingSet set = open_following();
  kernel_.send_uevent("online@/devices/system/cpu/cpu4", 1234);
  set.poll();
  EXPECT_EQ(set.rings(), 2U) << "a process may send to the same group";
  kernel_.send_uevent("online@/devices/system/cpu/cpu4");
  set.poll();
  EXPECT_EQ(set.rings(), 3U);
  EXPECT_EQ(set.cpu(2), 4U);
}

// A CPU may have gone and come back, which leaves its event dead.
TEST_F(RingSetUeventsTest, DroppedUeventsReviveEveryCpuAtOnce) {
  RingSet set = open_following();
  const std::pair before{event_of(0), event_of(1)};
  kernel_.drop_uevents();
  set.poll();
  EXPECT_NE(event_of(0), before.first);
  EXPECT_NE(event_of(1), before.second);
  EXPECT_EQ(set.rings(), 2U);
}

TEST_F(RingSetUeventsTest, FailedOpenIsErrorUnlessCpuIsGone) {
  RingSet set = open_following();
  kernel_.open_errno = ENODEV;
  kernel_.send_uevent("online@/devices/system/cpu/cpu4");
  set.poll();
  EXPECT_EQ(set.hotplug_error(), std::nullopt);
  kernel_.open_errno = EACCES;
  kernel_.send_uevent("online@/devices/system/cpu/cpu4");
  set.poll();
  ASSERT_NE(set.hotplug_error(), std::nullopt);
  EXPECT_EQ(set.hotplug_error()->io_error(), std::errc::permission_denied);
}

TEST_F(RingSetCpusTest, CpuMissedForLackOfMemoryIsRetried) {
  RingSetOptions options = small();
  options.follows_cpus = true;
  RingSet set = open(options);
  set.poll();
  online("0-2");
  std::this_thread::sleep_for(1100ms);
  bool threw = false;
  testing::is_out_of_memory = []() noexcept { return true; };
  try {
    set.poll();
  } catch (const std::bad_alloc&) {
    threw = true;
  }
  testing::is_out_of_memory = nullptr;
  EXPECT_TRUE(threw);
  EXPECT_EQ(set.rings(), 2U);
  write(0, 7);
  set.drain(collected_);
  EXPECT_THAT(collected_.keys, ElementsAre(Pair(0, 7)));
  EXPECT_EQ(set.wait(RingSet::Clock::now() + 1100ms), Woken::Timeout);
  EXPECT_EQ(set.rings(), 3U);
}

TEST_F(RingSetCpusTest, ACompleteFlushWaitsForProgramsFirst) {
  RingSet set = open();
  write(0, 1);
  calls();
  EXPECT_EQ(set.flush(Flush::Visible, collected_), DrainEnd::Drained);
  EXPECT_THAT(calls(), IsEmpty());
  write(1, 2);
  const auto order = [&](std::uint32_t, const PerfEvent&) { kernel_.calls.push_back("event"); };
  EXPECT_EQ(set.flush(Flush::Complete, order), DrainEnd::Drained);
  EXPECT_THAT(calls(), ElementsAre("create 2", "create 12", "update", "event"))
      << "an array, and an array of maps";
  EXPECT_EQ(set.flush(Flush::Complete, KeyAt{}, collected_), DrainEnd::Drained);
  EXPECT_THAT(calls(), ElementsAre("update")) << "the maps are kept";
  kernel_.update_errno = EPERM;
  write(1, 2);
  EXPECT_EQ(set.flush(Flush::Complete, order), DrainEnd::Drained);
  EXPECT_THAT(calls(), ElementsAre("update", "membarrier", "event"));
  kernel_.barrier_errno = EINVAL;
  write(1, 2);
  const auto flushed = set.flush(Flush::Complete, collected_);
  ASSERT_FALSE(flushed.has_value());
  EXPECT_THAT(flushed.error().explain(),
              AllOf(HasSubstr("asked for: membarrier of all CPUs\n"), HasSubstr("nohz_full")));
  EXPECT_FALSE(set.flush(Flush::Complete, KeyAt{}, collected_).has_value());
  EXPECT_EQ(tail(1), 2 * kRecord) << "nothing was delivered";
}

TEST_F(RingSetCpusTest, AFlushUsesMembarrierIfNoMapMayBeCreated) {
  kernel_.create_errno = EPERM;
  RingSet set = open();
  calls();
  EXPECT_EQ(set.flush(Flush::Complete, collected_), DrainEnd::Drained);
  EXPECT_THAT(calls(), ElementsAre("create 2", "membarrier"));
}

// CPUs go and come back without uevents: only the list of online CPUs changes.
class RingSetListTest : public RingSetCpusTest {
 protected:
  RingSet following() {
    RingSetOptions options = small();  // waits may last 10 s
    options.follows_cpus = true;
    RingSet set = open(options);
    set.poll();
    set.drain(collected_);
    return set;
  }
  // Waits until the list has been read once more.
  static void wait_for_the_list(RingSet& set) {
    const auto end = RingSet::Clock::now() + 1100ms;
    while (RingSet::Clock::now() < end) set.wait(end);
  }
};

TEST_F(RingSetListTest, LongWaitStillReadsListEverySecond) {
  RingSet set = following();
  online("0,1,2");
  const auto start = RingSet::Clock::now();
  EXPECT_LE(set.next_deadline(), start + 1s);
  while (set.rings() == 2 && RingSet::Clock::now() - start < 9s) set.wait();
  EXPECT_EQ(set.rings(), 3U);
  EXPECT_LT(RingSet::Clock::now() - start, 5s);
}

TEST_F(RingSetListTest, FailedRevivalIsRetriedAfterOneSecond) {
  RingSet set = following();
  online("0");
  wait_for_the_list(set);
  kernel_.update_errno = ENOMEM;
  online("0-1");
  wait_for_the_list(set);
  EXPECT_NE(set.hotplug_error(), std::nullopt);
  kernel_.update_errno = 0;
  calls();
  wait_for_the_list(set);
  EXPECT_THAT(kernel_.calls, ::testing::Contains("update"));
  const int event = event_of(1);
  wait_for_the_list(set);
  EXPECT_EQ(event_of(1), event) << "once it is there, it stays";
}

}  // namespace
}  // namespace perfring
