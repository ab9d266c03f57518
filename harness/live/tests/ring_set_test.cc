// RingSet on the machine's own kernel: every CPU's records, waiting, the latency, and CPUs that go
// offline and come back.

#include "perfring/rings/ring_set.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "perfring/merge/key_at.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"
#include "perfring/wait/wakeups.h"

namespace perfring::live {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Clock = RingSet::Clock;

constexpr std::size_t kPayload = 52;

RingSetOptions with(std::size_t page_count, std::chrono::nanoseconds latency = {}) {
  RingSetOptions options;
  options.page_count = page_count;
  options.latency = latency;
  options.longest_wait = 10s;
  return options;
}

class LiveRingSetTest : public LiveTest {
 protected:
  RingSet open_set(const RingSetOptions& options = with(8)) {
    return must(RingSet::open(array(), options));
  }
  std::vector<std::uint32_t> cpus() const {
    std::vector<std::uint32_t> cpus{cpu()};
    if (other_cpu()) cpus.push_back(*other_cpu());
    return cpus;
  }
  void emit_number(std::uint32_t cpu, std::uint64_t number) {
    EXPECT_EQ(emitter().emit_many(cpu, kPayload, 1, number).accepted, 1U);
  }

  // The callbacks collect the numbers that are delivered, and the lost count.
  void take(std::uint32_t, const PerfEvent& event) {
    if (const auto* const sample = std::get_if<Sample>(&event)) {
      numbers_.push_back(sample->as<std::uint64_t>().value_or(0));
    } else if (const auto* const lost = std::get_if<Lost>(&event)) {
      lost_ += lost->count;
    } else {
      ADD_FAILURE() << "malformed";
    }
  }
  auto taker() {
    return [this](std::uint32_t cpu, const PerfEvent& event) { take(cpu, event); };
  }

  std::vector<std::uint64_t> numbers_;
  std::uint64_t lost_ = 0;
};

TEST_F(LiveRingSetTest, EachCpusRecordsAreDeliveredWithTheirCpu) {
  RingSet set = open_set();
  std::map<std::uint32_t, int> counts;
  for (int i = 0; i < 5; ++i) {
    for (const std::uint32_t cpu : cpus()) EXPECT_EQ(emitter().emit(cpu, kPayload), 0);
    EXPECT_EQ(set.wait(), Woken::Report);
    EXPECT_EQ(set.drain([&](std::uint32_t cpu, const PerfEvent&) { ++counts[cpu]; }),
              DrainEnd::Drained);
  }
  EXPECT_EQ(counts.size(), cpus().size());
  for (const auto& [cpu, count] : counts) EXPECT_EQ(count, 5) << cpu;
}

TEST_F(LiveRingSetTest, ARecordFromBeforeTheFirstWaitIsReported) {
  RingSet set = open_set();
  emit_number(cpu(), 7);
  EXPECT_EQ(set.wait(), Woken::Report);
  set.drain(taker());
  EXPECT_THAT(numbers_, ElementsAre(7));
}

TEST_F(LiveRingSetTest, MergedRecordsAreInTheirOrder) {
  RingSet set = open_set();
  for (std::uint64_t i = 0; i < 60; ++i) {
    emit_number(i % 3 == 0 ? cpus().front() : cpus().back(), i + 1);
  }
  std::vector<std::uint64_t> keys;
  EXPECT_EQ(set.merge(KeyAt{}, {},
                      [&](std::uint32_t, const Ordered& event) { keys.push_back(event.key); }),
            DrainEnd::Drained);
  EXPECT_EQ(keys.size(), 60U);
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(set.merge_counts().late, 0U);
}

// M8: keys by bpf_ktime_get_boot_ns() or TAI are ahead of the clock, and all keys are in a time
// namespace with a clock that is behind. Ring by ring, each round delivers all records, old and
// young.
TEST_F(LiveRingSetTest, KeysAheadOfTheClockHoldNothingUp) {
  constexpr std::uint64_t kOffset = 3'000'000'000;
  constexpr std::uint32_t kEach = 300;
  RingSet set = open_set();
  const auto key = [](const Sample& sample) { return KeyAt{}(sample) + kOffset; };
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const auto now = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    for (const std::uint32_t cpu : cpus()) {
      EXPECT_EQ(emitter().emit_many(cpu, kPayload, kEach, now).accepted, kEach);
    }
    std::uint64_t delivered = 0;
    EXPECT_EQ(set.merge(key, {}, [&](std::uint32_t, const Ordered&) { ++delivered; }),
              DrainEnd::Drained);
    EXPECT_EQ(delivered, kEach * cpus().size());
    EXPECT_EQ(set.merge_counts().ahead, round * kEach * cpus().size());
  }
  EXPECT_EQ(set.merge_counts().late, 0U);
}

