// Each row of the table of refusals in RECORD_FACTS.md, as check() predicts it.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using testing::as;
using testing::CheckRow;
using testing::FakeSystem;
using testing::kFaults;
using testing::kKernelAddress;
using testing::kRefused;
using testing::kSilent;
using testing::kSwitch;
using testing::put;
using testing::row_name;
using testing::set;

class CheckRefusedTest : public ::testing::TestWithParam<CheckRow> {};

TEST_P(CheckRefusedTest, FindingNamesFieldWithReason) {
  testing::expect_finding(GetParam());
}

std::vector<CheckRow> impossible() {
  using Attr = perf_event_attr;
  return {
      {"PmuUnknown", "type", kRefused, "no PMU of type 99", set([](Attr& a) { a.type = 99; })},
      {"HardwareOnAVirtualMachine", "type", kRefused, "virtual machine",
       as(hardware(PERF_COUNT_HW_CPU_CYCLES))},
      {"CacheOnAVirtualMachine", "type", kRefused, "virtual machine",
       as(cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ,
                PERF_COUNT_HW_CACHE_RESULT_MISS))},
      {"RawOnAVirtualMachine", "type", kRefused, "virtual machine", as(raw(0x1a8))},
      {"SoftwareConfig12", "config", kRefused, "no software event 12",
       set([](Attr& a) { a.config = 12; })},
      {"Tracepoint0", "config", kRefused, "no tracepoint 0",
       as(kSwitch, [](OpenArgs& args) { args.attr.config = 0; }), "pid "},
      {"AttrSizeBelowTheFirst", "size", kRefused, "63 bytes", set([](Attr& a) { a.size = 63; })},
      {"AttrSizeAboveAPage", "size", kRefused, "4097", set([](Attr& a) { a.size = 4097; })},
      {"FrequencyAboveTheLimit", "sample_freq", kRefused, "100001 Hz",
       as(kFaults.frequency(100001))},
      {"PeriodOf64Bits", "sample_period", kRefused, "63 bits",
       as(kFaults.period(std::uint64_t{1} << 63))},
      {"NoCpuAndNoTask", "cpu", kRefused, "needs a CPU", put([](OpenArgs& a) { a.pid = -1; }),
       "pid "},
      {"CpuNotPossible", "cpu", kRefused, "no CPU 4",
       put([](OpenArgs& a) { a.pid = -1, a.cpu = 4; }), "pid "},
      {"CpuOfflineOfAll", "cpu", kRefused, "offline: CPU 3",
       put([](OpenArgs& a) { a.pid = -1, a.cpu = 3; }), "pid "},
      {"CpuBelowAny", "cpu", kRefused, "needs a CPU", put([](OpenArgs& a) { a.cpu = -2; })},
      {"CpuOfflineOfACgroup", "cpu", kRefused, "offline: CPU 3",
       put([](OpenArgs& a) { a.flags = PERF_FLAG_PID_CGROUP, a.cpu = 3; }), "pid "},
      {"CpuOfflineOfOneTask", "cpu", kSilent, "offline: CPU 3",
       put([](OpenArgs& a) { a.cpu = 3; })},
      {"PidNegative", "pid", kRefused, "no such process", put([](OpenArgs& a) { a.pid = -2; })},
      {"PidGone", "pid", kRefused, "no process 4711", put([](OpenArgs& a) { a.pid = 4711; })},
      {"InheritWithoutACpu", "inherit", kRefused, "cannot be mapped",
       set([](Attr& a) { a.inherit = 1; })},
      {"InheritAndReadWithoutTid", "inherit", kRefused, "without TID", set([](Attr& a) {
         a.inherit = 1;
         a.sample_type = PERF_SAMPLE_READ;
       }),
       "inherit "},
      {"InheritAndReadOnOlderKernels", "inherit", kSilent, "before Linux 6.13", set([](Attr& a) {
         a.inherit = 1;
         a.sample_type |= PERF_SAMPLE_READ;
       }),
       "inherit "},
      {"InheritThreadAlone", "inherit_thread", kRefused, "narrows",
       set([](Attr& a) { a.inherit_thread = 1; })},
      {"SigtrapWithoutRemoveOnExec", "sigtrap", kRefused, "remove_on_exec",
       set([](Attr& a) { a.sigtrap = 1; })},
      {"EnableAndRemoveOnExec", "remove_on_exec", kRefused, "contradicts",
       set([](Attr& a) { a.enable_on_exec = a.remove_on_exec = 1; })},
      {"BranchStackOfSoftware", "sample_type", kRefused, "LBR", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
       })},
      {"BranchTypeOfPrivilegesAlone", "branch_sample_type", kRefused, "no kind", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
       }),
       "sample_type "},
      {"RegistersNone", "sample_regs_user", kRefused, "empty",
       set([](Attr& a) { a.sample_type |= PERF_SAMPLE_REGS_USER; })},
      {"StackNotAMultipleOf8", "sample_stack_user", kRefused, "12", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 12;
       })},
      {"StackTooLarge", "sample_stack_user", kRefused, "65536", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 65536;
       })},
      {"CallchainTooDeep", "sample_max_stack", kRefused, "128", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_CALLCHAIN;
         a.sample_max_stack = 128;
       })},
      {"ClockUnknown", "clockid", kRefused, "no clock 2",
       set([](Attr& a) { a.clockid = CLOCK_PROCESS_CPUTIME_ID; })},
      {"BothWeights", "sample_type", kRefused, "two forms",
       set([](Attr& a) { a.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT; })},
      {"AuxOutputOfSoftware", "aux_output", kRefused, "AUX",
       set([](Attr& a) { a.aux_output = 1; })},
      {"GroupFdNotADescriptor", "group_fd", kRefused, "not a descriptor",
       put([](OpenArgs& a) { a.group_fd = -2; })},
      {"CgroupWithoutACpu", "cpu", kRefused, "cgroup",
       put([](OpenArgs& a) { a.flags = PERF_FLAG_PID_CGROUP; }), "pid "},
      {"AuxOutputOfABreakpoint", "aux_output", kRefused, "AUX",
       as(breakpoint(4096, Access::Write), [](OpenArgs& args) { args.attr.aux_output = 1; })},
      {"BranchStackOfABreakpoint", "sample_type", kRefused, "LBR",
       as(breakpoint(4096, Access::Write),
          [](OpenArgs& args) { args.attr.sample_type |= PERF_SAMPLE_BRANCH_STACK; }),
       "branch_sample_type "},
      {"ClockThatNoPmuReads", "clockid", kRefused, "cannot read this clock",
       as(hardware(PERF_COUNT_HW_CPU_CYCLES),
          [](OpenArgs& args) { args.attr.clockid = CLOCK_BOOTTIME; }),
       "type "},
      {"SigtrapOfAllTasks", "sigtrap", kRefused, "all tasks are watched", put([](OpenArgs& args) {
         args.pid = -1;
         args.cpu = 0;
         args.attr.sigtrap = args.attr.remove_on_exec = 1;
       }),
       "pid remove_on_exec "},
      {"MsrWithoutIdleTime", "exclude_idle", kRefused, "msr cannot",
       as(pmu("msr/tsc/"), [](OpenArgs& args) { args.attr.exclude_idle = 1; }), "sample_period "},
      {"MsrWithoutTheKernel", "exclude_kernel", kRefused, "msr cannot",
       as(pmu("msr/tsc/").kernel(Kernel::Excluded)), "sample_period "},
      {"MsrWithAPeriod", "sample_period", kRefused, "msr only counts",
       as(pmu("msr/tsc/").period(1000))},
      {"MsrWithAFrequency", "sample_period", kRefused, "msr only counts",
       as(pmu("msr/tsc/").frequency(99))},
      {"UncorePmuOfATask", "pid", kRefused, "whole CPU",
       [](OpenArgs& args, FakeSystem& machine) {
         machine.device("imc", 20);
         machine.files["/sys/bus/event_source/devices/imc/cpumask"] = "0\n";
         as(pmu("imc/config=1/"))(args, machine);
       },
       "sample_period "},
