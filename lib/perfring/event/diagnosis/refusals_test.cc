// Replays refusals as they were observed on kernels. The cause is found by asking again.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
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
using testing::paranoid2;
using testing::row_name;

// A request that a kernel refuses, and the kernel's answers.
struct Refusal {
  std::string name;
  std::function<void(OpenArgs&)> change;
  std::function<int(const OpenArgs&)> answer;
  std::string fields;  // of the causes, in order
};

void PrintTo(const Refusal& row, std::ostream* out) {
  *out << row.name;
}

// Refuses depending on the attributes alone.
auto refuses(int error, bool (*is)(const perf_event_attr&)) {
  return [error, is](const OpenArgs& args) { return is(args.attr) ? error : 0; };
}
auto with(void (*change)(perf_event_attr&)) {
  return [change](OpenArgs& args) { change(args.attr); };
}

// A kernel that opens these kinds of events only for users with a specific privilege
// (kernel/events/core.c: perf_uprobe_event_init(), kernel/events/hw_breakpoint.c:
// hw_breakpoint_parse()).
auto missing_own_right(int error, bool (*is)(const perf_event_attr&)) {
  return [error, is](const OpenArgs& args) {
    if (const int first = paranoid2(args)) return first;
    return is(args.attr) ? error : 0;
  };
}

// The word after aux_sample_size, which has a name since Linux 6.13. Its bits are in declaration
// order.
std::uint32_t aux_action(const perf_event_attr& attr) {
  std::uint32_t word = 0;
  const auto* const bytes = reinterpret_cast<const std::byte*>(&attr);
  std::memcpy(&word, bytes + offsetof(perf_event_attr, aux_sample_size) + 4, sizeof word);
  return word;
}
void set_aux_action(perf_event_attr& attr, unsigned bit) {
  const unsigned shift = std::endian::native == std::endian::little ? bit : 31 - bit;
  const std::uint32_t word = aux_action(attr) | std::uint32_t{1} << shift;
  auto* const bytes = reinterpret_cast<std::byte*>(&attr);
  std::memcpy(bytes + offsetof(perf_event_attr, aux_sample_size) + 4, &word, sizeof word);
}