TEST_F(LiveRingSetTest, EachAttemptIsDeliveredOrLost) {
  RingSet set = open_set(with(1));
  const auto too_many = static_cast<std::uint32_t>(capacity(os::page_size(), kPayload) + 37);
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  for (int round = 0; round < 20; ++round) {
    for (const std::uint32_t cpu : cpus()) {
      const Emitted emitted = emitter().emit_many(cpu, kPayload, too_many, 1);
      accepted += emitted.accepted;
      refused += emitted.refused;
    }
    round % 2 == 0 ? set.drain({.per_ring = 7}, taker()) : set.drain_fullest({}, taker());
  }
  for (const std::uint32_t cpu : cpus()) emit_number(cpu, 1);  // reports the losses
  set.drain(taker());
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(numbers_.size(), accepted + cpus().size());
  EXPECT_EQ(lost_, refused);
}

// K16. C5: ring by ring, although no Lost reports the losses after a ring's last record.
TEST_F(LiveRingSetTest, KernelCountsEachUndeliveredRecord) {
  RingSet set = open_set(with(1));
  if (!set.lost()) GTEST_SKIP() << "PERF_FORMAT_LOST is of Linux 6.0";
  EXPECT_EQ(set.lost(), 0U);
  const auto too_many = static_cast<std::uint32_t>(capacity(os::page_size(), kPayload) + 37);
  std::map<std::uint32_t, std::uint64_t> attempted;
  std::map<std::uint32_t, std::uint64_t> delivered;
  for (int round = 0; round < 5; ++round) {
    for (const std::uint32_t cpu : cpus()) {
      const Emitted emitted = emitter().emit_many(cpu, kPayload, too_many, 1);
      attempted[cpu] += emitted.accepted + emitted.refused;
    }
    set.drain([&](std::uint32_t cpu, const PerfEvent& event) {
      delivered[cpu] += std::holds_alternative<Sample>(event);
      take(cpu, event);
    });
  }
  std::uint64_t all = 0;
  for (std::size_t ring = 0; ring < set.rings(); ++ring) {
    const std::uint32_t cpu = set.cpu(ring);
    const std::uint64_t its = set.lost(ring).value();
    EXPECT_EQ(attempted[cpu], delivered[cpu] + its) << cpu;
    all += its;
  }
  EXPECT_EQ(set.lost(), all);
  EXPECT_GT(all, lost_) << "the last of them, of which no Lost has told";
}

TEST_F(LiveRingSetTest, AnotherLoopSeesEachRecord) {
  RingSet set = open_set();
  const os::Fd outer{::epoll_create1(EPOLL_CLOEXEC)};
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(outer.get(), EPOLL_CTL_ADD, set.fd(), &event), 0);
  ASSERT_LE(set.next_deadline(), Clock::now()) << "the loop asks at once";
  EXPECT_NE(set.poll(), Woken::Stop);
  set.drain(taker());
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_GT(set.next_deadline(), Clock::now());
    emit_number(i % 2 == 0 ? cpus().front() : cpus().back(), i);
    ASSERT_EQ(::epoll_wait(outer.get(), &event, 1, 10'000), 1) << i;
    EXPECT_NE(set.poll(), Woken::Stop);
    set.drain(taker());
    EXPECT_EQ(numbers_.size(), i + 1);
  }
}

TEST_F(LiveRingSetTest, StopEndsTheLoop) {
  RingSet set = open_set();
  std::thread stops{[&] {
    std::this_thread::sleep_for(5ms);
    set.stop();
  }};
  while (set.wait() != Woken::Stop) set.drain(taker());
  stops.join();
  emit_number(cpu(), 1);
  EXPECT_EQ(set.flush(Flush::Complete, taker()), DrainEnd::Drained);
  EXPECT_THAT(numbers_, ElementsAre(1));
}

// W28: while the mode changes all the time, every record is delivered, within the latency.
TEST_F(LiveRingSetTest, SwitchingWakeupsLeavesNoRecordStuck) {
  RingSet set = open_set(with(64, 500us));
  std::uint64_t sent = 0;
  int switches = 0;
  Clock::duration longest{};
  for (int burst = 0; burst < 60; ++burst) {
    const std::uint32_t on = burst % 2 == 0 ? cpus().front() : cpus().back();
    const std::uint32_t count = burst % 3 == 0 ? 40 : 1;
    sent += emitter().emit_many(on, kPayload, count).accepted;
    const auto start = Clock::now();
    // No deadline: wait() itself keeps the latency.
    while (numbers_.size() < sent) {
      ASSERT_LT(Clock::now() - start, 8s) << "stuck in burst " << burst;
      const Wakeups before = set.wakeups();
      set.wait();
      set.drain(taker());
      switches += set.wakeups() != before;
    }
    longest = std::max(longest, Clock::now() - start);
    if (burst % 6 == 5) {
      const auto until = Clock::now() + 30ms;
      while (Clock::now() < until) {
        const Wakeups before = set.wakeups();
        set.wait(until);
        set.drain(taker());
        switches += set.wakeups() != before;
      }
    }
  }
  EXPECT_EQ(numbers_.size(), sent);
  EXPECT_GE(switches, 10);
  EXPECT_LT(longest, 5s) << "no record waited for longest_wait";
}