#if defined(__x86_64__)
      {"RegistersOfSegments", "sample_regs_user", kRefused, "does not provide", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_REGS_USER;
         a.sample_regs_user = 1 << 12;  // DS
       })},
      {"RegistersXmmOfSoftware", "sample_regs_intr", kRefused, "XMM", set([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_REGS_INTR;
         a.sample_regs_intr = std::uint64_t{1} << 32;
       })},
#endif
  };
}

std::vector<CheckRow> probes() {
  const auto with = [](const char* path, FileKind kind) {
    return [path, kind](OpenArgs& args, FakeSystem& machine) {
      machine.kinds[path] = kind;
      as(uprobe(path, 4096))(args, machine);
    };
  };
  using Type = FileKind::Type;
  const auto watching = [](std::uint64_t address, Access access, std::uint64_t length) {
    return as(breakpoint(address, access, length));
  };
  return {
      {"UprobeNoFile", "uprobe_path", kRefused, "No such file", as(uprobe("/none", 1))},
      {"UprobeRelativeNoFile", "uprobe_path", kRefused, "No such file", as(uprobe("bin/none", 1))},
      {"UprobeNoPath", "uprobe_path", kRefused, "needs a file", as(uprobe("", 1))},
      {"UprobeFolder", "uprobe_path", kRefused, "not a program",
       with("/bin", {Type::Folder, 0, 0})},
      {"UprobeProcFile", "uprobe_path", kRefused, "not a program",
       with("/proc/version", {Type::Regular, 0, 0x9fa0})},
      {"UprobePastTheEnd", "probe_offset", kRefused, "past the end",
       with("/bin/true", {Type::Regular, 4096, 0})},
      {"UprobeUnknownConfig", "config", kSilent, "ignores",
       [with](OpenArgs& args, FakeSystem& machine) {
         with("/bin/true", {Type::Regular, 8192, 0})(args, machine);
         args.attr.config = 2;
       }},
      {"KprobeNoName", "kprobe_func", kRefused, "needs a function", as(kprobe(""))},
      {"KretprobeNoName", "kprobe_func", kRefused, "function's name",
       as(kretprobe("x"), [](OpenArgs& args) { args.attr.config1 = 0; })},
      {"KretprobeInside", "probe_offset", kRefused, "at an offset",
       as(kretprobe("x"), [](OpenArgs& args) { args.attr.config2 = 4; })},
      {"BreakpointLength", "bp_len", kRefused, "3", watching(4096, Access::ReadWrite, 3)},
      {"BreakpointOfExecutionLength", "bp_len", kRefused, "sizeof(long)",
       as(breakpoint(4096, Access::Execute), [](OpenArgs& args) { args.attr.bp_len = 1; })},
      {"BreakpointUnaligned", "bp_addr", kRefused, "multiple",
       watching(4097, Access::ReadWrite, 4)},
      {"BreakpointBothSorts", "bp_type", kRefused, "or on execution",
       as(breakpoint(4096, Access::Write),
          [](OpenArgs& args) { args.attr.bp_type = 6, args.attr.bp_len = 2; }),
       "bp_len "},
      {"BreakpointNoSort", "bp_type", kRefused, "or on execution",
       as(breakpoint(4096, Access::Write), [](OpenArgs& args) { args.attr.bp_type = 0; })},
#if defined(__x86_64__) || defined(__i386__)
      {"BreakpointOfReads", "bp_type", kRefused, "reads only", watching(4096, Access::Read, 4)},
#endif
#if __SIZEOF_POINTER__ == 8
      {"BreakpointKernelExcluded", "bp_addr", kRefused, "excluded",
       as(breakpoint(kKernelAddress, Access::Write).kernel(Kernel::Excluded))},
#endif
  };
}