std::vector<Refusal> refusals() {
  using Attr = perf_event_attr;
  constexpr std::uint64_t kNewBit = std::uint64_t{1} << 40;
  return {
      {"NoPmu", with([](Attr& a) { a.type = PERF_TYPE_HARDWARE; }),
       refuses(ENOENT, [](const Attr& a) { return a.type == PERF_TYPE_HARDWARE; }), "type"},
      {"NoPmuAndNoRight",
       with([](Attr& a) { a.type = PERF_TYPE_HARDWARE, a.exclude_kernel = a.exclude_hv = 0; }),
       [](const OpenArgs& args) {
         if (const int first = paranoid2(args)) return first;
         return args.attr.type == PERF_TYPE_HARDWARE ? ENOENT : 0;
       },
       "exclude_kernel type"},
      {"SoftwareConfig", with([](Attr& a) { a.config = 12; }),
       refuses(ENOENT, [](const Attr& a) { return a.config == 12; }), "config"},
      {"ThreeThingsEachBehindTheOther", with([](Attr& a) {
         a.sample_period = std::uint64_t{1} << 63, a.aux_output = 1, a.config = 12;
       }),
       [](const OpenArgs& args) {
         if (args.attr.sample_period >> 63 != 0) return EINVAL;
         if (args.attr.aux_output != 0) return EOPNOTSUPP;
         return args.attr.config == 12 ? ENOENT : 0;
       },
       "sample_period aux_output config"},
      {"KernelIncluded", with([](Attr& a) { a.exclude_kernel = 0; }), paranoid2, "exclude_kernel"},
      {"AllTasks", [](OpenArgs& args) { args.pid = -1, args.cpu = 0; }, paranoid2, "pid"},
      {"AllTasksWithKernel",
       [](OpenArgs& args) { args.pid = -1, args.cpu = 0, args.attr.exclude_kernel = 0; }, paranoid2,
       "pid, exclude_kernel"},
      {"Cgroup",
       [](OpenArgs& args) { args.pid = 7, args.cpu = 0, args.flags = PERF_FLAG_PID_CGROUP; },
       paranoid2, "pid"},
      {"AnotherUsersTask", [](OpenArgs& args) { args.pid = 88; },
       [](const OpenArgs& args) { return args.pid == 88 ? EACCES : 0; }, "pid"},
      {"Namespaces", with([](Attr& a) { a.namespaces = 1; }),
       refuses(EACCES, [](const Attr& a) { return a.namespaces != 0; }), "namespaces"},
      {"PhysicalAddress", with([](Attr& a) { a.sample_type |= PERF_SAMPLE_PHYS_ADDR; }),
       refuses(EACCES, [](const Attr& a) { return (a.sample_type & PERF_SAMPLE_PHYS_ADDR) != 0; }),
       "PERF_SAMPLE_PHYS_ADDR"},
      {"RegistersUnderLockdown",
       with([](Attr& a) { a.sample_type |= PERF_SAMPLE_REGS_INTR, a.sample_regs_intr = 1; }),
       refuses(EPERM, [](const Attr& a) { return (a.sample_type & PERF_SAMPLE_REGS_INTR) != 0; }),
       "PERF_SAMPLE_REGS_INTR"},
      {"Frequency", with([](Attr& a) { a.freq = 1, a.sample_freq = 200'000; }),
       refuses(EINVAL, [](const Attr& a) { return a.freq && a.sample_freq > 100'000; }),
       "sample_freq"},
      {"Period", with([](Attr& a) { a.sample_period = std::uint64_t{1} << 63; }),
       refuses(EINVAL, [](const Attr& a) { return a.sample_period >> 63 != 0; }), "sample_period"},
      {"SampleTypeOfANewerKernel", with([](Attr& a) { a.sample_type |= kNewBit; }),
       refuses(EINVAL, [](const Attr& a) { return (a.sample_type & kNewBit) != 0; }),
       "PERF_SAMPLE_(bit 40)"},
      {"ReadFormatOfANewerKernel", with([](Attr& a) { a.read_format |= PERF_FORMAT_LOST; }),
       refuses(EINVAL, [](const Attr& a) { return (a.read_format & PERF_FORMAT_LOST) != 0; }),
       "PERF_FORMAT_LOST"},
      {"FlagOfANewerKernel", with([](Attr& a) { a.inherit_thread = 1; }),
       refuses(EINVAL, [](const Attr& a) { return a.inherit_thread != 0; }), "inherit_thread"},
      {"BranchTypeOfANewerKernel", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | std::uint64_t{1} << 19;
       }),
       refuses(EINVAL,
               [](const Attr& a) { return (a.branch_sample_type & std::uint64_t{1} << 19) != 0; }),
       "PERF_SAMPLE_BRANCH_COUNTERS"},
      {"BothWeights",
       with([](Attr& a) { a.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT; }),
       refuses(EINVAL,
               [](const Attr& a) {
                 return (a.sample_type & PERF_SAMPLE_WEIGHT_TYPE) == PERF_SAMPLE_WEIGHT_TYPE;
               }),
       "PERF_SAMPLE_WEIGHT PERF_SAMPLE_WEIGHT_STRUCT"},
      {"BranchStackOfSoftware", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
       }),
       refuses(EOPNOTSUPP,
               [](const Attr& a) { return (a.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0; }),
       "PERF_SAMPLE_BRANCH_STACK"},
      {"Registers",
       with([](Attr& a) { a.sample_type |= PERF_SAMPLE_REGS_USER, a.sample_regs_user = 0x1000; }),
       refuses(EINVAL,
               [](const Attr& a) {
                 return (a.sample_type & PERF_SAMPLE_REGS_USER) != 0 && a.sample_regs_user != 1;
               }),
#if defined(__x86_64__)
       "sample_regs_user"},
#else
       "PERF_SAMPLE_REGS_USER sample_regs_user"},
#endif
      {"Stack",
       with([](Attr& a) { a.sample_type |= PERF_SAMPLE_STACK_USER, a.sample_stack_user = 12; }),
       refuses(EINVAL,
               [](const Attr& a) {
                 return (a.sample_type & PERF_SAMPLE_STACK_USER) && a.sample_stack_user % 8 != 0;
               }),
       "sample_stack_user"},
      {"CallchainDepth", with([](Attr& a) { a.sample_max_stack = 1000; }),
       refuses(EOVERFLOW, [](const Attr& a) { return a.sample_max_stack > 127; }),
       "sample_max_stack"},
      {"Clock", with([](Attr& a) { a.clockid = 2; }),
       refuses(EINVAL, [](const Attr& a) { return a.use_clockid && a.clockid == 2; }),
       "clockid use_clockid"},
      {"Sigtrap", with([](Attr& a) { a.sigtrap = 1; }),
       refuses(EINVAL, [](const Attr& a) { return a.sigtrap && !a.remove_on_exec; }), "sigtrap"},
      {"OnExec", with([](Attr& a) { a.enable_on_exec = a.remove_on_exec = 1; }),
       refuses(EINVAL, [](const Attr& a) { return a.enable_on_exec && a.remove_on_exec; }),
       "enable_on_exec remove_on_exec"},
      {"InheritAndRead", with([](Attr& a) { a.inherit = 1, a.sample_type |= PERF_SAMPLE_READ; }),
       refuses(EINVAL,
               [](const Attr& a) { return a.inherit && (a.sample_type & PERF_SAMPLE_READ); }),
       "inherit"},
      {"AuxPause", with([](Attr& a) { set_aux_action(a, 1); }),
       refuses(EINVAL, [](const Attr& a) { return aux_action(a) != 0; }), "aux_pause"},
      {"AuxResumeAndStartPaused", with([](Attr& a) { set_aux_action(a, 0), set_aux_action(a, 2); }),
       [](const OpenArgs& args) {
         const std::uint32_t action = aux_action(args.attr);
         return action == 0 ? 0 : std::popcount(action) == 2 ? EINVAL : EOPNOTSUPP;
       },
       "aux_start_paused aux_resume"},
      {"AuxActionOfTheFuture", with([](Attr& a) { set_aux_action(a, 9); }),
       refuses(EINVAL, [](const Attr& a) { return aux_action(a) != 0; }), "aux_action"},
      {"Config3OfAnOlderKernel", [](OpenArgs& args) { args.config3 = 5; },
       [](const OpenArgs& args) { return args.config3 != 0 ? E2BIG : 0; }, "config3"},
      {"Config4OfAnOlderKernel", [](OpenArgs& args) { args.config3 = 5, args.config4 = 6; },
       [](const OpenArgs& args) { return args.config4 != 0 ? E2BIG : 0; }, "config4"},
      {"AuxOutput", with([](Attr& a) { a.aux_output = 1; }),
       refuses(EOPNOTSUPP, [](const Attr& a) { return a.aux_output != 0; }), "aux_output"},
      {"PmuWithoutExclusion", with([](Attr& a) { a.type = 10, a.exclude_hv = 0; }),
       refuses(EINVAL, [](const Attr& a) { return a.type == 10 && a.exclude_kernel; }),
       "exclude_kernel"},
      {"PmuWithoutExclusionAndNoRight",
       [](OpenArgs& args) {
         args.pid = -1, args.cpu = 0, args.attr.type = 10, args.attr.exclude_kernel = 0;
       },
       [](const OpenArgs& args) {
         if (const int first = paranoid2(args); first && !args.attr.exclude_kernel) return first;
         if (args.attr.type == 10 && args.attr.exclude_kernel) return EINVAL;
         return paranoid2(args);
       },
       "exclude_kernel"},
      {"PmuThatOnlyCounts",
       [](OpenArgs& args) {
         args.pid = -1, args.cpu = 0, args.attr.type = 20, args.attr.sample_period = 5;
       },
       refuses(EINVAL, [](const Attr& a) { return a.type == 20 && a.sample_period != 0; }),
       "sample_period"},
      {"PmuWithoutInterrupts",
       with([](Attr& a) { a.type = PERF_TYPE_HARDWARE, a.freq = 1, a.sample_freq = 99; }),
       refuses(EOPNOTSUPP,
               [](const Attr& a) { return a.type == PERF_TYPE_HARDWARE && a.sample_period != 0; }),
       "sample_period"},
      {"CgroupWithoutPerfEvent",
       [](OpenArgs& args) { args.pid = 7, args.cpu = 0, args.flags = PERF_FLAG_PID_CGROUP; },
       [](const OpenArgs& args) { return args.flags != 0 ? ENOENT : 0; }, "cgroup"},
      {"TwoThingsOfOneAnswer", with([](Attr& a) {
         a.sample_period = std::uint64_t{1} << 63;
         a.remove_on_exec = a.enable_on_exec = 1;
       }),
       refuses(EINVAL,
               [](const Attr& a) {
                 return a.sample_period >> 63 != 0 || (a.remove_on_exec && a.enable_on_exec);
               }),
       "sample_period enable_on_exec"},
      {"AllTasksOnNoCpu", [](OpenArgs& args) { args.pid = -1; },
       [](const OpenArgs& args) { return args.pid == -1 && args.cpu == -1 ? EINVAL : 0; }, "cpu"},
      {"CpuOffline", [](OpenArgs& args) { args.pid = -1, args.cpu = 3; },
       [](const OpenArgs& args) { return args.pid == -1 && args.cpu == 3 ? ENODEV : 0; }, "cpu"},
      {"NoFile", with([](Attr& a) { a.type = 9; }),
       refuses(ENOENT, [](const Attr& a) { return a.type == 9; }), "uprobe_path"},
      {"RawTracepoint", with([](Attr& a) {
         a.type = PERF_TYPE_TRACEPOINT;
         a.config = 314;
         a.sample_type |= PERF_SAMPLE_RAW;
       }),
       refuses(EPERM,
               [](const Attr& a) {
                 return a.type == PERF_TYPE_TRACEPOINT && (a.sample_type & PERF_SAMPLE_RAW);
               }),
       "sample_type"},
      {"KprobeOfAPlainUser", with([](Attr& a) { a.type = 8, a.config = 0; }),
       refuses(EACCES, [](const Attr& a) { return a.type == 8; }), "type"},
      {"KprobeOfAPlainUserAndTheKernel", with([](Attr& a) { a.type = 8, a.exclude_kernel = 0; }),
       missing_own_right(EACCES, [](const Attr& a) { return a.type == 8; }), "type"},
      {"UprobeOfAPlainUserAndTheKernel", with([](Attr& a) { a.type = 9, a.exclude_kernel = 0; }),
       missing_own_right(EACCES, [](const Attr& a) { return a.type == 9; }), "type"},
      {"RawTracepointAndTheKernel", with([](Attr& a) {
         a.type = PERF_TYPE_TRACEPOINT;
         a.config = 314;
         a.sample_type |= PERF_SAMPLE_RAW;
         a.exclude_kernel = 0;
       }),
       missing_own_right(EPERM, [](const Attr& a) { return a.type == PERF_TYPE_TRACEPOINT; }),
       "exclude_kernel sample_type"},
      {"KprobeUnderSeccomp", with([](Attr& a) { a.type = 8; }),
       [](const OpenArgs&) { return EPERM; }, ""},
#if __SIZEOF_POINTER__ == 8
      {"KernelBreakpoint", with([](Attr& a) {
         a.type = PERF_TYPE_BREAKPOINT;
         a.bp_type = 2;
         a.bp_len = 4;
         a.bp_addr = 0xffffffff81000000;
         a.exclude_kernel = 0;
       }),
       missing_own_right(
           EPERM,
           [](const Attr& a) { return a.type == PERF_TYPE_BREAKPOINT && a.bp_addr >> 63 != 0; }),
       "bp_addr"},
      {"KernelsCodeWithoutKprobes", with([](Attr& a) {
         a.type = PERF_TYPE_BREAKPOINT;
         a.bp_type = 4;
         a.bp_len = sizeof(long);
         a.bp_addr = 0xffffffff81000000;
         a.exclude_kernel = 0;
       }),
       refuses(EINVAL, [](const Attr& a) { return a.bp_type == 4 && a.bp_addr >> 63 != 0; }),
       "bp_addr"},
#endif
      {"KprobeOfNoFunction", with([](Attr& a) { a.type = 8, a.config = 0; }),
       refuses(ENOENT, [](const Attr& a) { return a.type == 8; }), "kprobe_func"},
      {"KprobeThatIsNotAllowed", with([](Attr& a) { a.type = 8, a.config = 0; }),
       refuses(EINVAL, [](const Attr& a) { return a.type == 8; }), "kprobe_func"},
      {"KprobeInAnInstruction", with([](Attr& a) { a.type = 8, a.config = 0; }),
       refuses(EILSEQ, [](const Attr& a) { return a.type == 8; }), "probe_offset"},
      {"UprobeOnNoInstruction", with([](Attr& a) {
         static const char* const kPath = "/bin/true";
         a.type = 9;
         a.config = 0;
         a.config1 = reinterpret_cast<std::uintptr_t>(kPath);
       }),
       refuses(524, [](const Attr& a) { return a.type == 9; }), "probe_offset"},
      {"BreakpointLength",
       with([](Attr& a) { a.type = PERF_TYPE_BREAKPOINT, a.bp_type = 3, a.bp_len = 3; }),
       refuses(EINVAL,
               [](const Attr& a) { return a.type == PERF_TYPE_BREAKPOINT && a.bp_len == 3; }),
       "bp_len"},
      {"BreakpointUnaligned", with([](Attr& a) {
         a.type = PERF_TYPE_BREAKPOINT;
         a.bp_type = 3;
         a.bp_addr = 0x1001;
         a.bp_len = 4;
       }),
       refuses(EINVAL,
               [](const Attr& a) {
                 return a.type == PERF_TYPE_BREAKPOINT && a.bp_addr % a.bp_len != 0;
               }),
       "bp_addr"},
      {"GroupLeader", [](OpenArgs& args) { args.group_fd = 5; },
       [](const OpenArgs& args) { return args.group_fd == 5 ? EINVAL : 0; }, "group_fd"},
      {"MemberThatIsPinned", [](OpenArgs& args) { args.group_fd = 5, args.attr.pinned = 1; },
       [](const OpenArgs& args) { return args.group_fd == 5 && args.attr.pinned ? EINVAL : 0; },
       "pinned"},
      {"Debian3", with([](Attr&) {}), [](const OpenArgs&) { return EACCES; },
       "perf_event_paranoid"},
      {"Seccomp", with([](Attr&) {}), [](const OpenArgs&) { return EPERM; }, ""},
      {"PmuThatIsTaken", with([](Attr& a) { a.type = 4; }),
       refuses(EBUSY, [](const Attr& a) { return a.type == 4; }), "type"},
      {"TaskThatIsGone", [](OpenArgs& args) { args.pid = 4711; },
       [](const OpenArgs& args) { return args.pid == 4711 ? ESRCH : 0; }, "pid"},
      {"GroupFdThatIsNotAnEvent", [](OpenArgs& args) { args.group_fd = 5; },
       [](const OpenArgs& args) { return args.group_fd == 5 ? EBADF : 0; }, "group_fd"},
      {"FolderThatIsNotACgroup",
       [](OpenArgs& args) { args.pid = 7, args.cpu = 0, args.flags = PERF_FLAG_PID_CGROUP; },
       [](const OpenArgs& args) { return args.flags != 0 ? EBADF : 0; }, "cgroup"},
      {"OpenFilesOfTheMachine", with([](Attr&) {}), [](const OpenArgs&) { return ENFILE; }, "fd"},
      {"OpenFiles", with([](Attr&) {}), [](const OpenArgs&) { return EMFILE; }, "fd"},
      {"FifthBreakpoint",
       with([](Attr& a) { a.type = PERF_TYPE_BREAKPOINT, a.bp_type = 3, a.bp_len = 4; }),
       refuses(ENOSPC, [](const Attr& a) { return a.type == PERF_TYPE_BREAKPOINT; }), "type"},
      // Other CPUs have free breakpoints.
      {"FifthBreakpointOfACpu",
       [](OpenArgs& args) {
         args.pid = -1, args.cpu = 1;
         args.attr.type = PERF_TYPE_BREAKPOINT;
       },
       [](const OpenArgs& args) {
         return args.attr.type == PERF_TYPE_BREAKPOINT && args.cpu == 1 ? ENOSPC : 0;
       },
       "type"},
  };
}

class EventErrorExplainTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(EventErrorExplainTest, TheCauseIsNamed) {
  const Refusal& row = GetParam();
  FakeSystem machine;
  if (row.name == "Debian3") machine.files["/proc/sys/kernel/perf_event_paranoid"] = "3\n";
  OpenArgs args;
  args.attr = changes({.switches = true}).kernel(Kernel::Excluded).attr(machine).value();
  row.change(args);
  const int error = row.answer(args);
  ASSERT_NE(error, 0);
  // The kernel checks privileges first.
  if (row.name.find("probe") != std::string::npos && error != EACCES) machine.be_root();
  machine.kinds["/bin/true"] = {FileKind::Type::Regular, 8192, 0};
  machine.answer = row.answer;
  const auto failed =
      EventError::at_failure(EventError::Step::Open, error, args, "the event", machine);
  std::string fields;
  for (const Cause& cause : failed.causes) {
    fields += (fields.empty() ? "" : " ") + cause.field;
    EXPECT_FALSE(cause.says.empty());
    EXPECT_FALSE(cause.advice.empty());
  }
  EXPECT_EQ(fields, row.fields) << failed.explain();
  EXPECT_EQ(std::ranges::count(failed.explain(), '\n'), 2) << failed.explain();
  const bool is_costly = args.attr.type == PERF_TYPE_TRACEPOINT || args.attr.type > 6;
  EXPECT_LT(machine.calls.size(), 400U);
  if (!is_costly) return;
  const auto costly = std::ranges::count_if(machine.calls, [&](const OpenArgs& each) {
    return each.attr.type == args.attr.type && (each.attr.type == 2 || each.attr.type == 8);
  });
  EXPECT_EQ(costly, 0) << "a tracepoint or probe was opened again";
}

INSTANTIATE_TEST_SUITE_P(Rows, EventErrorExplainTest, ::testing::ValuesIn(refusals()), row_name);

}  // namespace
}  // namespace perfring::event
