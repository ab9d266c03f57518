// The counts of a Group on the machine's own kernel, of tasks that run on several CPUs and start
// others. perf_stat_test.cc compares the counts of a command with perf stat's.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "harness/live/emitter.h"
#include "harness/live/event_testing.h"
#include "harness/live/live_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/sanitizers.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/os/fd.h"
#include "perfring/record/sample.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event {
namespace {

using live::must;
using testing::fault;
using testing::kFaults;
using testing::LiveEventTest;

// Returns two CPUs that this process may use, or fewer if there are fewer.
std::vector<std::uint32_t> two_cpus() {
  cpu_set_t all;
  std::vector<std::uint32_t> some;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return some;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE && some.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &all)) some.push_back(cpu);
  }
  return some;
}

constexpr std::uint64_t kEach = 2000;

// Faults on each CPU in turn.
void fault_on(const std::vector<std::uint32_t>& cpus) {
  for (const std::uint32_t cpu : cpus) {
    const live::OnCpu on_cpu{cpu};
    fault(static_cast<int>(kEach));
  }
}

// A process that waits for a signal to go, then faults on each CPU, in its first thread and in
// another. It has made a first wait when the constructor returns, so that the faults of its start
// are over.
class Faulting {
 public:
  explicit Faulting(const std::vector<std::uint32_t>& cpus)
      : child_{[this, cpus] {
          if (!receive(go_) || !send(ready_) || !receive(go_)) return 1;
          std::thread other{[&cpus] { fault_on(cpus); }};
          fault_on(cpus);
          other.join();
          return 0;
        }} {
    EXPECT_TRUE(send(go_) && receive(ready_));
  }
  pid_t id() const { return child_.id(); }
  void run_to_its_end() {
    ASSERT_TRUE(send(go_));
    ASSERT_EQ(child_.wait(), 0);
  }

 private:
  static bool send(const os::Fd& event) {
    const std::uint64_t one = 1;
    return ::write(event.get(), &one, sizeof one) == sizeof one;
  }
  static bool receive(const os::Fd& event) {
    std::uint64_t count = 0;
    return ::read(event.get(), &count, sizeof count) == sizeof count;
  }

  os::Fd go_{::eventfd(0, EFD_CLOEXEC)};
  os::Fd ready_{::eventfd(0, EFD_CLOEXEC)};
  ForkedChild child_;
};

// Software events never take turns on a counter, so their counts are not scaled.
void expect_unscaled(const Group& group, std::uint64_t least) {
  const auto counts = group.read();
  ASSERT_TRUE(counts) << counts.error().explain();
  ASSERT_EQ(counts->size(), 2U);
  EXPECT_GE(counts->front().value, least);
  EXPECT_LT(counts->front().value, least + least / 2) << "it counts more than there was";
  for (const Count& each : *counts) {
    EXPECT_GT(each.value, 0U);
    EXPECT_EQ(each.scaled(), each.value) << each.running << " of " << each.enabled << " ns";
  }
}

const std::vector<Event> kCounted{kFaults, software(PERF_COUNT_SW_TASK_CLOCK)};

// Each event was enabled for longer than it ran (R31).
TEST_F(LiveEventTest, ACountOfATaskOnTwoCpusIsNotScaled) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has page faults of its own";
  const auto cpus = two_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "it needs two CPUs";
  constexpr std::uint64_t kBoth = 2 * kEach;
  for (const bool children : {false, true}) {
    const auto with = [children](const Target& target) {
      return children ? target.and_children() : target;
    };
    // The counted process is a child, which starts a thread and a process.
    const std::string own = live::in_child([&]() -> std::string {
      for (const Target& target : {with(this_thread()), with(this_process())}) {
        const Group group = must(Group::open({.events = kCounted, .target = target}));
        std::thread{[&] { fault_on(cpus); }}.join();
        if (ForkedChild{[&] { return fault_on(cpus), 0; }}.wait() != 0) return "a child";
        fault_on(cpus);
        expect_unscaled(group, (children ? 3 : 1) * kBoth);
      }
      return ::testing::Test::HasFailure() ? "a failure, which is printed" : "";
    });
    EXPECT_EQ(own, "");
    Faulting other{cpus};
    const Group group =
        must(Group::open({.events = kCounted, .target = with(process(other.id()))}));
    other.run_to_its_end();
    expect_unscaled(group, (children ? 2 : 1) * kBoth);
  }
}

