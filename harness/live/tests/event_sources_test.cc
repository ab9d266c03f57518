// The refusals of the machine's own kernel for each sort of event, as root, as a user and with
// CAP_PERFMON: breakpoints, probes, tracepoints and their filters, hardware events. For events of
// any sort: too few or too many pages or descriptors.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/live/event_testing.h"
#include "harness/live/live_testing.h"
#include "harness/program/sanitizers.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/fd.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event {
namespace {

using live::in_child;
using live::open_files;
using testing::Attr;
using testing::expect;
using testing::has_pmu;
using testing::has_rows;
using testing::kFaults;
using testing::kNoRows;
using testing::LiveEventCallersTest;
using testing::opened_with;
using testing::refusal_of;
using testing::sampled;

TEST_F(LiveEventCallersTest, RefusedBreakpointNamesItsCause) {
  if (!has_pmu("breakpoint") || !has_rows()) GTEST_SKIP() << kNoRows;
  static std::uint64_t places[8];
  const auto at = [](std::size_t place, std::uint64_t more = 0) {
    return reinterpret_cast<std::uintptr_t>(&places[place]) + more;
  };
  const auto watching = [&](std::function<void(Attr&)> change) {
    return sampled(breakpoint(at(0), Access::ReadWrite).adjust(std::move(change)));
  };
  const auto many = [&](const Target& target) {
    return sampled(
        Request{.events = {breakpoint(at(0), Access::Write), breakpoint(at(1), Access::Write),
                           breakpoint(at(2), Access::Write), breakpoint(at(3), Access::Write),
                           breakpoint(at(4), Access::Write)},
                .target = target});
  };
  constexpr std::uint64_t kKernel = 0xffffffff81000000;
  const bool has_kprobes = has_pmu("kprobe");
  const char* const kNoCode = "the kernel does not accept this kind of breakpoint at this address";
  const auto code = []() -> std::string {
    const auto none = Sampler::open(
        {.events = {breakpoint(kKernel, Access::Execute)}, .target = this_thread()}, false);
    return none ? "opens" : none.error().causes.at(0).says;
  };
  expect({
      {"reads alone", watching([](Attr& a) { a.bp_type = 1; }), "EINVAL bp_type"},
      {"3 bytes", watching([](Attr& a) { a.bp_len = 3; }), "EINVAL bp_len"},
      {"no multiple", watching([&](Attr& a) { a.bp_addr = at(0, 1); }), "EINVAL bp_addr"},
      {"both sorts", watching([](Attr& a) { a.bp_type = 6; }), "EINVAL bp_type"},
      {"the kernel", sampled(breakpoint(kKernel, Access::Write)), "opens", "EACCES bp_addr",
       "EPERM bp_addr"},
      {"the kernel, included", sampled(breakpoint(kKernel, Access::Write).kernel(Kernel::Included)),
       "opens", "EACCES bp_addr", "EPERM bp_addr"},
      {"the kernel, excluded", sampled(breakpoint(kKernel, Access::Write).kernel(Kernel::Excluded)),
       "EINVAL bp_addr"},
      {"the kernel's code", code, has_kprobes ? "opens" : kNoCode,
       "a breakpoint in the kernel needs CAP_SYS_ADMIN",
       has_kprobes ? "a breakpoint in the kernel needs CAP_SYS_ADMIN" : kNoCode},
      {"five of oneself", many(this_thread()), "ENOSPC type"},
      {"five of a CPU", many(event::system().on({0})), "ENOSPC type", "EACCES pid", "ENOSPC type"},
  });
}

TEST_F(LiveEventCallersTest, RefusedUprobeNamesItsCause) {
  if (!has_pmu("uprobe") || !has_rows()) GTEST_SKIP() << kNoRows;
  constexpr const char* kRight = "EACCES type";
  // Probe libc, which anybody may read. A static program has none.
  Dl_info libc{};
  const bool is_shared = ::dladdr(reinterpret_cast<void*>(&::getppid), &libc) != 0 &&
                         std::filesystem::path{libc.dli_fname}.is_absolute();
  if (!is_shared) GTEST_SKIP() << "there is no libc.so";
  const std::string program = std::filesystem::canonical(libc.dli_fname);
  expect({
      {"no file", sampled(uprobe("/none", std::uint64_t{64})), "ENOENT uprobe_path", kRight},
      {"no file, relative", sampled(uprobe("none", std::uint64_t{64})), "ENOENT uprobe_path",
       kRight},
      {"a folder", sampled(uprobe("/tmp", std::uint64_t{64})), "EINVAL uprobe_path", kRight},
      {"a file of procfs", sampled(uprobe("/proc/version", std::uint64_t{64})), "EIO uprobe_path",
       kRight},
      {"past the end", sampled(uprobe(program, std::uint64_t{1} << 40)), "EINVAL probe_offset",
       kRight},
      {"no symbol", sampled(uprobe(program, "")), "- probe_offset"},
      {"without the kernel", sampled(uprobe(program, "getppid").kernel(Kernel::Excluded)), "opens",
       kRight},
      {"a function", sampled(uprobe(program, "getppid")), "opens", kRight},
      {"a relative path",
       [&] {
         const int moved = ::chdir("/");
         return moved == 0 ? sampled(uprobe(program.substr(1), "getppid"))() : "chdir()";
       },
       "opens", kRight},
  });
}

TEST_F(LiveEventCallersTest, RefusedTracepointNamesItsCause) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const auto id = [](const char* name) {
    return static_cast<std::uint64_t>(std::stoull("0" + live::with_tracefs([name] {
                                                    return std::to_string(
                                                        tracepoint(name).attr().value().config);
                                                  })));
  };
  const auto traced = [](std::uint64_t config, bool raw, bool kernel) {
    return opened_with([=](OpenArgs& args) {
      args.attr.type = PERF_TYPE_TRACEPOINT;
      args.attr.config = config;
      args.attr.sample_period = 1;
      args.attr.sample_type = raw ? PERF_SAMPLE_RAW : PERF_SAMPLE_IP;
      args.attr.exclude_kernel = !kernel;
    });
  };
  const std::uint64_t switched = id("sched:sched_switch");
  // If tracefs is mounted, only root may read it.
  const bool is_mounted = ::access("/sys/kernel/tracing/events/sched", R_OK) == 0 ||
                          ::access("/sys/kernel/debug/tracing/events/sched", R_OK) == 0;
  expect({
      {"data", traced(switched, true, false), "opens", "EPERM sample_type", "opens"},
      {"data, and the kernel", traced(switched, true, true), "opens",
       "EACCES exclude_kernel, sample_type", "opens"},
      {"no data", traced(switched, false, false), "opens"},
      {"no id", traced(0x7fffffff, false, false), "EINVAL type"},
      {"data of a system call", traced(id("syscalls:sys_enter_getppid"), true, false), "opens"},
      {"a name", sampled(tracepoint("sched:sched_switch")), is_mounted ? "opens" : "- config",
       "- config"},
  });
  const auto function = [] { return live::with_tracefs(sampled(tracepoint("ftrace:function"))); };
  EXPECT_EQ(function(), "EINVAL exclude_callchain_user");
}

