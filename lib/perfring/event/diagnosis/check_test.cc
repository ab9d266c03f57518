// check()'s findings about single events: correct ones, each row of the table of silent events in
// RECORD_FACTS.md, and groups.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
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
using testing::kSilent;
using testing::kSwitch;
using testing::put;
using testing::right;
using testing::row_name;
using testing::set;

// Values at a bound are accepted.
TEST(CheckBoundsTest, TheBoundItselfIsAllowed) {
  const std::vector<void (*)(OpenArgs&)> allowed{
      [](OpenArgs& args) { args.attr.freq = 1, args.attr.sample_freq = 100'000; },
      [](OpenArgs& args) { args.attr.sample_period = ~std::uint64_t{0} >> 1; },
      [](OpenArgs& args) { args.attr.size = PERF_ATTR_SIZE_VER0; },
      [](OpenArgs& args) { args.attr.size = 4096; }, [](OpenArgs& args) { args.attr.size = 0; },
      [](OpenArgs& args) { args.cpu = 2; },
      [](OpenArgs& args) {
        args.pid = 77;
      },  // its effective user is this user, its real user is not
      [](OpenArgs& args) {
        args.attr.sample_type |= PERF_SAMPLE_STACK_USER;
        args.attr.sample_stack_user = 65528;
      },
      [](OpenArgs& args) {
        args.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
        args.attr.sample_max_stack = 127;
      },
      [](OpenArgs& args) {
        args.attr.config = PERF_COUNT_SW_CGROUP_SWITCHES, args.attr.exclude_kernel = 0;
      },
      [](OpenArgs& args) { args.attr.clockid = CLOCK_REALTIME; },
      [](OpenArgs& args) { args.attr.clockid = CLOCK_MONOTONIC_RAW; },
      [](OpenArgs& args) { args.attr.clockid = CLOCK_BOOTTIME; },
      [](OpenArgs& args) { args.attr.clockid = CLOCK_TAI; },
      [](OpenArgs& args) {
        args.attr.use_clockid = 0, args.attr.clockid = CLOCK_THREAD_CPUTIME_ID;
      },
      [](OpenArgs& args) { args.attr.sample_type |= PERF_SAMPLE_WEIGHT; },
      [](OpenArgs& args) { args.attr.sample_type |= PERF_SAMPLE_WEIGHT_STRUCT; },
      [](OpenArgs& args) {
        args.attr.sample_regs_user = 1 << 12, args.attr.sample_stack_user = 12;
      },
      [](OpenArgs& args) { args.attr.sample_max_stack = 128; },  // without a callchain
      [](OpenArgs& args) { args.attr.sigtrap = args.attr.remove_on_exec = 1; },
      [](OpenArgs& args) { args.attr.enable_on_exec = 1; },
      [](OpenArgs& args) { args.attr.inherit = args.attr.inherit_thread = 1, args.cpu = 2; },
      [](OpenArgs& args) { args.attr.inherit = args.attr.inherit_stat = 1, args.cpu = 2; },
      [](OpenArgs& args) { args.attr.comm = args.attr.comm_exec = 1; },
      [](OpenArgs& args) { args.attr.mmap = args.attr.mmap2 = args.attr.build_id = 1; },
      [](OpenArgs& args) { args.attr.mmap_data = args.attr.mmap2 = 1; },
      [](OpenArgs& args) { args.attr.exclude_user = 1, args.attr.exclude_kernel = 0; },
      [](OpenArgs& args) { args.attr.exclude_callchain_user = 1; },
      [](OpenArgs& args) { args.attr.cgroup = args.attr.comm = 1, args.pid = -1, args.cpu = 0; },
      [](OpenArgs& args) { args.attr.cgroup = 1, args.attr.context_switch = 0; },
      [](OpenArgs& args) { args.attr.namespaces = 1, args.attr.context_switch = 0; },
      [](OpenArgs& args) { args.attr.sample_type |= PERF_SAMPLE_PHYS_ADDR; },
      [](OpenArgs& args) { args.group_fd = -1, args.flags = PERF_FLAG_FD_NO_GROUP; },
      [](OpenArgs& args) { args.flags = PERF_FLAG_PID_CGROUP, args.pid = 4711, args.cpu = 0; },
#if defined(__x86_64__)
      [](OpenArgs& args) {
        args.attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR;
        args.attr.sample_regs_user = args.attr.sample_regs_intr = 0xff0fff;
      },
#endif
      // A path relative to the working directory, as the kernel resolves it.
      [](OpenArgs& args) {
        static const char* const kPath = "bin/true";
        args.attr.type = 9;
        args.attr.config = 0;
        args.attr.config1 = reinterpret_cast<std::uintptr_t>(kPath);
        args.attr.sample_period = 1;
      }};
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    FakeSystem machine;
    machine.kinds["bin/true"] = {FileKind::Type::Regular, 8192, 0};
    machine.be_root();
    OpenArgs args = right();
    allowed[i](args);
    const auto found = check(args, machine);
    EXPECT_TRUE(found.empty()) << i << ": " << found.front().says;
  }
}

// For each row of the tables, a correct event that is similar to it.
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
    OpenArgs args;
    args.attr = each.attr(machine).value();
    const auto found = check(args, machine);
    EXPECT_TRUE(found.empty()) << each.name() << ": " << found.front().says;
  }
  // Requests for one CPU.
  for (const Event& each : {kSwitch, pmu("imc/config=1/").adjust([](Attr& a) {
                              a.exclude_idle = 1, a.sample_period = 1000;
                            })}) {
    OpenArgs args{.pid = -1, .cpu = 0};
    args.attr = each.attr(machine).value();
    const auto found = check(args, machine);
    EXPECT_TRUE(found.empty()) << each.name() << ": " << found.front().says;
  }
  // A group, which only counts.
  for (const Event& each : {kFaults.adjust(counted), clock.adjust(counted), pmu("msr/tsc/")}) {
    const auto found = check_group({.events = {each}, .target = this_thread()}, machine);
    EXPECT_TRUE(found.empty()) << each.name() << ": " << found.front().says;
  }
}

