// The counts of a Group and their times, on a stand-in for the kernel.
// harness/live/tests/event_group_test.cc tests them on a real one.

#include "perfring/sampler/group.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using perfring::testing::FakeKernel;
using testing::FakeSystem;
using testing::kFaults;
using testing::kSwitch;

// A kernel with one task, which has run on CPUs 0 and 1. read(2) of its events returns what R31
// says: an event for the task is enabled while the task runs anywhere, and runs on the event's own
// CPU only.
class RunningTask final : public System {
 public:
  static constexpr std::array<std::uint64_t, 3> kRan{300, 600, 0};  // ns
  static constexpr std::uint64_t kEach = 1000;                      // events per ns

  FakeSystem machine;
  std::uint64_t turns = 1;  // events other than software events run for this fraction of the time
  std::vector<OpenArgs> opened_args;  // those that opened
  std::vector<int> files;

  int open(OpenArgs& args) override {
    const int refused = machine.open(args);
    if (refused < 0) return refused;
    ::close(refused);
    const int file = ::memfd_create("perfring_running_task", MFD_CLOEXEC);
    opened_args.push_back(args);
    files.push_back(file);
    const bool is_of_a_task = args.pid != -1 && (args.flags & PERF_FLAG_PID_CGROUP) == 0;
    std::uint64_t enabled = 0;
    std::uint64_t running = 0;
    for (std::size_t cpu = 0; cpu < kRan.size(); ++cpu) {
      const bool is_its = args.cpu < 0 || static_cast<std::size_t>(args.cpu) == cpu;
      if (is_its || is_of_a_task) enabled += kRan[cpu];
      if (is_its) running += kRan[cpu];
    }
    if (args.attr.type != PERF_TYPE_SOFTWARE) running /= turns;
    if ((args.attr.read_format & PERF_FORMAT_GROUP) == 0) {
      write(file, {0, running}, 0);
    } else if (args.group_fd < 0) {
      write(file, {1, enabled, running, kEach * running, 7}, 0);
    } else {
      std::uint64_t members = 0;
      EXPECT_EQ(::pread(args.group_fd, &members, sizeof members, 0), 8);
      write(args.group_fd, {kEach * running, 8}, 8 * (3 + 2 * members));
      write(args.group_fd, {members + 1}, 0);
    }
    return file;
  }
  std::expected<std::string, std::error_code> read(const std::string& path) override {
    return machine.read(path);
  }
  std::expected<std::vector<std::string>, std::error_code> list(const std::string& path) override {
    return machine.list(path);
  }
  std::expected<FileKind, std::error_code> look_at(const std::string& path) override {
    return machine.look_at(path);
  }

 private:
  static void write(int file, const std::vector<std::uint64_t>& words, std::uint64_t at) {
    const std::size_t size = words.size() * sizeof words[0];
    EXPECT_EQ(::pwrite(file, words.data(), size, static_cast<off_t>(at)),
              static_cast<ssize_t>(size));
  }
};

class GroupTest : public ::testing::Test {
 protected:
  // Lists all events opened: "task@CPU", with "i" if inherited.
  std::string opened() const {
    std::string all;
    for (const OpenArgs& each : kernel_.opened_args) {
      all += (each.attr.config == PERF_COUNT_SW_DUMMY ? "clock " : "") + std::to_string(each.pid) +
             "@" + std::to_string(each.cpu) + (each.attr.inherit != 0 ? "i, " : ", ");
    }
    return all;
  }
  Group open(const Request& request, bool starts = false) {
    kernel_.opened_args.clear();
    kernel_.files.clear();
    calls_.calls.clear();
    return Group::open(request, starts, kernel_).value();
  }

  FakeKernel calls_;
  RunningTask kernel_;
};