std::vector<CheckRow> forbidden() {
  const auto plain = [](Event event, auto change) {
    return [event, change](OpenArgs& args, FakeSystem& machine) {
      as(event, [](OpenArgs&) {})(args, machine);
      machine.capabilities(0);
      change(args, machine);
    };
  };
  const auto nothing = [](OpenArgs&, FakeSystem&) {};
  const auto paranoid = [](const char* level) {
    return [level](OpenArgs&, FakeSystem& machine) {
      machine.files["/proc/sys/kernel/perf_event_paranoid"] = level;
    };
  };
  std::vector<CheckRow> rows{
      {"KernelAtParanoid2", "exclude_kernel", kRefused, "paranoid is 2", plain(kFaults, nothing)},
      {"AllTasksAtParanoid1", "pid", kRefused, "paranoid is 1",
       plain(kFaults,
             [paranoid](OpenArgs& args, FakeSystem& machine) {
               args.pid = -1;
               args.cpu = 0;
               paranoid("1")(args, machine);
             })},
      {"CgroupAtParanoid1", "pid", kRefused, "all tasks",
       plain(kFaults,
             [paranoid](OpenArgs& args, FakeSystem& machine) {
               args.flags = PERF_FLAG_PID_CGROUP;
               args.cpu = 0;
               paranoid("1")(args, machine);
             })},
      {"AnotherUsersTask", "pid", kRefused, "another user's",
       plain(kFaults, [](OpenArgs& args, FakeSystem&) { args.pid = 88; }), "exclude_kernel "},
      {"RawTracepointAtParanoid0", "sample_type", kRefused, "data of a kernel tracepoint",
       plain(kSwitch, paranoid("0")), "pid "},
      {"Namespaces", "namespaces", kRefused, "whatever kernel.perf_event_paranoid",
       plain(changes({.namespaces = true}), paranoid("-1"))},
      {"PhysicalAddress", "sample_type", kRefused, "physical",
       plain(kFaults.sample(PERF_SAMPLE_PHYS_ADDR), nothing), "exclude_kernel "},
      {"RegistersUnderConfidentiality", "sample_type", kRefused, "locked down",
       plain(kFaults.sample(PERF_SAMPLE_REGS_INTR),
             [](OpenArgs&, FakeSystem& machine) {
               machine.files["/sys/kernel/security/lockdown"] =
                   "none integrity [confidentiality]\n";
             }),
       "sample_regs_intr exclude_kernel "},
      {"UprobeWithPerfmon", "type", kRefused, "CAP_SYS_ADMIN",
       plain(uprobe("/bin/true", 1), [](OpenArgs&, FakeSystem& machine) { machine.be_perfmon(); }),
       "uprobe_path "},
      {"KprobeOfAPlainUser", "type", kRefused, "CAP_PERFMON", plain(kprobe("x"), paranoid("-1"))},
  };
#if __SIZEOF_POINTER__ == 8
  rows.push_back({"KernelBreakpointWithPerfmon", "bp_addr", kRefused, "CAP_SYS_ADMIN",
                  plain(breakpoint(kKernelAddress, Access::Write),
                        [](OpenArgs&, FakeSystem& machine) { machine.be_perfmon(); })});
#endif
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Impossible, CheckRefusedTest, ::testing::ValuesIn(impossible()), row_name);
INSTANTIATE_TEST_SUITE_P(Probes, CheckRefusedTest, ::testing::ValuesIn(probes()), row_name);
INSTANTIATE_TEST_SUITE_P(Forbidden, CheckRefusedTest, ::testing::ValuesIn(forbidden()), row_name);

