// The text of an EventError, also where there is no cause.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using testing::FakeSystem;
using testing::kFaults;
using testing::paranoid2;

TEST(EventErrorTest, ACauseHiddenBehindAnotherIsExplainedToo) {
  FakeSystem machine;
  OpenArgs args;
  args.attr = hardware(PERF_COUNT_HW_CPU_CYCLES).attr(machine).value();
  machine.answer = [](const OpenArgs& each) {
    if (const int first = paranoid2(each)) return first;
    return each.attr.type == PERF_TYPE_HARDWARE ? ENOENT : 0;
  };
  const auto error =
      EventError::at_failure(EventError::Step::Open, EACCES, args, "cycles", machine);
  EXPECT_EQ(error.explain(),
            "asked for: perf_event_open of cycles of this thread\n"
            "the system said: Permission denied: this user may not observe the kernel: "
            "kernel.perf_event_paranoid is 2; and this machine has no PMU that counts what a "
            "processor does (a virtual machine, mostly)\n"
            "to change: exclude the kernel, or run with CAP_PERFMON (before Linux 5.8: "
            "CAP_SYS_ADMIN), or set that to 1 or below; use a software event, such as cpu-clock "
            "(or_else())");
  EXPECT_EQ(error.message(), "perf_event_open of cycles of this thread failed: Permission denied");
}

// How a kernel refuses a group's members (kernel/events/core.c: perf_event_open() at v6.18).
int of_a_group(const OpenArgs& member, const OpenArgs& leader) {
  if (member.group_fd == -1) return 0;
  const auto clock = [](const perf_event_attr& a) { return a.use_clockid ? a.clockid : -1; };
  const bool is_refused = member.attr.pinned || member.attr.exclusive || member.cpu != leader.cpu ||
                          member.pid != leader.pid || clock(member.attr) != clock(leader.attr) ||
                          member.attr.inherit != leader.attr.inherit;
  return is_refused ? EINVAL : 0;
}

struct Member {
  const char* name;
  void (*of_leader)(OpenArgs&);
  void (*of_member)(OpenArgs&);
  const char* with_leader;     // if the leader is passed
  const char* without_leader;  // if it is not
};

TEST(EventErrorTest, AMembersErrorNamesItsDifferenceFromTheLeader) {
  constexpr auto kNothing = [](OpenArgs&) {};
  constexpr auto kNoClock = [](OpenArgs& args) {
    args.attr.use_clockid = 0, args.attr.clockid = 0;
  };
  constexpr auto kInherits = [](OpenArgs& args) { args.attr.inherit = 1; };
  constexpr const char* kClock = "clockid: the group's leader has another clock";
  constexpr const char* kInherited =
      "inherit: the group's leader is inherited and the member is not, or the reverse";
  constexpr const char* kGroup = "group_fd: the event does not match the group's leader";
  const std::vector<Member> rows{
      {"pinned", kNothing, [](OpenArgs& args) { args.attr.pinned = 1; },
       "pinned: only a group's leader may be pinned",
       "pinned: only a group's leader may be pinned"},
      {"exclusive", kNothing, [](OpenArgs& args) { args.attr.exclusive = 1; },
       "exclusive: only a group's leader may be exclusive",
       "exclusive: only a group's leader may be exclusive"},
      {"clock", kNothing, [](OpenArgs& args) { args.attr.clockid = CLOCK_REALTIME; }, kClock,
       kGroup},
      {"no clock", kNothing, kNoClock, kClock, kGroup},
      {"leader without a clock", kNoClock, kNothing, kClock, kGroup},
      {"inherits", kNothing, kInherits, kInherited, kGroup},
      {"leader inherits", kInherits, kNothing, kInherited, kGroup},
      {"CPU", [](OpenArgs& args) { args.cpu = 0; }, [](OpenArgs& args) { args.cpu = 1; },
       "cpu: the group's leader is on another CPU", kGroup},
  };
  for (const Member& row : rows) {
    FakeSystem machine;
    OpenArgs leader;
    leader.attr = changes({.switches = true}).kernel(Kernel::Excluded).attr(machine).value();
    OpenArgs member = leader;
    row.of_leader(leader);
    row.of_member(member);
    member.group_fd = 5;
    machine.answer = [&](const OpenArgs& args) { return of_a_group(args, leader); };
    ASSERT_EQ(of_a_group(member, leader), EINVAL) << row.name;
    const auto causes_with = [&](const OpenArgs* with) {
      const auto failed = EventError::at_failure(EventError::Step::Open, EINVAL, member,
                                                 "the event", machine, with);
      return failed.causes.size() == 1 ? failed.causes[0].field + ": " + failed.causes[0].says
                                       : failed.explain();
    };
    EXPECT_EQ(causes_with(&leader), row.with_leader) << row.name;
    EXPECT_EQ(causes_with(nullptr), row.without_leader) << row.name;
  }
}