// Each of two threads has its events; without on(), they are opened as perf stat opens them.
TEST_F(GroupTest, ItsEventsFollowATaskToEachCpu) {
  const auto of = [this](const Target& target) {
    const Group group = open({.events = {kFaults}, .target = target});
    std::string all = opened();
    const std::string child = std::to_string(group.child());
    for (auto at = all.find(child + "@"); group.child() != 0 && at != all.npos;
         at = all.find(child + "@")) {
      all.replace(at, child.size(), "child");
    }
    return all;
  };
  EXPECT_EQ(of(this_thread().and_children()), "0@-1i, ");
  EXPECT_EQ(of(this_process()), "100@-1, 101@-1, ");
  EXPECT_EQ(of(this_process().and_children()), "100@-1i, 101@-1i, ");
  EXPECT_EQ(of(child({"true"})), "child@-1i, ");
  EXPECT_EQ(of(event::system()), "-1@0, -1@1, -1@2, ");
  EXPECT_EQ(of(this_thread().on({1})), "0@1, clock 0@1, ");
  of(cgroup("/tmp").on({0, 1}));  // the stand-in accepts any folder as a cgroup
  EXPECT_EQ(kernel_.opened_args.size(), 2U) << "it has no clock: its own time is right";
  EXPECT_EQ(of(child({"true"}).on({0, 1})), "child@0i, child@1i, clock child@0i, clock child@1i, ");
}

TEST_F(GroupTest, ACountWithoutTurnsIsItsOwnScaledCount) {
  constexpr std::uint64_t kAll = 900 * RunningTask::kEach;
  struct Case {
    Target target;
    std::uint64_t value;
  };
  const std::vector<Case> cases{
      {this_thread(), kAll},
      {this_thread().and_children(), kAll},
      {this_process(), 2 * kAll},  // with two threads
      {this_process().and_children(), 2 * kAll},
      {child({"true"}), kAll},
      {event::system(), kAll},
      {cgroup("/tmp"), kAll},
      {cgroup("/tmp").on({1}), 600 * RunningTask::kEach},
      {this_thread().on({0, 1}), kAll},
      {this_thread().on({1}), 600 * RunningTask::kEach},
      {this_process().and_children().on({0, 1, 2}), 2 * kAll},
      {child({"true"}).on({0}), 300 * RunningTask::kEach},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Group group =
        open({.events = {kFaults, software(PERF_COUNT_SW_CPU_CLOCK)}, .target = cases[i].target});
    const auto counts = group.read();
    ASSERT_TRUE(counts) << counts.error().explain();
    ASSERT_EQ(counts->size(), 2U);
    for (const Count& each : *counts) {
      EXPECT_EQ(each.value, cases[i].value) << i;
      EXPECT_EQ(each.scaled(), each.value) << i;
      EXPECT_EQ(each.enabled, each.running) << i;
    }
  }
  const Group none = open({.events = {kFaults}, .target = this_thread().on({2})});
  EXPECT_FALSE(none.read()->front().scaled()) << "the task never ran there";
}

TEST_F(GroupTest, ACountThatTookTurnsIsScaledByItsOwnCpus) {
  kernel_.machine.device("cpu", 4);
  kernel_.turns = 3;
  const Event cycles = raw(0x3c);
  for (const Target& target : {this_thread(), this_thread().and_children(),
                               this_thread().on({0, 1}), event::system().on({0, 1})}) {
    const Group group = open({.events = {cycles}, .target = target});
    const auto counts = group.read();
    ASSERT_TRUE(counts) << counts.error().explain();
    EXPECT_EQ(counts->front().enabled, 900U);
    EXPECT_EQ(counts->front().running, 300U);
    EXPECT_EQ(counts->front().scaled(), 900 * RunningTask::kEach);
  }
}

// Values as the kernel returns them from read(2), different for the two CPUs.
TEST_F(GroupTest, ReadSumsCountsAcrossCpus) {
  const Group group = open({.events = {kFaults, software(PERF_COUNT_SW_CPU_CLOCK)},
                            .target = event::system().on({0, 1})});
  ASSERT_EQ(kernel_.files.size(), 4U) << "the leaders come first";
  for (const std::size_t cpu : {1U, 2U}) {
    const std::uint64_t read[]{2, 1000 * cpu, 100 * cpu, 7 * cpu, 11, 30 * cpu, 12};
    ASSERT_EQ(::pwrite(kernel_.files[cpu - 1], read, sizeof read, 0),
              static_cast<ssize_t>(sizeof read));
  }
  const auto counts = group.read();
  ASSERT_TRUE(counts) << counts.error().explain();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*counts)[i].value, i == 0 ? 21U : 90U);
    EXPECT_EQ((*counts)[i].enabled, 3000U);
    EXPECT_EQ((*counts)[i].running, 300U);
    EXPECT_EQ((*counts)[i].scaled(), i == 0 ? 210U : 900U);
  }
}

