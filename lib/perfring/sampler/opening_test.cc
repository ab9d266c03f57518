// How a Sampler, a Group and a Counter open, and how a command starts; the state of moved-from
// objects, and of copies in a forked child. On stand-ins for the kernel.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/process.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/opening.h"
#include "perfring/sampler/sampler.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_system.h"
#include "perfring/wait/waiter.h"

namespace perfring::event {
namespace {

using perfring::testing::FakeKernel;
using testing::FakeSystem;
using testing::kFaults;
using testing::SamplerTest;

class OpeningTest : public ::testing::Test {
 protected:
  // Returns the tasks of the steps, or why nothing was opened.
  std::string opened(const Event& event, const Target& target, bool grouped = false) {
    std::vector<Event> events(2, event);
    const auto opening = internal::open_all({.events = events, .target = target}, machine_, grouped,
                                            /*prepare=*/nullptr);
    if (!opening) {
      std::string fields{opening.error().io_error.message()};
      for (const Cause& each : opening.error().causes) fields += " " + each.field;
      return fields;
    }
    std::string tasks;
    for (const internal::OpenStep& each : opening->steps) {
      tasks += std::to_string(each.step.event) + ":" + std::to_string(each.step.args.pid) + " ";
    }
    return tasks;
  }
  FakeSystem machine_;
};

// R8: the thread ends between the listing of the process's threads and the opening.
TEST_F(OpeningTest, AThreadThatHasEndedIsPassedOver) {
  machine_.answer = [](const OpenArgs& args) { return args.pid == 100 ? ESRCH : 0; };
  for (const bool grouped : {false, true}) {
    EXPECT_EQ(opened(kFaults, this_process(), grouped), "0:101 1:101 ");
    EXPECT_EQ(opened(kFaults, this_process().and_children().on({0, 1}), grouped),
              "0:101 0:101 1:101 1:101 ");
    const auto is_of_task = [](const OpenArgs& args) { return args.pid == 100; };
    EXPECT_EQ(std::ranges::count_if(machine_.calls, is_of_task), 2) << "once for each request";
    machine_.calls.clear();
  }
  EXPECT_EQ(opened(kFaults, thread(100)), "No such process pid") << "it is the only one";
  // The thread ends between the opening of the first event and that of the second.
  machine_.calls.clear();
  machine_.answer = [&](const OpenArgs& args) {
    return args.pid == 100 && machine_.calls.size() > 1 ? ESRCH : 0;
  };
  EXPECT_EQ(opened(kFaults, this_process()), "0:100 0:101 1:101 ");
}

TEST_F(OpeningTest, IfAllThreadsHaveEndedThereIsNoProcess) {
  machine_.answer = [](const OpenArgs&) { return ESRCH; };
  EXPECT_EQ(opened(kFaults, this_process()), "No such process pid");
  machine_.calls.clear();
  machine_.answer = [&](const OpenArgs&) { return machine_.calls.size() > 2 ? ESRCH : 0; };
  EXPECT_EQ(opened(kFaults, this_process()), "No such process pid") << "of the second event";
  machine_.answer = [](const OpenArgs& args) { return args.pid == 100 ? EMFILE : 0; };
  EXPECT_EQ(opened(kFaults, this_process()), "Too many open files fd");
}

TEST_F(OpeningTest, MembersJoinMatchingLeader) {
  std::vector<Event> events(2, kFaults);
  const auto opening = internal::open_all(
      {.events = events, .target = this_process().and_children().on({0, 1})}, machine_,
      /*grouped=*/true, nullptr);
  ASSERT_TRUE(opening);
  ASSERT_EQ(opening->steps.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    const internal::OpenStep& each = opening->steps[i];
    EXPECT_EQ(each.step.args.group_fd, i < 4 ? -1 : opening->steps[i - 4].fd.get()) << i;
    EXPECT_EQ(each.step.args.cpu, opening->steps[i % 4].step.args.cpu) << i;
  }
}

// open() finds and notes only once per event that this user may not observe the kernel.
TEST_F(OpeningTest, TheKernelIsNotAskedForAgainOnceItWasRefused) {
  machine_.answer = [](const OpenArgs& args) { return args.attr.exclude_kernel == 0 ? EACCES : 0; };
  const auto opening =
      internal::open_all({.events = {kFaults}, .target = this_process()}, machine_, false, nullptr);
  ASSERT_TRUE(opening);
  EXPECT_EQ(opening->notes.size(), 1U);
  EXPECT_EQ(machine_.calls.size(), 3U) << "two events, of which the first was refused once";
}

// 0 is the first free descriptor if a daemon has closed its standard input.
TEST_F(OpeningTest, ADescriptorOf0IsTakenAsAnEvent) {
  machine_.answer = [](const OpenArgs& args) { return args.attr.exclude_kernel == 0 ? EACCES : 0; };
  const int input = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  ::close(0);
  {
    const auto opening = internal::open_all({.events = {kFaults}, .target = this_process()},
                                            machine_, false, nullptr);
    EXPECT_EQ(opening->steps.at(0).fd.get(), 0);
    EXPECT_EQ(opening->steps.size(), 2U);
    EXPECT_EQ(opening->notes.size(), 1U);
    EXPECT_EQ(machine_.calls.size(), 3U);
  }
  if (input >= 0) {
    ::dup2(input, 0);
    ::close(input);
  }
}

TEST_F(OpeningTest, ALackOfFilesNamesTheNumberOfRequestedEvents) {
  machine_.answer = [](const OpenArgs&) { return EMFILE; };
  const auto none = internal::open_all({.events = {kFaults}, .target = this_process()}, machine_,
                                       /*grouped=*/false, nullptr);
  EXPECT_EQ(none.error().causes.front().says,
            "this process may have 64 open files, and 2 events are requested");
}

// The kernel returns EINVAL before it checks privileges. So with the kernel excluded, changing one
// wrong field is enough to find it.
TEST_F(OpeningTest, WrongFieldsAreFoundByAskingWithoutTheKernel) {
  machine_.answer = [&](const OpenArgs& args) {
    if (args.attr.enable_on_exec && args.attr.remove_on_exec) return EINVAL;
    return args.attr.exclude_kernel == 0 ? EACCES : 0;
  };
  const Event both =
      kFaults.adjust([](perf_event_attr& a) { a.enable_on_exec = a.remove_on_exec = 1; });
  EXPECT_EQ(opened(both, this_thread()), "Invalid argument enable_on_exec remove_on_exec");
}

// IfAllowed: excluding the kernel does not help an event that observes only the kernel.
TEST_F(OpeningTest, KernelOnlyEventFailsWithPermissionDenied) {
  const auto is_msr = [](const OpenArgs& args) { return args.attr.type == 10; };
  machine_.answer = [&](const OpenArgs& args) {
    if (args.attr.exclude_kernel == 0) return EACCES;
    const bool is_kernels = args.attr.type == PERF_TYPE_BREAKPOINT && args.attr.bp_addr >> 63 != 0;
    return is_kernels || is_msr(args) ? EINVAL : 0;
  };
#if __SIZEOF_POINTER__ == 8
  EXPECT_EQ(opened(breakpoint(0xffffffff81000000, Access::Write), this_thread()),
            "Permission denied bp_addr");
#endif
  EXPECT_EQ(opened(pmu("msr/tsc/").kernel(Kernel::IfAllowed), this_thread()),
            "Permission denied exclude_kernel");
  EXPECT_EQ(opened(breakpoint(4096, Access::Write), this_thread()), "0:0 1:0 ");
}

// Each child holds a copy of the pipes of those before it.
TEST_F(SamplerTest, TwoCommandsThatWaitAreIndependent) {
  for (const bool first_goes : {true, false}) {
    std::optional<Sampler> first = open(request(child({"true"})), /*starts=*/false);
    std::optional<Sampler> second = open(request(child({"true"})), /*starts=*/false);
    std::optional<Sampler>& goes = first_goes ? first : second;
    std::optional<Sampler>& stays = first_goes ? second : first;
    const pid_t gone = goes->child();
    goes.reset();
    EXPECT_FALSE(os::ProcessRef::open(gone)) << "it was not waited for";
    EXPECT_FALSE(stays->child_status());
    ASSERT_TRUE(stays->start().has_value());
    while (!stays->child_status()) ::usleep(1000);
    EXPECT_EQ(*stays->child_status(), 0);
  }
}

// The errors of start(), in words.
TEST_F(SamplerTest, ACommandThatCannotBeRunIsNamedWithTheReason) {
  const auto failed = [](std::vector<std::string> command, int error) {
    const auto opened = Sampler::open(request(child(std::move(command))));
    if (opened) return std::string{"it was opened"};
    EXPECT_EQ(opened.error().step, EventError::Step::Child);
    EXPECT_EQ(opened.error().io_error.value(), error);
    std::string all = opened.error().request;
    for (const Cause& each : opened.error().causes) all += "; " + each.field + ": " + each.says;
    return all;
  };
  EXPECT_EQ(failed({"/none/x"}, ENOENT), "the command /none/x; command: there is no such program");
  EXPECT_EQ(failed({"/etc/passwd", "y"}, EACCES),
            "the command /etc/passwd; command: it may not be run");
  Sampler killed = open(request(child({"true"})), /*starts=*/false);
  ASSERT_TRUE(killed.signal_child(SIGKILL));
  const auto ended = os::ProcessRef::open(killed.child());
  while (!ended->has_ended()) ::usleep(1000);
  const auto started = killed.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().io_error, std::errc::no_such_process);
  ASSERT_EQ(started.error().causes.size(), 1U);
  EXPECT_EQ(started.error().causes[0].says, "its process ended before it was started");
  ASSERT_TRUE(killed.child_status());
  EXPECT_EQ(*killed.child_status(), SIGKILL);
  // When no descriptor is free, creating the pipes fails first.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto forked = internal::Child::fork({"true"});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(forked);
  EXPECT_EQ(forked.error().io_error, std::errc::too_many_files_open);
  ASSERT_EQ(forked.error().causes.size(), 1U);
  EXPECT_EQ(forked.error().causes[0].says, "this process may have 3 open files");
}

// Some daemons, and Python's subprocess in some versions, ignore SIGCHLD.
TEST_F(SamplerTest, AnUnobservedExitIsNotReportedAsSuccess) {
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  struct sigaction before{};
  ::sigaction(SIGCHLD, &ignored, &before);
  Sampler sampler = open(request(child({"sh", "-c", "exit 7"})));
  while (!sampler.child_status()) ::usleep(1000);
  const auto status = *sampler.child_status();
  ::sigaction(SIGCHLD, &before, nullptr);
  EXPECT_EQ(status.value_or(7 << 8), 7 << 8) << "Linux 6.15 and later remember";
  EXPECT_TRUE(status || status.error() == std::errc::no_child_process);
}

TEST_F(SamplerTest, ASignalReachesOnlyTheChild) {
  Sampler sampler = open(request(child({"sleep", "600"})));
  ASSERT_TRUE(sampler.signal_child(SIGTERM));
  while (!sampler.child_status()) ::usleep(1000);
  EXPECT_EQ(*sampler.child_status(), SIGTERM);
  EXPECT_EQ(sampler.signal_child(SIGTERM).error(), std::errc::no_such_process);
  const Sampler second{std::move(sampler)};
  EXPECT_EQ(sampler.signal_child(SIGTERM).error(),  // NOLINT: moved from, on purpose
            std::errc::no_such_process);
  const Group none = Group::open(request()).value();
  EXPECT_EQ(none.signal_child(SIGTERM).error(), std::errc::no_such_process) << "it has no child";
}

TEST_F(SamplerTest, StartingTwiceStartsOnce) {
  Sampler sampler = open(request(child({"true"})));
  EXPECT_TRUE(sampler.start().has_value());
  Group group = Group::open(request(child({"true"}))).value();
  EXPECT_TRUE(group.start().has_value());
  while (!sampler.child_status() || !group.child_status()) ::usleep(1000);
  EXPECT_EQ(*group.child_status(), 0);
}

// Returns the mistakes of a sampler without events (moved from, or in a forked child).
std::string delivered_by_none(Sampler& none) {
  std::string wrong;
  const auto each = [&](const Delivered&) { wrong += "a record "; };
  none.for_each(each);
  none.flush(each);
  if (none.next()) wrong += "next() ";
  if (none.wait() != Woken::Stop) wrong += "wait() ";
  none.stop();
  if (none.start().error().io_error != std::errc::bad_file_descriptor) wrong += "start() ";
  if (none.fd() != -1 || none.next_deadline() != Sampler::Clock::time_point::min())
    wrong += "fd() ";
  if (!none.events().empty() || !none.notes().empty() || none.rings() != 0) wrong += "events() ";
  if (none.counts().delivered != 0 || none.lost() != 0) wrong += "counts() ";
  if (none.child() != 0 || none.child_status()) wrong += "child() ";
  return wrong;
}

TEST_F(SamplerTest, AMovedFromSamplerHasNoEvents) {
  Sampler first = open();
  write(first, "one", 1);
  Sampler second{std::move(first)};
  EXPECT_EQ(delivered_by_none(first), "");  // NOLINT: moved from, on purpose
  EXPECT_NE(first.start().error().explain().find("moved from"), std::string::npos);
  std::string delivered;
  second.flush([&](const Delivered& each) { delivered += name_of(each); });
  EXPECT_EQ(delivered, "one ");
  EXPECT_EQ(second.counts().delivered, 1U);
  first = std::move(second);
  write(first, "two", 2);
  first.flush([&](const Delivered& each) { delivered += name_of(each); });
  EXPECT_EQ(delivered, "one two ");
  EXPECT_EQ(FakeKernel::mappings(), 1);
}

TEST_F(SamplerTest, MoveAssignmentToItselfChangesNothing) {
  Sampler sampler = open();
  write(sampler, "one", 1);
  Sampler& same = sampler;
  sampler = std::move(same);
  std::string delivered;
  sampler.flush([&](const Delivered& each) { delivered += name_of(each); });
  EXPECT_EQ(delivered, "one ");
  Group group = Group::open(request()).value();
  Group& same_group = group;
  group = std::move(same_group);
  EXPECT_TRUE(group.start().has_value());
}

TEST_F(SamplerTest, ForkedCopyIsInertInChild) {
  Sampler sampler = open(request(child({"true"})), /*starts=*/false);
  write(sampler, "one", 1);
  const int mappings = FakeKernel::mappings();
  const auto use_the_copy = [&] {
    if (!delivered_by_none(sampler).empty()) ::_exit(1);
    // The stand-in's memory exists in the child as well. It represents somebody else's memory now.
    {
      const Sampler destroyed{std::move(sampler)};
    }
    ::_exit(FakeKernel::mappings() == mappings ? 7 : 2);
  };
  EXPECT_EXIT(use_the_copy(), ::testing::ExitedWithCode(7), "");
  // The parent can still start the command.
  ASSERT_TRUE(sampler.start().has_value());
  while (!sampler.child_status()) ::usleep(1000);
  EXPECT_EQ(*sampler.child_status(), 0);
  std::string delivered;
  sampler.flush([&](const Delivered& each) { delivered += name_of(each); });
  EXPECT_EQ(delivered, "one ");
}

TEST_F(SamplerTest, AGroupThatWasMovedFromHasNoEvents) {
  Group first = Group::open(request(child({"true"})), /*starts=*/false).value();
  const pid_t child = first.child();
  EXPECT_GT(child, 0);
  Group second{std::move(first)};
  for (const auto& failed : {first.start(), first.stop()}) {  // NOLINT: moved from, on purpose
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().io_error, std::errc::bad_file_descriptor);
  }
  EXPECT_EQ(first.read().error().io_error, std::errc::bad_file_descriptor);
  EXPECT_TRUE(first.notes().empty());
  EXPECT_EQ(first.child(), 0);
  EXPECT_FALSE(first.child_status());
  EXPECT_EQ(second.child(), child);
  Counter counter = Counter::open(software(PERF_COUNT_SW_PAGE_FAULTS), this_thread()).value();
  const Counter taken{std::move(counter)};
  EXPECT_EQ(counter.read().error().io_error,  // NOLINT: moved from, on purpose
            std::errc::bad_file_descriptor);
  EXPECT_TRUE(counter.notes().empty());
}

TEST_F(SamplerTest, AForkedChildLeavesItsParentsCommandAlone) {
  Group group = Group::open(request(child({"true"})), /*starts=*/false).value();
  const auto use_the_copy = [&] {
    if (group.child_status()) ::_exit(1);
    const auto started = group.start();
    if (started || started.error().io_error != std::errc::no_child_process) ::_exit(2);
    {
      const Group destroyed{std::move(group)};
    }
    ::_exit(7);
  };
  EXPECT_EXIT(use_the_copy(), ::testing::ExitedWithCode(7), "");
  EXPECT_FALSE(group.child_status()) << "it waits for its start";
}

}  // namespace
}  // namespace perfring::event