// The findings of each level of perf_event_paranoid, for callers with and without capabilities.
TEST(CheckBoundsTest, EachLevelOfParanoidKeepsItsPartFromAPlainUser) {
  const auto refused = [](const char* level, unsigned long long capabilities, OpenArgs args) {
    FakeSystem machine;
    machine.capabilities(capabilities);
    machine.files["/proc/sys/kernel/perf_event_paranoid"] = level;
    std::string fields;
    for (const Finding& each : check(args, machine)) {
      if (each.severity == kRefused) fields += each.field + " ";
    }
    return fields;
  };
  FakeSystem machine;
  machine.be_root();
  const auto of = [&machine](const Event& event, pid_t pid) {
    OpenArgs args;
    args.attr = event.attr(machine).value();
    args.pid = pid;
    args.cpu = pid == -1 ? 0 : -1;
    return args;
  };
  constexpr unsigned long long kPerfmon = 1ULL << 38;
  constexpr unsigned long long kAdmin = 1ULL << 21;
  const OpenArgs user = of(kFaults.kernel(Kernel::Excluded), 0);
  const OpenArgs kernel = of(kFaults.sample(PERF_SAMPLE_PHYS_ADDR), 0);
  const OpenArgs all = of(kFaults.kernel(Kernel::Excluded), -1);
  const OpenArgs traced = of(kSwitch, 0);
  for (const char* const level : {"-1", "0", "1", "2"}) {
    EXPECT_EQ(refused(level, 0, user), "") << level;
    for (const OpenArgs& each : {user, kernel, all, traced}) {
      EXPECT_EQ(refused(level, kPerfmon, each), "") << level;
      EXPECT_EQ(refused(level, kAdmin, each), "") << level;
    }
  }
  EXPECT_EQ(refused("2", 0, kernel), "exclude_kernel sample_type ");
  EXPECT_EQ(refused("1", 0, kernel), "");
  EXPECT_EQ(refused("2", 0, all), "pid ");
  EXPECT_EQ(refused("1", 0, all), "pid ");
  EXPECT_EQ(refused("0", 0, all), "");
  EXPECT_EQ(refused("1", 0, traced), "sample_type ");
  EXPECT_EQ(refused("0", 0, traced), "sample_type ");
  EXPECT_EQ(refused("-1", 0, traced), "");
}

}  // namespace
}  // namespace perfring::event