// A clock that ran longer than its leader would scale up a count that never took turns.
TEST_F(GroupTest, AClockRunsNoLongerThanItsLeader) {
  Group group = open({.events = {kFaults, kFaults}, .target = this_thread().on({0, 1})});
  EXPECT_EQ(opened(), "0@0, 0@1, 0@0, 0@1, clock 0@0, clock 0@1, ");
  const auto call = [this](const char* what, std::size_t file) {
    return what + std::to_string(kernel_.files[file]) + ", not mapped";
  };
  constexpr const char* kGroup = ", with its group";
  ASSERT_TRUE(group.start().has_value());
  ASSERT_TRUE(group.stop().has_value());
  EXPECT_EQ(calls_.calls, (std::vector{call("enable ", 0) + kGroup, call("enable ", 1) + kGroup,
                                       call("enable ", 4), call("enable ", 5), call("disable ", 4),
                                       call("disable ", 5), call("disable ", 0) + kGroup,
                                       call("disable ", 1) + kGroup}));
  for (const OpenArgs& each : kernel_.opened_args) EXPECT_EQ(each.attr.disabled, each.group_fd < 0);
  const Group command = open({.events = {kFaults}, .target = child({"true"}).on({0})});
  ASSERT_EQ(kernel_.opened_args.size(), 2U);
  for (const OpenArgs& each : kernel_.opened_args) EXPECT_EQ(each.attr.enable_on_exec, 1U);
}

TEST_F(GroupTest, AClockThatCannotBeOpenedIsAnError) {
  int error = EMFILE;
  kernel_.machine.answer = [&error](const OpenArgs& args) {
    return args.attr.config == PERF_COUNT_SW_DUMMY ? error : 0;
  };
  const Request request{.events = {kFaults}, .target = this_thread().on({0})};
  const auto none = Group::open(request, false, kernel_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Open);
  EXPECT_EQ(none.error().io_error, std::errc::too_many_files_open);
  // If the task has ended since, the group returns what it counted until then.
  error = ESRCH;
  const Group group = open(request);
  const auto counts = group.read();
  ASSERT_TRUE(counts) << counts.error().explain();
  EXPECT_EQ(counts->front().value, 300 * RunningTask::kEach);
}

TEST_F(GroupTest, WhatCannotBeReadIsAnError) {
  for (const std::size_t file : {0U, 1U}) {
    const Group group = open({.events = {kFaults}, .target = this_thread().on({0})});
    ASSERT_EQ(::ftruncate(kernel_.files.at(file), 0), 0);
    const auto counts = group.read();
    ASSERT_FALSE(counts) << file;
    EXPECT_EQ(counts.error().step, EventError::Step::Read);
    EXPECT_EQ(counts.error().io_error.value(), ENODATA);
  }
}

TEST(CheckGroupTest, CountsAllOpenFilesGroupNeeds) {
  FakeSystem machine;
  machine.be_root();
  const auto needed = [&](const Target& target) {
    machine.files["/proc/self/limits"] = "Max open files            1          1   files\n";
    const auto found = check_group({.events = {kFaults, kFaults}, .target = target}, machine);
    return found.empty() ? "" : found.front().says.substr(0, found.front().says.find(" open"));
  };
  EXPECT_EQ(needed(this_thread().and_children()), "2 events need 2");
  EXPECT_EQ(needed(this_process().and_children()), "4 events need 4");
  EXPECT_EQ(needed(child({"x"})), "2 events need 4") << "its socket and its pidfd";
  EXPECT_EQ(needed(this_thread().on({0, 1})), "4 events need 6");
  EXPECT_EQ(needed(event::system()), "6 events need 6");
}

TEST(CountTest, IsScaledAsIfItHadRunAllTheTime) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  EXPECT_EQ((Count{7, 100, 25}.scaled()), 28U);
  EXPECT_EQ((Count{7, 100, 100}.scaled()), 7U);
  EXPECT_EQ((Count{kMost, 100, 101}.scaled()), kMost) << "exactly, if it took no turns";
  EXPECT_EQ((Count{7, 100, 0}.scaled()), std::nullopt);
  EXPECT_EQ((Count{}.scaled()), std::nullopt);
  EXPECT_EQ((Count{kMost / 2, 4, 1}.scaled()), kMost) << "more than fits";
  EXPECT_EQ((Count{0, kMost, 1}.scaled()), 0U);
}

}  // namespace
}  // namespace perfring::event