TEST(EventErrorTest, BlamesWrongValueNotOptionalSetting) {
  using Attr = perf_event_attr;
  struct Value {
    void (*change)(Attr&);
    int error;
    const char* cause;
  };
  const std::vector<Value> rows{
      {[](Attr& a) { a.sample_type |= PERF_SAMPLE_REGS_USER; }, EINVAL,
       "the mask of registers is empty"},
      {[](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 65536;
       },
       EINVAL, "65536 is not a multiple of 8 up to 65528"},
      {[](Attr& a) {
         a.sample_type |= PERF_SAMPLE_CALLCHAIN;
         a.sample_max_stack = 1000;
       },
       EOVERFLOW, "1000 is more than kernel.perf_event_max_stack"},
      {[](Attr& a) {
         a.sample_type |= PERF_SAMPLE_READ;
         a.inherit = 1;
       },
       EINVAL, "before Linux 6.13 an event that samples READ cannot be inherited"},
      {[](Attr& a) { a.size = 8; }, E2BIG, "perf_event_attr cannot have 8 bytes"},
      {[](Attr& a) { a.clockid = 2; }, EINVAL, "perf has no clock 2"},
      {[](Attr& a) { a.enable_on_exec = a.remove_on_exec = 1; }, EINVAL,
       "remove_on_exec contradicts enable_on_exec"},
  };
  const auto is_wrong = [](const Attr& a) {
    const auto samples = [&a](std::uint64_t bit) { return (a.sample_type & bit) != 0; };
    return (samples(PERF_SAMPLE_REGS_USER) && a.sample_regs_user == 0) ||
           (samples(PERF_SAMPLE_STACK_USER) && a.sample_stack_user > 65528) ||
           (samples(PERF_SAMPLE_CALLCHAIN) && a.sample_max_stack > 127) ||
           (samples(PERF_SAMPLE_READ) && a.inherit) || a.size < PERF_ATTR_SIZE_VER0 ||
           (a.use_clockid && a.clockid == 2) || (a.enable_on_exec && a.remove_on_exec);
  };
  for (const Value& row : rows) {
    FakeSystem machine;
    OpenArgs args;
    args.attr = changes({.switches = true}).kernel(Kernel::Excluded).attr(machine).value();
    row.change(args.attr);
    machine.answer = [&](const OpenArgs& each) { return is_wrong(each.attr) ? row.error : 0; };
    ASSERT_TRUE(is_wrong(args.attr)) << row.cause;
    const auto failed =
        EventError::at_failure(EventError::Step::Open, row.error, args, "the event", machine);
    // Each reason appears once, in its own line.
    const std::string text = failed.explain();
    const std::string line = text.substr(text.find('\n') + 1);
    EXPECT_EQ(line.substr(0, line.find('\n')),
              "the system said: " + failed.io_error.message() + ": " + row.cause);
  }
}

TEST(EventErrorTest, AFilterOfAnEventWithoutFieldsIsExplained) {
  FakeSystem machine;
  OpenArgs args = internal::dummy();
  const auto cause = [&] {
    return EventError::at_failure(EventError::Step::Filter, EINVAL, args, "x", machine)
        .causes.front()
        .says;
  };
  EXPECT_EQ(cause(), "only a tracepoint or a probe has fields that a filter can name");
  machine.device("intel_pt", 30);
  args.attr.type = 30;
  EXPECT_EQ(cause(), "only a tracepoint or a probe has fields that a filter can name");
  machine.files["/sys/bus/event_source/devices/intel_pt/nr_addr_filters"] = "2\n";
  EXPECT_EQ(cause(), "the event does not accept this filter");
  for (const std::uint32_t type : {std::uint32_t{PERF_TYPE_TRACEPOINT}, 8U, 9U}) {
    args.attr.type = type;
    EXPECT_EQ(cause(), "the event does not accept this filter") << type;
  }
}

TEST(EventErrorTest, TheKernelReportsItsAttributeSize) {
  // The kernel has one field more than this build, and is asked for two.
  constexpr std::uint32_t known = sizeof(perf_event_attr) + 8;
  FakeSystem machine;
  machine.answer = [](OpenArgs& each) {
    if (each.attr.size <= known) return 0;
    each.attr.size = known;
    return E2BIG;
  };
  OpenArgs args;
  args.attr = changes({.switches = true}).attr(machine).value();
  args.attr.size = known + 8;
  const auto causes = causes_of(args, E2BIG, machine);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_NE(causes[0].says.find(std::to_string(known) + " bytes"), std::string::npos)
      << causes[0].says;
}