// Returns this process's descriptors of perf events.
std::vector<int> perf_events() {
  std::vector<int> events;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(folder)) {
    char target[64]{};
    const std::string path = std::string{"/proc/self/fd/"} + entry->d_name;
    if (::readlink(path.c_str(), target, sizeof(target) - 1) > 0 &&
        std::strcmp(target, "anon_inode:[perf_event]") == 0) {
      events.push_back(std::atoi(entry->d_name));
    }
  }
  ::closedir(folder);
  return events;
}

// Disables the events instead of the CPU: outputs then fail in the same way (W38, W39).
class LiveHotplugTest : public LiveRingSetTest {
 protected:
  void disable_events() {
    for (const int event : perf_events()) {
      EXPECT_EQ(::ioctl(event, PERF_EVENT_IOC_DISABLE, 0), 0);
    }
    EXPECT_EQ(emit(kPayload), -EOPNOTSUPP);
  }
};

// W40
TEST_F(LiveHotplugTest, ACpuThatCameBackOutputsToItsOldRing) {
  for (const auto latency : {0ns, std::chrono::nanoseconds{1ms}}) {
    RingSet set = open_set(with(8, latency));
    set.poll();
    numbers_.clear();
    emit_number(cpu(), 1);
    must(set.cpu_changed(cpu(), false));
    disable_events();
    EXPECT_EQ(set.wait(), Woken::Report) << "a ring that still has records is reported again";
    set.drain(taker());
    EXPECT_THAT(numbers_, ElementsAre(1));
    must(set.cpu_changed(cpu(), true));
    set.poll();
    set.drain(taker());
    while (set.poll() == Woken::Report) {
    }
    emit_number(cpu(), 2);
    EXPECT_EQ(set.wait(), Woken::Report) << "the old registration reports it";
    set.drain(taker());
    EXPECT_THAT(numbers_, ElementsAre(1, 2));
    std::vector<std::uint64_t> keys;
    emit_number(cpu(), 3);
    set.merge(KeyAt{}, {}, [&](std::uint32_t, const Ordered& each) { keys.push_back(each.key); });
    EXPECT_THAT(keys, ElementsAre(3));
  }
}

// W41. On request, the kernel repeats its message that the CPU has come online.
TEST_F(LiveHotplugTest, AUeventRevivesItsCpu) {
  RingSet set = open_set();
  set.poll();
  set.drain(taker());
  disable_events();
  std::ofstream uevent{"/sys/devices/system/cpu/cpu" + std::to_string(cpu()) + "/uevent"};
  uevent << "online" << std::flush;
  if (!uevent) GTEST_SKIP() << "the kernel sends no uevent when asked to";
  const auto start = Clock::now();
  while (emit(kPayload) != 0 && Clock::now() - start < 5s) set.wait(Clock::now() + 100ms);
  set.drain(taker());
  EXPECT_EQ(numbers_.size(), 1U);
  EXPECT_EQ(set.hotplug_error(), std::nullopt);
}

// W38
TEST_F(LiveHotplugTest, CpuDeliversAgainAfterGoingOffline) {
  if (std::getenv("PERFRING_OFFLINE_CPU") == nullptr) {
    GTEST_SKIP() << "PERFRING_OFFLINE_CPU is not set: it takes a CPU offline, which stops others";
  }
  if (!other_cpu()) GTEST_SKIP() << "one CPU";
  const std::string file = "/sys/devices/system/cpu/cpu" + std::to_string(*other_cpu()) + "/online";
  const auto switch_to = [&](const char* to) {
    std::ofstream online{file};
    online << to << std::flush;
    return static_cast<bool>(online);
  };
  RingSet set = open_set();
  emit_number(*other_cpu(), 1);
  if (!switch_to("0")) GTEST_SKIP() << file << " cannot be written";
  set.wait();
  set.drain(taker());
  EXPECT_THAT(numbers_, ElementsAre(1));
  ASSERT_TRUE(switch_to("1"));
  const auto start = Clock::now();
  while (emitter().emit_many(*other_cpu(), kPayload, 1, 2).accepted != 1 &&
         Clock::now() - start < 5s) {
    set.wait(Clock::now() + 10ms);
  }
  set.drain(taker());
  EXPECT_THAT(numbers_, ElementsAre(1, 2));
}

}  // namespace
}  // namespace perfring::live