// Counts on each of the chosen CPUs, and on both together (R31).
TEST_F(LiveEventTest, ACountOfATaskOnChosenCpusIsNotScaled) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has page faults of its own";
  const auto cpus = two_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "it needs two CPUs";
  Faulting other{cpus};
  const Target target = process(other.id()).and_children();
  const Group first = must(Group::open({.events = kCounted, .target = target.on({cpus[0]})}));
  const Group second = must(Group::open({.events = kCounted, .target = target.on({cpus[1]})}));
  Group both = must(Group::open({.events = kCounted, .target = target.on(cpus)}));
  other.run_to_its_end();
  expect_unscaled(first, 2 * kEach);
  expect_unscaled(second, 2 * kEach);
  expect_unscaled(both, 4 * kEach);
  must(both.stop());
  expect_unscaled(both, 4 * kEach);
  // Read the counts while the group runs.
  const std::string own = live::in_child([&]() -> std::string {
    const Group group = must(Group::open({.events = kCounted, .target = this_thread().on(cpus)}));
    fault_on(cpus);
    for (int i = 0; i < 20; ++i) expect_unscaled(group, 2 * kEach);
    return ::testing::Test::HasFailure() ? "a failure, which is printed" : "";
  });
  EXPECT_EQ(own, "");
}

TEST_F(LiveEventTest, ACountOfACommandIsNotScaled) {
  for (const Target& target : {child({"true"}), child({"true"}).on(two_cpus())}) {
    Group group = must(Group::open({.events = kCounted, .target = target}));
    while (!group.child_status()) ::usleep(1000);
    const auto counts = group.read();
    ASSERT_TRUE(counts) << counts.error().explain();
    for (const Count& each : *counts) {
      EXPECT_GT(each.value, 0U);
      EXPECT_EQ(each.scaled(), each.value) << each.running << " of " << each.enabled << " ns";
    }
  }
}

// A system-wide event has the time of a CPU, and a cgroup's event that of the cgroup on the CPU.
TEST_F(LiveEventTest, ACountOfAllTasksIsNotScaled) {
  const Group group = must(Group::open({.events = kCounted, .target = event::system()}));
  fault(static_cast<int>(kEach));
  const auto counts = group.read();
  ASSERT_TRUE(counts) << counts.error().explain();
  for (const Count& each : *counts) EXPECT_EQ(each.scaled(), each.value);
  EXPECT_GE(counts->front().value, kEach);
}

// For an inherited event, the kernel also counts the losses of the events that inherited it (R31).
TEST_F(LiveEventTest, WhatChildrenLostIsLostOnce) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has page faults of its own";
  const auto cpus = two_cpus();
  Faulting other{cpus};
  Sampler sampler = must(Sampler::open(
      {.events = {kFaults}, .target = process(other.id()).and_children(), .page_count = 1}));
  const Group group =
      must(Group::open({.events = {kFaults}, .target = process(other.id()).and_children()}));
  other.run_to_its_end();
  std::uint64_t samples = 0;
  sampler.flush(
      [&](const Delivered& one) { samples += std::holds_alternative<record::Sample>(one.record); });
  if ((sampler.events()[0].attr.read_format & PERF_FORMAT_LOST) == 0) {
    GTEST_SKIP() << "before Linux 6.0, the kernel does not count what an event lost";
  }
  EXPECT_GT(sampler.lost(), 0U);
  EXPECT_EQ(samples + sampler.lost(), group.read()->front().value);
}

}  // namespace
}  // namespace perfring::event