TEST_F(LiveEventCallersTest, WithoutPmuHardwareEventsAreRefused) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  if (internal::Facts{real_system()}.has_cpu_pmu()) GTEST_SKIP() << "this machine has a PMU";
  const Event cycles = hardware(PERF_COUNT_HW_CPU_CYCLES);
  expect({
      {"cycles", sampled(cycles), "ENOENT type"},
      {"cycles and the kernel", sampled(cycles.kernel(Kernel::Included)), "ENOENT type",
       "EACCES exclude_kernel, type", "ENOENT type"},  // R2
      {"a raw event", sampled(raw(0x1a8)), "ENOENT type"},
      {"cycles of all tasks",
       sampled(Request{.events = {cycles}, .target = event::system().on({0})}), "ENOENT type",
       "ENOENT type, pid", "ENOENT type"},
      {"cycles with branches", sampled(cycles.adjust([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
       })),
       "ENOENT type"},
      {"cycles into an AUX area", sampled(cycles.adjust([](Attr& a) { a.aux_output = 1; })),
       "ENOENT type"},
  });
}

TEST_F(LiveEventCallersTest, AWrongOrSecondFilterIsNamed) {
  const std::string wrong = live::with_tracefs([]() -> std::string {
    const auto filtered = [](const Event& event) { return sampled(Request{.events = {event}})(); };
    const Event exits = tracepoint("sched:sched_process_exit");
    if (filtered(exits.filter("nope == 1")) != "EINVAL filter") return "a wrong filter";
    if (filtered(kFaults.filter("pid == 1")) != "EINVAL filter") return "no tracepoint";
    const auto counter = Counter::open(exits.filter("nope == 1"), event::system());
    if (counter || refusal_of(counter.error()) != "EINVAL filter")
      return "a wrong filter of a counter";
    OpenArgs args = internal::dummy();
    args.attr.type = PERF_TYPE_TRACEPOINT;
    args.attr.config = exits.attr().value().config;
    const os::Fd fd{real_system().open(args)};
    for (const int answer : {0, EEXIST}) {
      const int failed = ::ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, "pid == 1");
      if ((failed == 0 ? 0 : errno) != answer) return "a filter: " + std::to_string(errno);
    }
    const auto error =
        EventError::at_failure(EventError::Step::Filter, EEXIST, args, "exits", real_system());
    return error.causes.front().says == "the event has a filter already" ? "" : "a second filter";
  });
  EXPECT_EQ(wrong, "");
}