// R11, R16: without the kernel, these events would open and count nothing.
TEST(EventErrorTest, AdvisesExcludingKernelOnlyIfUseful) {
  FakeSystem machine;
  for (const char* const name : {"raw_syscalls/sys_enter", "syscalls/sys_exit_read"}) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + name + "/id"] = "7\n";
  }
  const auto advice = [&](const Event& event) {
    OpenArgs args;
    args.attr = event.attr(machine).value();
    machine.answer = paranoid2;
    const auto error =
        EventError::at_failure(EventError::Step::Open, EACCES, args, event.name(), machine);
    return error.causes.empty() ? "none" : error.causes.front().advice.substr(0, 18);
  };
  EXPECT_EQ(advice(software(PERF_COUNT_SW_CONTEXT_SWITCHES)), "use changes({.swit");
  EXPECT_EQ(advice(software(PERF_COUNT_SW_CPU_MIGRATIONS)), "run with CAP_PERFM");
  EXPECT_EQ(advice(software(PERF_COUNT_SW_CGROUP_SWITCHES)), "run with CAP_PERFM");
  EXPECT_EQ(advice(tracepoint("sched:sched_switch")), "run with CAP_PERFM");
  EXPECT_EQ(advice(tracepoint("raw_syscalls:sys_enter")), "run with CAP_PERFM");
  EXPECT_EQ(advice(tracepoint("syscalls:sys_exit_read")), "exclude the kernel");
  EXPECT_EQ(advice(software(PERF_COUNT_SW_PAGE_FAULTS)), "exclude the kernel");
  // A kernel that forbids more than paranoid says, which check() cannot find.
  machine.files["/proc/sys/kernel/perf_event_paranoid"] = "1\n";
  EXPECT_EQ(advice(software(PERF_COUNT_SW_CPU_MIGRATIONS)), "run with CAP_PERFM");
  EXPECT_EQ(advice(software(PERF_COUNT_SW_PAGE_FAULTS)), "exclude the kernel");
}

TEST(EventErrorTest, ALackOfDescriptorsOrMemoryIsNamedForEachCall) {
  using Step = EventError::Step;
  FakeSystem machine;
  const auto field = [&](Step step, int error) {
    const auto failed = EventError::at_failure(step, error, internal::dummy(), "x", machine);
    return failed.causes.empty() ? "" : failed.causes.front().field;
  };
  for (const Step step : {Step::Open, Step::Map, Step::Wait}) {
    EXPECT_EQ(field(step, EMFILE), "fd");
    EXPECT_EQ(field(step, ENFILE), "fd");
    EXPECT_EQ(field(step, ENOMEM), "page_count");
  }
  const auto cause = [&] { return causes_of(internal::dummy(), EMFILE, machine).front().says; };
  EXPECT_EQ(cause(), "this process may have 64 open files");
  machine.errors["/proc/self/limits"] = EMFILE;  // because reading takes a descriptor, too
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  EXPECT_EQ(cause(), "this process may have " + std::to_string(own.rlim_cur) + " open files");
}

TEST(EventErrorTest, RootIsNotAdvisedToGetACapability) {
  FakeSystem machine;
  machine.be_root();
  OpenArgs args = internal::dummy();
  args.attr.type = PERF_TYPE_TRACEPOINT;
  args.attr.config = 1;
  machine.answer = [](const OpenArgs& each) {
    return each.attr.type == PERF_TYPE_TRACEPOINT ? EPERM : 0;
  };
  const auto causes = causes_of(args, EPERM, machine);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes.front().says, "this machine does not have this event");
}

TEST(EventErrorTest, FindingTheCausesLeavesNoDescriptorOpen) {
  FakeSystem machine;
  machine.answer = [](const OpenArgs& each) {
    return each.attr.sample_period >> 63 != 0 ? EINVAL : 0;
  };
  OpenArgs args;
  args.attr = changes({.switches = true}).attr(machine).value();
  args.attr.sample_period = std::uint64_t{1} << 63;
  const int before = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(before);
  static_cast<void>(causes_of(args, EINVAL, machine));
  const int after = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(after);
  EXPECT_GT(machine.calls.size(), 10U);
  EXPECT_EQ(before, after);
}

TEST(CausesMisuseTest, AnErrorOf0OrLessHasNoCause) {
  FakeSystem machine;
  OpenArgs args;
  args.attr = kFaults.attr(machine).value();
  for (const int error : {0, -1, INT_MIN}) {
    EXPECT_TRUE(causes_of(args, error, machine).empty()) << error;
    EXPECT_TRUE(machine.calls.empty()) << "and nothing is asked of the system";
  }
  const auto failed = EventError::at_failure(EventError::Step{99}, 0, args, "", machine);
  EXPECT_EQ(failed.message(), "an event of type 1 of this thread: impossible");
  EXPECT_EQ(EventError{}.message(), ": impossible");
  EXPECT_NE(EventError{}.explain().find("to change: see perf_event_open(2)"), std::string::npos);
}

}  // namespace
}  // namespace perfring::event
