// Each row of the tables in RECORD_FACTS.md: of refusals, and of what is accepted silently.

#include "perfring/event/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>

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
using testing::right;
using testing::row_name;
using testing::set;

class CheckTest : public ::testing::TestWithParam<CheckRow> {};

TEST_P(CheckTest, TheFindingNamesTheFieldAndTheReason) {
  testing::expect_finding(GetParam());
}

// Values at a bound are accepted.
TEST(CheckBoundsTest, TheBoundItselfIsAllowed) {
  const std::vector<std::function<void(Ask&)>> allowed{
      [](Ask& ask) { ask.attr.freq = 1, ask.attr.sample_freq = 100'000; },
      [](Ask& ask) { ask.attr.sample_period = ~std::uint64_t{0} >> 1; },
      [](Ask& ask) { ask.attr.size = PERF_ATTR_SIZE_VER0; }, [](Ask& ask) { ask.attr.size = 4096; },
      [](Ask& ask) { ask.attr.size = 0; }, [](Ask& ask) { ask.cpu = 2; },
      [](Ask& ask) { ask.pid = 77; },  // whose effective user is this one's, and whose real is not
      [](Ask& ask) {
        ask.attr.sample_type |= PERF_SAMPLE_STACK_USER;
        ask.attr.sample_stack_user = 65528;
      },
      [](Ask& ask) {
        ask.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
        ask.attr.sample_max_stack = 127;
      },
      [](Ask& ask) {
        ask.attr.config = PERF_COUNT_SW_CGROUP_SWITCHES, ask.attr.exclude_kernel = 0;
      },
      [](Ask& ask) { ask.attr.clockid = CLOCK_REALTIME; },
      [](Ask& ask) { ask.attr.clockid = CLOCK_MONOTONIC_RAW; },
      [](Ask& ask) { ask.attr.clockid = CLOCK_BOOTTIME; },
      [](Ask& ask) { ask.attr.clockid = CLOCK_TAI; },
      [](Ask& ask) { ask.attr.use_clockid = 0, ask.attr.clockid = CLOCK_THREAD_CPUTIME_ID; },
      [](Ask& ask) { ask.attr.sample_type |= PERF_SAMPLE_WEIGHT; },
      [](Ask& ask) { ask.attr.sample_type |= PERF_SAMPLE_WEIGHT_STRUCT; },
      [](Ask& ask) { ask.attr.sample_regs_user = 1 << 12, ask.attr.sample_stack_user = 12; },
      [](Ask& ask) { ask.attr.sample_max_stack = 128; },  // without a callchain
      [](Ask& ask) { ask.attr.sigtrap = ask.attr.remove_on_exec = 1; },
      [](Ask& ask) { ask.attr.enable_on_exec = 1; },
      [](Ask& ask) { ask.attr.inherit = ask.attr.inherit_thread = 1, ask.cpu = 2; },
      [](Ask& ask) { ask.attr.inherit = ask.attr.inherit_stat = 1, ask.cpu = 2; },
      [](Ask& ask) { ask.attr.comm = ask.attr.comm_exec = 1; },
      [](Ask& ask) { ask.attr.mmap = ask.attr.mmap2 = ask.attr.build_id = 1; },
      [](Ask& ask) { ask.attr.mmap_data = ask.attr.mmap2 = 1; },
      [](Ask& ask) { ask.attr.exclude_user = 1, ask.attr.exclude_kernel = 0; },
      [](Ask& ask) { ask.attr.exclude_callchain_user = 1; },
      [](Ask& ask) { ask.attr.cgroup = ask.attr.comm = 1, ask.pid = -1, ask.cpu = 0; },
      [](Ask& ask) { ask.attr.cgroup = 1, ask.attr.context_switch = 0; },
      [](Ask& ask) { ask.attr.namespaces = 1, ask.attr.context_switch = 0; },
      [](Ask& ask) { ask.attr.sample_type |= PERF_SAMPLE_PHYS_ADDR; },
      [](Ask& ask) { ask.group_fd = -1, ask.flags = PERF_FLAG_FD_NO_GROUP; },
      [](Ask& ask) { ask.flags = PERF_FLAG_PID_CGROUP, ask.pid = 4711, ask.cpu = 0; },
#if defined(__x86_64__)
      [](Ask& ask) {
        ask.attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR;
        ask.attr.sample_regs_user = ask.attr.sample_regs_intr = 0xff0fff;
      },
#endif
      // As the kernel finds it, from the working directory.
      [](Ask& ask) {
        static const char* const kPath = "bin/true";
        ask.attr.type = 9;
        ask.attr.config = 0;
        ask.attr.config1 = reinterpret_cast<std::uintptr_t>(kPath);
        ask.attr.sample_period = 1;
      }};
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    FakeSystem machine;
    machine.kinds["bin/true"] = {FileKind::Type::Regular, 8192, 0};
    machine.be_root();
    Ask ask = right();
    allowed[i](ask);
    const auto found = check(ask, machine);
    EXPECT_TRUE(found.empty()) << i << ": " << found.front().says;
  }
}