// R9: the event opens, and cannot be mapped.
TEST_F(LiveEventCallersTest, AnInheritedEventWithoutACpuIsNotMapped) {
  const auto none =
      Sampler::open({.events = {kFaults.adjust([](perf_event_attr& a) { a.inherit = 1; })},
                     .target = this_thread()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Map);
  EXPECT_EQ(none.error().io_error, std::errc::invalid_argument);
  EXPECT_EQ(none.error().causes.front().field, "inherit");
}

TEST_F(LiveEventCallersTest, RefusedPageCountNamesItsCause) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const auto pages = [](std::size_t count) {
    return sampled(Request{.events = {kFaults}, .target = this_thread(), .page_count = count});
  };
  expect({
      {"3 pages", pages(3), "EINVAL page_count"},
      {"16 MiB", pages(std::size_t{1} << 12), "opens", "EPERM page_count"},
#if __SIZEOF_POINTER__ == 8
      {"a huge ring", pages(std::size_t{1} << 30), "ENOMEM page_count", "EPERM page_count"},
#endif
  });
}

TEST_F(LiveEventCallersTest, TooFewDescriptorsLeaveNothingOpen) {
  const std::string output = in_child([]() -> std::string {
    const std::size_t before = open_files();
    rlimit few{static_cast<rlim_t>(before) + 3, static_cast<rlim_t>(before) + 3};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto none =
        Sampler::open({.events = {kFaults, kFaults, kFaults, kFaults}, .target = event::system()});
    if (none) return "it opened";
    if (none.error().io_error != std::errc::too_many_files_open) return none.error().explain();
    if (open_files() != before) return "left open";
    return none.error().causes.front().field;
  });
  EXPECT_EQ(output, "fd");
}

// Allows so many more descriptors. The limit applies to their numbers.
void allow(std::size_t more) {
  std::vector<os::Fd> free;
  rlim_t limit = 0;
  while (free.size() < more) {
    free.emplace_back(::dup(STDIN_FILENO));
    limit = static_cast<rlim_t>(free.back().get()) + 1;
  }
  const rlimit own{limit, limit};
  ::setrlimit(RLIMIT_NOFILE, &own);
}

// One descriptor less than fds_needed() returns is too few, whichever lacks it: an event, the
// waiter or the child.
TEST_F(LiveEventCallersTest, LackOfAnyDescriptorIsExplained) {
  if (kSanitized) GTEST_SKIP() << "UBSan asks by pipe(2) whether memory is there";
  for (const Target& target : {this_thread(), child({"true"})}) {
    const Request request{.events = {kFaults, software(PERF_COUNT_SW_CPU_CLOCK)}, .target = target};
    const std::size_t needed = fds_needed(request).value();
    for (std::size_t few = 1; few <= needed; ++few) {
      const std::string answer = in_child([&]() -> std::string {
        allow(few);
        const std::size_t before = open_files();
        const std::string opened = sampled(request)();
        return open_files() == before ? opened : "left open";
      });
      EXPECT_EQ(answer, few == needed ? "opens" : "EMFILE fd") << few << " of " << needed;
    }
  }
}

}  // namespace
}  // namespace perfring::event