class CheckSilentTest : public ::testing::TestWithParam<CheckRow> {};

TEST_P(CheckSilentTest, FindingNamesFieldWithReason) {
  testing::expect_finding(GetParam());
}

std::vector<CheckRow> silent() {
  using Attr = perf_event_attr;
  static constexpr auto all = [](OpenArgs& args) { args.pid = -1, args.cpu = 0; };
  const auto excluded = [](OpenArgs& args) { args.attr.exclude_kernel = 1; };
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
       as(kSwitch, [](OpenArgs& args) { args.attr.exclude_user = 1; }), "pid "},
      {"ClockOfNobody", "exclude_user", kSilent, "both excluded",
       as(software(PERF_COUNT_SW_CPU_CLOCK),
          [](OpenArgs& args) { args.attr.exclude_user = args.attr.exclude_kernel = 1; })},
      {"CallchainOfNobody", "exclude_callchain_user", kSilent, "empty",
       as(kFaults.callchain(),
          [](OpenArgs& args) {
            args.attr.exclude_callchain_user = args.attr.exclude_callchain_kernel = 1;
          })},
      {"DummyAlone", "config", kSilent, "never occurs", set([](Attr& a) { a.context_switch = 0; })},
      {"CgroupAlone", "cgroup", kSilent, "R10",
       as(changes({.cgroups = true}), [](OpenArgs& args) { all(args), args.attr.comm = 0; })},
      {"NamespacesAlone", "namespaces", kSilent, "R10",
       as(changes({.namespaces = true}), [](OpenArgs& args) { all(args), args.attr.comm = 0; })},
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
       put([](OpenArgs& args) { all(args), args.attr.enable_on_exec = 1; }), "pid "},
      {"RemoveOnExecOfACpu", "remove_on_exec", kSilent, "execve",
       put([](OpenArgs& args) { all(args), args.attr.remove_on_exec = 1; }), "pid "},
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

INSTANTIATE_TEST_SUITE_P(Silent, CheckSilentTest, ::testing::ValuesIn(silent()), row_name);

TEST(CheckMemberTest, AFieldThatAMemberMayNotHaveIsNamed) {
  OpenArgs leader;
  leader.attr = kFaults.attr().value();
  const auto field = [&](auto change) {
    OpenArgs member = leader;
    change(member);
    const auto found = check_member(member, leader);
    return found.empty() ? std::string{} : found.front().field;
  };
  EXPECT_EQ(field([](OpenArgs&) {}), "");
  EXPECT_EQ(field([](OpenArgs& args) { args.cpu = 1; }), "cpu");
  EXPECT_EQ(field([](OpenArgs& args) { args.pid = -1; }), "pid");
  EXPECT_EQ(field([](OpenArgs& args) { args.attr.clockid = CLOCK_REALTIME; }), "clockid");
  EXPECT_EQ(field([](OpenArgs& args) { args.attr.use_clockid = 0; }), "clockid");
  EXPECT_EQ(field([](OpenArgs& args) { args.attr.pinned = 1; }), "pinned");
  EXPECT_EQ(field([](OpenArgs& args) { args.attr.exclusive = 1; }), "exclusive");
  EXPECT_EQ(field([](OpenArgs& args) { args.attr.inherit = 1; }), "inherit");
  leader.pid = -1, leader.cpu = 0;
  EXPECT_EQ(field([](OpenArgs& args) { args.attr.inherit = 1; }), "") << "a CPU's events ignore it";
}

TEST(CheckGroupTest, EachMemberIsComparedWithTheLeader) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](auto change, const Event& leader = kFaults) {
    std::string all;
    const Request request{.events = {leader, kSwitch.adjust(change), kFaults.adjust(change)},
                          .target = event::system()};
    for (const Finding& each : check_group(request, machine)) all += each.field + " ";
    return all;
  };
  using Attr = perf_event_attr;
  EXPECT_EQ(of([](Attr&) {}), "") << "nothing is sampled, nothing mapped, nothing waited for";
  EXPECT_EQ(of([](Attr& a) { a.pinned = 1; }), "pinned pinned ");
  EXPECT_EQ(of([](Attr& a) { a.exclusive = 1; }), "exclusive exclusive ");
  EXPECT_EQ(of([](Attr& a) { a.use_clockid = 0; }), "clockid clockid ");
  EXPECT_EQ(of([](Attr&) {}, kFaults.adjust([](Attr& a) { a.pinned = a.exclusive = 1; })), "");
  EXPECT_EQ(of([](Attr& a) { a.type = 99; }), "type type ") << "and each by itself";
  const auto own = [&](std::vector<Event> events) {
    std::string all;
    for (const Finding& each : check_group(
             {.events = std::move(events), .target = this_thread(), .page_count = 3}, machine)) {
      all += each.field + " ";
    }
    return all;
  };
  const Event inherited = kFaults.adjust([](Attr& a) { a.inherit = 1; });
  EXPECT_EQ(own({inherited, inherited}), "") << "R9 is about mmap()";
  EXPECT_EQ(own({inherited, kFaults}), "inherit ");
  EXPECT_EQ(own({}), "events ");
  EXPECT_EQ(own(std::vector<Event>(64, kFaults)), "");
  EXPECT_EQ(own(std::vector<Event>(65, kFaults)), "fd ");
}

}  // namespace
}  // namespace perfring::event