// For each row, the nearest event that is right.
TEST(CheckBoundsTest, AnEventThatNothingIsWrongWithHasNoFinding) {
  using Attr = perf_event_attr;
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const auto counted = [](Attr& attr) { attr.sample_period = 0, attr.freq = 0; };
  FakeSystem machine;
  machine.be_root();
  machine.kinds["/bin/true"] = {FileKind::Type::Regular, 4097, 0};
  machine.device("imc", 20);
  machine.files["/sys/kernel/security/lockdown"] = "none [integrity] confidentiality\n";
  std::vector<Event> sound{
      kFaults,
      kFaults.sample(PERF_SAMPLE_REGS_INTR).adjust([](Attr& a) { a.sample_regs_intr = 1; }),
      clock.period(10'000),
      clock.frequency(1),
      clock.callchain().kernel(Kernel::Excluded),
      software(PERF_COUNT_SW_DUMMY).adjust([](Attr& a) { a.ksymbol = 1; }),
      software(PERF_COUNT_SW_DUMMY).adjust([](Attr& a) { a.bpf_event = 1; }),
      software(PERF_COUNT_SW_DUMMY).adjust([](Attr& a) { a.text_poke = 1; }),
      software(PERF_COUNT_SW_CPU_MIGRATIONS),
      pmu("imc/config=1/").period(1000),
      kprobe("x", 4),
      kretprobe("x"),
      kprobe("x").adjust([](Attr& a) { a.config1 = 0, a.config2 = 0xffff; }),
      uprobe("/bin/true", 4096),
      uretprobe("/bin/true", 4096).adjust([](Attr& a) { a.config |= std::uint64_t{1} << 32; }),
      uprobe("/bin/true", 1).kernel(Kernel::Excluded),
      breakpoint(1, Access::Write, 1),
      breakpoint(2, Access::ReadWrite, 2),
      breakpoint(4, Access::Write, 4),
      breakpoint(8, Access::ReadWrite, 8),
      breakpoint(3, Access::Execute, 0),
  };
#if __SIZEOF_POINTER__ == 8
  sound.push_back(breakpoint(kKernelAddress, Access::Write));
#endif
  for (const Event& each : sound) {
    Ask ask;
    ask.attr = each.attr(machine).value();
    const auto found = check(ask, machine);
    EXPECT_TRUE(found.empty()) << each.name() << ": " << found.front().says;
  }
  // Of one CPU.
  for (const Event& each : {kSwitch, pmu("imc/config=1/").adjust([](Attr& a) {
                              a.exclude_idle = 1, a.sample_period = 1000;
                            })}) {
    Ask ask{.pid = -1, .cpu = 0};
    ask.attr = each.attr(machine).value();
    const auto found = check(ask, machine);
    EXPECT_TRUE(found.empty()) << each.name() << ": " << found.front().says;
  }
  // Of a group, which only counts.
  for (const Event& each : {kFaults.adjust(counted), clock.adjust(counted), pmu("msr/tsc/")}) {
    const auto found = check_group({.events = {each}, .target = this_thread()}, machine);
    EXPECT_TRUE(found.empty()) << each.name() << ": " << found.front().says;
  }
}

// perf_event_paranoid, the caller's capability, and what is kept from the caller.
TEST(CheckBoundsTest, EachLevelOfParanoidKeepsItsPartFromAPlainUser) {
  const auto refused = [](const char* level, unsigned long long capabilities, Ask ask) {
    FakeSystem machine;
    machine.capabilities(capabilities);
    machine.files["/proc/sys/kernel/perf_event_paranoid"] = level;
    std::string fields;
    for (const Finding& each : check(ask, machine)) {
      if (each.severity == kRefused) fields += each.field + " ";
    }
    return fields;
  };
  FakeSystem machine;
  machine.be_root();
  const auto of = [&machine](const Event& event, pid_t pid) {
    Ask ask;
    ask.attr = event.attr(machine).value();
    ask.pid = pid;
    ask.cpu = pid == -1 ? 0 : -1;
    return ask;
  };
  constexpr unsigned long long kPerfmon = 1ULL << 38;
  constexpr unsigned long long kAdmin = 1ULL << 21;
  const Ask user = of(kFaults.kernel(Kernel::Excluded), 0);
  const Ask kernel = of(kFaults.sample(PERF_SAMPLE_PHYS_ADDR), 0);
  const Ask all = of(kFaults.kernel(Kernel::Excluded), -1);
  const Ask traced = of(kSwitch, 0);
  for (const char* const level : {"-1", "0", "1", "2"}) {
    EXPECT_EQ(refused(level, 0, user), "") << level;
    for (const Ask& each : {user, kernel, all, traced}) {
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
       as(kSwitch, [](Ask& ask) { ask.attr.config = 0; }), "pid "},
      {"AttrSizeBelowTheFirst", "size", kRefused, "63 bytes", set([](Attr& a) { a.size = 63; })},
      {"AttrSizeAboveAPage", "size", kRefused, "4097", set([](Attr& a) { a.size = 4097; })},
      {"FrequencyAboveTheLimit", "sample_freq", kRefused, "100001 Hz",
       as(kFaults.frequency(100001))},
      {"PeriodOf64Bits", "sample_period", kRefused, "63 bits",
       as(kFaults.period(std::uint64_t{1} << 63))},
      {"NoCpuAndNoTask", "cpu", kRefused, "needs a CPU", put([](Ask& a) { a.pid = -1; }), "pid "},
      {"CpuNotPossible", "cpu", kRefused, "no CPU 4", put([](Ask& a) { a.pid = -1, a.cpu = 4; }),
       "pid "},
      {"CpuOfflineOfAll", "cpu", kRefused, "offline: CPU 3",
       put([](Ask& a) { a.pid = -1, a.cpu = 3; }), "pid "},
      {"CpuOfflineOfOneTask", "cpu", kSilent, "offline: CPU 3", put([](Ask& a) { a.cpu = 3; })},
      {"PidNegative", "pid", kRefused, "no such process", put([](Ask& a) { a.pid = -2; })},
      {"PidGone", "pid", kRefused, "no process 4711", put([](Ask& a) { a.pid = 4711; })},
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
      {"BranchTypeOfPrivilegesAlone", "branch_sample_type", kRefused, "no sort", set([](Attr& a) {
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
       put([](Ask& a) { a.group_fd = -2; })},
      {"CgroupWithoutACpu", "cpu", kRefused, "cgroup",
       put([](Ask& a) { a.flags = PERF_FLAG_PID_CGROUP; }), "pid "},
      {"AuxOutputOfABreakpoint", "aux_output", kRefused, "AUX",
       as(breakpoint(4096, Access::Write), [](Ask& ask) { ask.attr.aux_output = 1; })},
      {"BranchStackOfABreakpoint", "sample_type", kRefused, "LBR",
       as(breakpoint(4096, Access::Write),
          [](Ask& ask) { ask.attr.sample_type |= PERF_SAMPLE_BRANCH_STACK; }),
       "branch_sample_type "},
      {"ClockThatNoPmuReads", "clockid", kRefused, "cannot read this clock",
       as(hardware(PERF_COUNT_HW_CPU_CYCLES), [](Ask& ask) { ask.attr.clockid = CLOCK_BOOTTIME; }),
       "type "},
      {"SigtrapOfAllTasks", "sigtrap", kRefused, "all tasks are watched", put([](Ask& ask) {
         ask.pid = -1;
         ask.cpu = 0;
         ask.attr.sigtrap = ask.attr.remove_on_exec = 1;
       }),
       "pid remove_on_exec "},
      {"MsrWithoutIdleTime", "exclude_idle", kRefused, "msr cannot",
       as(pmu("msr/tsc/"), [](Ask& ask) { ask.attr.exclude_idle = 1; }), "sample_period "},
      {"MsrWithoutTheKernel", "exclude_kernel", kRefused, "msr cannot",
       as(pmu("msr/tsc/").kernel(Kernel::Excluded)), "sample_period "},
      {"MsrWithAPeriod", "sample_period", kRefused, "msr only counts",
       as(pmu("msr/tsc/").period(1000))},
      {"MsrWithAFrequency", "sample_period", kRefused, "msr only counts",
       as(pmu("msr/tsc/").frequency(99))},
      {"UncorePmuOfATask", "pid", kRefused, "whole CPU",
       [](Ask& ask, FakeSystem& machine) {
         machine.device("imc", 20);
         machine.files["/sys/bus/event_source/devices/imc/cpumask"] = "0\n";
         as(pmu("imc/config=1/"))(ask, machine);
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
    return [path, kind](Ask& ask, FakeSystem& machine) {
      machine.kinds[path] = kind;
      as(uprobe(path, 4096))(ask, machine);
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
       [with](Ask& ask, FakeSystem& machine) {
         with("/bin/true", {Type::Regular, 8192, 0})(ask, machine);
         ask.attr.config = 2;
       }},
      {"KprobeNoName", "kprobe_func", kRefused, "needs a function", as(kprobe(""))},
      {"KretprobeNoName", "kprobe_func", kRefused, "function's name",
       as(kretprobe("x"), [](Ask& ask) { ask.attr.config1 = 0; })},
      {"KretprobeInside", "probe_offset", kRefused, "at an offset",
       as(kretprobe("x"), [](Ask& ask) { ask.attr.config2 = 4; })},
      {"BreakpointLength", "bp_len", kRefused, "3", watching(4096, Access::ReadWrite, 3)},
      {"BreakpointOfExecutionLength", "bp_len", kRefused, "sizeof(long)",
       as(breakpoint(4096, Access::Execute), [](Ask& ask) { ask.attr.bp_len = 1; })},
      {"BreakpointUnaligned", "bp_addr", kRefused, "multiple",
       watching(4097, Access::ReadWrite, 4)},
      {"BreakpointBothSorts", "bp_type", kRefused, "or on execution",
       as(breakpoint(4096, Access::Write),
          [](Ask& ask) { ask.attr.bp_type = 6, ask.attr.bp_len = 2; }),
       "bp_len "},
      {"BreakpointNoSort", "bp_type", kRefused, "or on execution",
       as(breakpoint(4096, Access::Write), [](Ask& ask) { ask.attr.bp_type = 0; })},
#if defined(__x86_64__) || defined(__i386__)
      {"BreakpointOfReads", "bp_type", kRefused, "reads alone", watching(4096, Access::Read, 4)},
#endif
#if __SIZEOF_POINTER__ == 8
      {"BreakpointKernelExcluded", "bp_addr", kRefused, "excluded",
       as(breakpoint(kKernelAddress, Access::Write).kernel(Kernel::Excluded))},
#endif
  };
}

std::vector<CheckRow> forbidden() {
  const auto plain = [](Event event, auto change) {
    return [event, change](Ask& ask, FakeSystem& machine) {
      as(event, [](Ask&) {})(ask, machine);
      machine.capabilities(0);
      change(ask, machine);
    };
  };
  const auto nothing = [](Ask&, FakeSystem&) {};
  const auto paranoid = [](const char* level) {
    return [level](Ask&, FakeSystem& machine) {
      machine.files["/proc/sys/kernel/perf_event_paranoid"] = level;
    };
  };
  std::vector<CheckRow> rows{
      {"KernelAtParanoid2", "exclude_kernel", kRefused, "paranoid is 2", plain(kFaults, nothing)},
      {"AllTasksAtParanoid1", "pid", kRefused, "paranoid is 1",
       plain(kFaults,
             [paranoid](Ask& ask, FakeSystem& machine) {
               ask.pid = -1;
               ask.cpu = 0;
               paranoid("1")(ask, machine);
             })},
      {"CgroupAtParanoid1", "pid", kRefused, "all tasks",
       plain(kFaults,
             [paranoid](Ask& ask, FakeSystem& machine) {
               ask.flags = PERF_FLAG_PID_CGROUP;
               ask.cpu = 0;
               paranoid("1")(ask, machine);
             })},
      {"AnotherUsersTask", "pid", kRefused, "another user's",
       plain(kFaults, [](Ask& ask, FakeSystem&) { ask.pid = 88; }), "exclude_kernel "},
      {"RawTracepointAtParanoid0", "sample_type", kRefused, "data of a kernel tracepoint",
       plain(kSwitch, paranoid("0")), "pid "},
      {"Namespaces", "namespaces", kRefused, "whatever kernel.perf_event_paranoid",
       plain(changes({.namespaces = true}), paranoid("-1"))},
      {"PhysicalAddress", "sample_type", kRefused, "physical",
       plain(kFaults.sample(PERF_SAMPLE_PHYS_ADDR), nothing), "exclude_kernel "},
      {"RegistersUnderConfidentiality", "sample_type", kRefused, "locked down",
       plain(kFaults.sample(PERF_SAMPLE_REGS_INTR),
             [](Ask&, FakeSystem& machine) {
               machine.files["/sys/kernel/security/lockdown"] =
                   "none integrity [confidentiality]\n";
             }),
       "sample_regs_intr exclude_kernel "},
      {"UprobeWithPerfmon", "type", kRefused, "CAP_SYS_ADMIN",
       plain(uprobe("/bin/true", 1), [](Ask&, FakeSystem& machine) { machine.be_perfmon(); }),
       "uprobe_path "},
      {"KprobeOfAPlainUser", "type", kRefused, "CAP_PERFMON", plain(kprobe("x"), paranoid("-1"))},
  };
#if __SIZEOF_POINTER__ == 8
  rows.push_back({"KernelBreakpointWithPerfmon", "bp_addr", kRefused, "CAP_SYS_ADMIN",
                  plain(breakpoint(kKernelAddress, Access::Write),
                        [](Ask&, FakeSystem& machine) { machine.be_perfmon(); })});
#endif
  return rows;
}

std::vector<CheckRow> silent() {
  using Attr = perf_event_attr;
  const auto all = [](Ask& ask) { ask.pid = -1, ask.cpu = 0; };
  const auto excluded = [](Ask& ask) { ask.attr.exclude_kernel = 1; };
  return {
      {"NoPeriod", "sample_period", kSilent, "writes no record", as(kFaults.period(0))},
      {"SwitchesWithoutKernel", "exclude_kernel", kSilent, "counts nothing",
       as(software(PERF_COUNT_SW_CONTEXT_SWITCHES), excluded)},
      {"MigrationsWithoutKernel", "exclude_kernel", kSilent, "counts nothing",
       as(software(PERF_COUNT_SW_CPU_MIGRATIONS), excluded)},
      {"CgroupSwitchesWithoutKernel", "exclude_kernel", kSilent, "counts nothing",
       as(software(PERF_COUNT_SW_CGROUP_SWITCHES), excluded)},
      {"TracepointWithoutKernel", "exclude_kernel", kSilent, "R16", as(kSwitch, excluded), "pid "},
      {"KprobeWithoutKernel", "exclude_kernel", kSilent, "kprobe", as(kprobe("x"), excluded)},
      {"TracepointWithoutUser", "exclude_user", kSilent, "ignore",
       as(kSwitch, [](Ask& ask) { ask.attr.exclude_user = 1; }), "pid "},
      {"ClockOfNobody", "exclude_user", kSilent, "both excluded",
       as(software(PERF_COUNT_SW_CPU_CLOCK),
          [](Ask& ask) { ask.attr.exclude_user = ask.attr.exclude_kernel = 1; })},
      {"CallchainOfNobody", "exclude_callchain_user", kSilent, "empty",
       as(kFaults.callchain(),
          [](Ask& ask) {
            ask.attr.exclude_callchain_user = ask.attr.exclude_callchain_kernel = 1;
          })},
      {"DummyAlone", "config", kSilent, "never occurs", set([](Attr& a) { a.context_switch = 0; })},
      {"CgroupAlone", "cgroup", kSilent, "R10",
       as(changes({.cgroups = true}), [all](Ask& ask) { all(ask), ask.attr.comm = 0; })},
      {"NamespacesAlone", "namespaces", kSilent, "R10",
       as(changes({.namespaces = true}), [all](Ask& ask) { all(ask), ask.attr.comm = 0; })},
      {"TracepointOfOneTask", "pid", kSilent, "other tasks", as(kSwitch)},
      {"TracepointByFrequency", "freq", kSilent, "5 of 100", as(kSwitch.frequency(4000)), "pid "},
      {"TracepointOfAThousand", "sample_period", kSilent, "1000th", as(kSwitch.period(1000)),
       "pid "},
      {"BpfOutput", "config", kSilent, "BPF programs", as(software(PERF_COUNT_SW_BPF_OUTPUT))},
      {"ClockPeriodTooShort", "sample_period", kSilent, "10000",
       as(software(PERF_COUNT_SW_TASK_CLOCK).period(100))},
      {"PreciseIpOfSoftware", "precise_ip", kSilent, "precise",
       set([](Attr& a) { a.precise_ip = 2; })},
      {"EnableOnExecOfACpu", "enable_on_exec", kSilent, "execve",
       put([all](Ask& ask) { all(ask), ask.attr.enable_on_exec = 1; }), "pid "},
      {"RemoveOnExecOfACpu", "remove_on_exec", kSilent, "execve",
       put([all](Ask& ask) { all(ask), ask.attr.remove_on_exec = 1; }), "pid "},
      {"InheritStatAlone", "inherit_stat", kSilent, "inherited",
       set([](Attr& a) { a.inherit_stat = 1; })},
      {"CommExecAlone", "comm_exec", kSilent, "no COMM", set([](Attr& a) { a.comm_exec = 1; })},
      {"Mmap2Alone", "mmap2", kSilent, "no MMAP", set([](Attr& a) { a.mmap2 = 1; })},
      {"BuildIdAlone", "build_id", kSilent, "no MMAP2", set([](Attr& a) { a.build_id = 1; })},
      {"WrittenBackwards", "write_backward", kSilent, "reads forwards",
       set([](Attr& a) { a.write_backward = 1; })},
      {"WakeupsOfSideBand", "wakeup_events", kSilent, "R3",
       set([](Attr& a) { a.watermark = 0, a.wakeup_events = 1; })},
#if defined(__x86_64__) || defined(__i386__)
      {"AlignmentFaults", "config", kSilent, "no such faults",
       as(software(PERF_COUNT_SW_ALIGNMENT_FAULTS))},
      {"EmulationFaults", "config", kSilent, "no such faults",
       as(software(PERF_COUNT_SW_EMULATION_FAULTS))},
#endif
  };
}

INSTANTIATE_TEST_SUITE_P(Impossible, CheckTest, ::testing::ValuesIn(impossible()), row_name);
INSTANTIATE_TEST_SUITE_P(Probes, CheckTest, ::testing::ValuesIn(probes()), row_name);
INSTANTIATE_TEST_SUITE_P(Forbidden, CheckTest, ::testing::ValuesIn(forbidden()), row_name);
INSTANTIATE_TEST_SUITE_P(Silent, CheckTest, ::testing::ValuesIn(silent()), row_name);

}  // namespace
}  // namespace perfring::event
