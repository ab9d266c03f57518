// Events that the machine's own kernel refuses, and what is said to be the cause: as root, as a
// user and with CAP_PERFMON. What it accepts and never answers: event_refusals_test.cc.

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/live/testing.h"
#include "harness/program/child_process.h"
#include "harness/program/sanitizers.h"
#include "perfring/event/check.h"
#include "perfring/event/group.h"
#include "perfring/event/sampler.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using live::open_files;
using Attr = perf_event_attr;

const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);
constexpr int kPerfmon = 38;  // CAP_PERFMON

class LiveEventCallersTest : public live::RootTest {};

bool has_pmu(const char* name) {
  return internal::Facts{real_system()}.pmu_type(name).has_value();
}

// In a child that is nobody, with these capabilities.
std::string as_nobody(std::vector<int> capabilities, const std::function<std::string()>& body) {
  return in_child([&] {
    live::become(live::kNobody, capabilities);
    ::prctl(PR_SET_DUMPABLE, 1);  // or one's own /proc is root's
    return body();
  });
}

std::string fields(const std::vector<Cause>& causes) {
  std::string all;
  for (const Cause& each : causes) all += (all.empty() ? "" : ", ") + each.field;
  return all;
}

std::string fields_of(const Request& request) {
  const auto sampler = Sampler::open(request, false);
  if (sampler) return sampler->notes().empty() ? "opens" : "opens without the kernel";
  return fields(sampler.error().causes);
}

// The errno and the causes, or that it opens.
std::string said(const EventError& error) {
  const int number = error.io_error.value();
  return std::string{number == 0 ? "-" : ::strerrorname_np(number)} + " " + fields(error.causes);
}

std::function<std::string()> sampled(Request request) {
  return [request = std::move(request)]() -> std::string {
    const auto sampler = Sampler::open(request, false);
    if (!sampler) return said(sampler.error());
    return sampler->notes().empty() ? "opens" : "opens without the kernel";
  };
}
std::function<std::string()> sampled(const Event& event) {
  return sampled(Request{.events = {event}, .target = this_thread()});
}
std::function<std::string()> with(const std::function<void(Attr&)>& change) {
  return sampled(kFaults.adjust(change));
}
// A group of page-faults and this member.
std::function<std::string()> counted(const std::function<void(Attr&)>& change, Target target,
                                     const Event& leader = kFaults) {
  return [=]() -> std::string {
    const auto group =
        Group::open({.events = {leader, kFaults.adjust(change)}, .target = target}, false);
    if (group) return "opens";
    return said(group.error()) + ": " + group.error().causes.at(0).says;
  };
}
// One system call.
std::function<std::string()> asked(const std::function<void(Ask&)>& change) {
  return [=]() -> std::string {
    Ask ask = internal::dummy();
    change(ask);
    Ask answered = ask;
    const os::Fd fd{real_system().open(answered)};
    if (fd.get() >= 0) return "opens";
    return said(EventError::at_failure(EventError::Step::Open, -fd.get(), ask, "", real_system()));
  };
}

struct Row {
  const char* what;
  std::function<std::string()> ask;
  const char* root;
  const char* user = nullptr;     // nullptr: as root
  const char* perfmon = nullptr;  // nullptr: as the user
};

void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const char* const user = row.user == nullptr ? row.root : row.user;
    EXPECT_EQ(in_child(row.ask), row.root) << row.what << ", as root";
    EXPECT_EQ(as_nobody({}, row.ask), user) << row.what << ", as a user";
    EXPECT_EQ(as_nobody({kPerfmon}, row.ask), row.perfmon == nullptr ? user : row.perfmon)
        << row.what << ", with CAP_PERFMON";
  }
}

bool is_paranoid_2() {
  return real_system().read("/proc/sys/kernel/perf_event_paranoid") == "2\n";
}

TEST_F(LiveEventCallersTest, TooFewDescriptorsLeaveNothingOpen) {
  const std::string said = in_child([]() -> std::string {
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
  EXPECT_EQ(said, "fd");
}

// Requests that the types allow and no kernel opens: an error that names it, or a request that is
// as good.
TEST_F(LiveEventCallersTest, WrongArgumentsAreNamed) {
  const auto self = this_thread();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct Wrong {
    const char* what;
    Request request;
    const char* said;
  };
  const std::vector<Wrong> rows{
      {"no page", {.events = {kFaults}, .target = self, .page_count = 0}, "page_count"},
      {"three pages", {.events = {kFaults}, .target = self, .page_count = 3}, "page_count"},
      {"all pages",
       {.events = {kFaults}, .target = self, .page_count = ~std::size_t{0}},
       "page_count"},
      {"too many pages",
       {.events = {kFaults}, .target = self, .page_count = ~std::size_t{0} / 2 + 1},
       "page_count"},
      {"pages whose bytes wrap to a ring of one page",
       {.events = {kFaults}, .target = self, .page_count = ~std::size_t{0} / page + 2},
       "page_count"},
      {"a thread of no task", {.events = {kFaults}, .target = thread(-5)}, "pid"},
      {"a process of no task", {.events = {kFaults}, .target = process(-5)}, "pid"},
      {"a process that is not there", {.events = {kFaults}, .target = process(0x7fffffff)}, "pid"},
      {"no command", {.events = {kFaults}, .target = child({})}, "command"},
      {"no cgroup", {.events = {kFaults}, .target = cgroup("")}, "cgroup"},
      {"a CPU twice", {.events = {kFaults}, .target = event::system().on({0, 0})}, "opens"},
      {"a wait below 0", {.events = {kFaults}, .target = self, .longest_wait = -5ns}, "opens"},
      {"a batch beyond the ring", {.events = {kFaults}, .target = self, .batch = ~0U}, "opens"},
  };
  for (const Wrong& row : rows) EXPECT_EQ(fields_of(row.request), row.said) << row.what;
  const auto none = Sampler::open({.events = {}, .target = self});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Check);
}

// R9: it opens, and cannot be mapped.
TEST_F(LiveEventCallersTest, AnInheritedEventWithoutACpuIsNotMapped) {
  const auto none =
      Sampler::open({.events = {kFaults.adjust([](perf_event_attr& a) { a.inherit = 1; })},
                     .target = this_thread()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Map);
  EXPECT_EQ(none.error().io_error, std::errc::invalid_argument);
  EXPECT_EQ(none.error().causes.front().field, "inherit");
}

// The rows below are those of x86-64 and of Linux 6.12 and later: others answer otherwise to some.
constexpr const char* kNoRows = "perf_event_paranoid is not 2, or this is not x86-64 at 6.12";
bool has_rows() {
#if defined(__x86_64__)
  utsname name{};
  int major = 0;
  int minor = 0;
  const bool is_known =
      ::uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2;
  return is_known && std::pair{major, minor} >= std::pair{6, 12} && is_paranoid_2();
#else
  return false;
#endif
}

TEST_F(LiveEventCallersTest, WrongFieldsOfAnEventAreRefusedAndNamed) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  constexpr std::uint64_t kOne = 1;
  expect({
      {"aux_output", with([](Attr& a) { a.aux_output = 1; }), "EOPNOTSUPP aux_output"},
      {"branches", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
       }),
       "EOPNOTSUPP PERF_SAMPLE_BRANCH_STACK"},
      {"branches of privileges alone", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
       }),
       "EINVAL PERF_SAMPLE_BRANCH_STACK"},
      {"no registers", with([](Attr& a) { a.sample_type |= PERF_SAMPLE_REGS_USER; }),
       "EINVAL sample_regs_user"},
      {"a stack of 12", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 12;
       }),
       "EINVAL sample_stack_user"},
      {"a stack of 64 KiB", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 65536;
       }),
       "EINVAL sample_stack_user"},
      {"a deep callchain", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_CALLCHAIN;
         a.sample_max_stack = 60000;
       }),
       "EOVERFLOW sample_max_stack"},
      {"both weights",
       with([](Attr& a) { a.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT; }),
       "EINVAL PERF_SAMPLE_WEIGHT, PERF_SAMPLE_WEIGHT_STRUCT"},
      {"sigtrap", with([](Attr& a) { a.sigtrap = 1; }), "EINVAL sigtrap"},
      {"signals of all tasks",
       sampled(
           Request{.events = {kFaults.adjust([](Attr& a) { a.sigtrap = a.remove_on_exec = 1; })},
                   .target = event::system().on({0})}),
       "EINVAL sigtrap"},
      {"a newer field and a newer format", with([](Attr& a) {
         a.sample_type |= kOne << 62;
         a.read_format |= kOne << 61;
       }),
       "EINVAL PERF_SAMPLE_(bit 62), PERF_FORMAT_(bit 61)"},
      {"a newer software event", with([](Attr& a) { a.config = 1000; }), "ENOENT config"},
      {"namespaces of all tasks",
       sampled(
           Request{.events = {changes({.namespaces = true})}, .target = event::system().on({0})}),
       "opens", "EACCES pid, namespaces", "opens"},
      {"both on exec", with([](Attr& a) { a.enable_on_exec = a.remove_on_exec = 1; }),
       "EINVAL enable_on_exec, remove_on_exec"},
      {"inherit_thread", with([](Attr& a) { a.inherit_thread = 1; }), "EINVAL inherit_thread"},
      {"inherit, READ without TID", with([](Attr& a) {
         a.inherit = 1;
         a.sample_type = PERF_SAMPLE_READ;
       }),
       "EINVAL inherit"},
      {"a size of 8", asked([](Ask& ask) { ask.attr.size = 8; }), "E2BIG size"},
      {"written backwards", with([](Attr& a) { a.write_backward = 1; }), "- write_backward"},
      {"two clocks in one ring",
       sampled(Request{.events = {kFaults, kFaults.adjust([](Attr& a) { a.use_clockid = 0; })},
                       .target = this_thread()}),
       "EINVAL clockid"},
      {"a size of 63", asked([](Ask& ask) { ask.attr.size = 63; }), "E2BIG size"},
      {"a size of 4097", asked([](Ask& ask) { ask.attr.size = 4097; }), "E2BIG size"},
#if defined(__x86_64__)
      {"DS", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_REGS_USER;
         a.sample_regs_user = kOne << 12;
       }),
       "EINVAL sample_regs_user"},
      {"XMM", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_REGS_INTR;
         a.sample_regs_intr = kOne << 32;
       }),
       "EOPNOTSUPP sample_regs_intr"},
#endif
  });
}

TEST_F(LiveEventCallersTest, WrongTasksCpusCgroupsAndLeadersAreNamed) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const ForkedChild roots{::pause};
  const os::Fd folder{::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const int no_event = folder.get();
  expect({
      {"all tasks on no CPU", asked([](Ask& ask) { ask.pid = -1; }), "EINVAL cpu"},
      {"a task below -1", asked([](Ask& ask) { ask.pid = -2; }), "ESRCH pid"},
      {"another user's task", sampled(Request{.events = {kFaults}, .target = thread(roots.id())}),
       "opens", "EACCES pid", "opens"},
      {"no cgroup", asked([no_event](Ask& ask) {
         ask.pid = no_event, ask.cpu = 0, ask.flags = PERF_FLAG_PID_CGROUP;
       }),
       "EBADF cgroup"},
      {"a cgroup on no CPU",
       asked([no_event](Ask& ask) { ask.pid = no_event, ask.flags = PERF_FLAG_PID_CGROUP; }),
       "EINVAL cpu"},
      {"a group of no event", asked([no_event](Ask& ask) { ask.group_fd = no_event; }),
       "EBADF group_fd"},
      {"a group below -1", asked([](Ask& ask) { ask.group_fd = -2; }), "EBADF group_fd"},
  });
}

TEST_F(LiveEventCallersTest, ACgroupWithoutPerfEventIsRefusedAndNamed) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  std::ifstream mounts{"/proc/self/mounts"};
  std::string folder;
  for (std::string line; folder.empty() && std::getline(mounts, line);) {
    std::istringstream words{line};
    std::string device, at, type, options;
    words >> device >> at >> type >> options;
    if (type == "cgroup" && options.find("perf_event") == std::string::npos) folder = at;
  }
  if (folder.empty()) GTEST_SKIP() << "no cgroup v1 hierarchy without perf_event is mounted";
  const Request request{.events = {kFaults}, .target = cgroup(folder)};
  expect({{"cgroup v1", sampled(request), "ENOENT cgroup"}});
  EXPECT_EQ(check(request).front().says, Sampler::open(request).error().causes.front().says);
}

TEST_F(LiveEventCallersTest, AMemberUnlikeItsLeaderIsRefusedWithTheReason) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const auto self = this_thread();
  const auto all = event::system().on({0});
  const auto inherit = [](Attr& a) { a.inherit = 1; };
  constexpr const char* kClock = "EINVAL clockid: the group's leader has another clock";
  constexpr const char* kInherit =
      "EINVAL inherit: the group's leader is inherited and the member is not, or the reverse";
  constexpr const char* kTasks =
      "EACCES pid: this user may not watch all tasks: kernel.perf_event_paranoid is 2";
  expect({
      {"a member that is like its leader", counted([](Attr&) {}, self), "opens"},
      {"pinned", counted([](Attr& a) { a.pinned = 1; }, self),
       "EINVAL pinned: only a group's leader may be pinned"},
      {"exclusive", counted([](Attr& a) { a.exclusive = 1; }, self),
       "EINVAL exclusive: only a group's leader may be exclusive"},
      {"a clock", counted([](Attr& a) { a.clockid = CLOCK_REALTIME; }, self), kClock},
      {"no clock", counted([](Attr& a) { a.use_clockid = 0; }, self), kClock},
      {"no such clock", counted([](Attr& a) { a.clockid = 2; }, self),
       "EINVAL clockid: perf has no clock 2"},
      {"sigtrap", counted([](Attr& a) { a.sigtrap = 1; }, self),
       "EINVAL sigtrap: sigtrap needs remove_on_exec"},
      {"inherited", counted(inherit, self), kInherit},
      {"of an inherited leader", counted([](Attr&) {}, self, kFaults.adjust(inherit)), kInherit},
      {"inherited, of a CPU", counted(inherit, all), "opens", kTasks, "opens"},
  });
}

TEST_F(LiveEventCallersTest, WrongAndForbiddenBreakpointsAreNamed) {
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
  const char* const kNoCode = "the kernel does not accept this sort of breakpoint at this address";
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

TEST_F(LiveEventCallersTest, WrongAndForbiddenUprobesAreNamed) {
  if (!has_pmu("uprobe") || !has_rows()) GTEST_SKIP() << kNoRows;
  constexpr const char* kRight = "EACCES type";
  // Which anybody may read; a static program has none.
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
      {"behind the end", sampled(uprobe(program, std::uint64_t{1} << 40)), "EINVAL probe_offset",
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

TEST_F(LiveEventCallersTest, WrongAndForbiddenTracepointsAreNamed) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const auto id = [](const char* name) {
    return static_cast<std::uint64_t>(std::stoull("0" + live::with_tracefs([name] {
                                                    return std::to_string(
                                                        tracepoint(name).attr().value().config);
                                                  })));
  };
  const auto traced = [](std::uint64_t config, bool raw, bool kernel) {
    return asked([=](Ask& ask) {
      ask.attr.type = PERF_TYPE_TRACEPOINT;
      ask.attr.config = config;
      ask.attr.sample_period = 1;
      ask.attr.sample_type = raw ? PERF_SAMPLE_RAW : PERF_SAMPLE_IP;
      ask.attr.exclude_kernel = !kernel;
    });
  };
  const std::uint64_t switched = id("sched:sched_switch");
  expect({
      {"data", traced(switched, true, false), "opens", "EPERM sample_type", "opens"},
      {"data, and the kernel", traced(switched, true, true), "opens",
       "EACCES exclude_kernel, sample_type", "opens"},
      {"no data", traced(switched, false, false), "opens"},
      {"no id", traced(0x7fffffff, false, false), "EINVAL type"},
      {"data of a system call", traced(id("syscalls:sys_enter_getppid"), true, false), "opens"},
      {"a name", sampled(tracepoint("sched:sched_switch")), "- config"},
  });
  const auto function = [] { return live::with_tracefs(sampled(tracepoint("ftrace:function"))); };
  EXPECT_EQ(function(), "EINVAL exclude_callchain_user");
}

TEST_F(LiveEventCallersTest, WithoutAPmuHardwareEventsAreRefusedAndNamed) {
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

TEST_F(LiveEventCallersTest, WrongAndTooLargePageCountsAreNamed) {
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

TEST_F(LiveEventCallersTest, AWrongOrSecondFilterIsNamed) {
  const std::string wrong = live::with_tracefs([]() -> std::string {
    const auto filtered = [](const Event& event) { return sampled(Request{.events = {event}})(); };
    const Event exits = tracepoint("sched:sched_process_exit");
    if (filtered(exits.filter("nope == 1")) != "EINVAL filter") return "a wrong filter";
    if (filtered(kFaults.filter("pid == 1")) != "EINVAL filter") return "no tracepoint";
    const auto counter = Counter::open(exits.filter("nope == 1"), event::system());
    if (counter || said(counter.error()) != "EINVAL filter") return "a wrong filter of a counter";
    Ask ask = internal::dummy();
    ask.attr.type = PERF_TYPE_TRACEPOINT;
    ask.attr.config = exits.attr().value().config;
    const os::Fd fd{real_system().open(ask)};
    for (const int answer : {0, EEXIST}) {
      const int failed = ::ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, "pid == 1");
      if ((failed == 0 ? 0 : errno) != answer) return "a filter: " + std::to_string(errno);
    }
    const auto error =
        EventError::at_failure(EventError::Step::Filter, EEXIST, ask, "exits", real_system());
    return error.causes.front().says == "the event has a filter already" ? "" : "a second filter";
  });
  EXPECT_EQ(wrong, "");
}

// No more descriptors than so many: the limit is one of their numbers.
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

// One descriptor fewer than fds_needed() says is one too few, wherever it is missing: of an event,
// the waiter or the child.
TEST_F(LiveEventCallersTest, EachDescriptorIsCountedAndItsLackExplained) {
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

// The rows of the table of refusals that this machine can have, as root, as a user, with
// CAP_PERFMON: what is named as the cause.
TEST_F(LiveEventCallersTest, EachCallersRefusalsAreNamed) {
  if (!is_paranoid_2()) GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  const auto self = this_thread();
  const auto all = event::system();
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const auto wrong = [](auto change) { return kFaults.adjust(change); };
  struct Asked {
    const char* what;
    Request request;
    const char* root;
    const char* user;
    const char* perfmon;
  };
  const std::vector<Asked> rows{
      {"faults of oneself", {{kFaults}, self}, "opens", "opens without the kernel", "opens"},
      {"faults of all", {{kFaults}, all}, "opens", "pid", "opens"},
      {"switches",
       {{changes({.switches = true})}, self},
       "opens",
       "opens without the kernel",
       "opens"},
      {"context-switches",
       {{software(PERF_COUNT_SW_CONTEXT_SWITCHES)}, self},
       "opens",
       "exclude_kernel",
       "opens"},
      {"namespaces", {{changes({.namespaces = true})}, self}, "opens", "namespaces", "opens"},
      {"faults of all, and the kernel",
       {{kFaults.kernel(Kernel::Included)}, all},
       "opens",
       "pid, exclude_kernel",
       "opens"},
      {"namespaces, and the kernel",
       {{changes({.namespaces = true}).kernel(Kernel::Included)}, self},
       "opens",
       "exclude_kernel, namespaces",
       "opens"},
      {"physical addresses",
       {{kFaults.sample(PERF_SAMPLE_PHYS_ADDR)}, self},
       "opens",
       "PERF_SAMPLE_PHYS_ADDR",
       "opens"},
      {"frequency",
       {{clock.frequency(10'000'000)}, self},
       "sample_freq",
       "sample_freq",
       "sample_freq"},
      {"period",
       {{wrong([](Attr& a) { a.sample_period = ~0ULL; })}, self},
       "sample_period",
       "sample_period",
       "sample_period"},
      {"a new bit",
       {{kFaults.sample(1ULL << 45)}, self},
       "PERF_SAMPLE_(bit 45)",
       "PERF_SAMPLE_(bit 45)",
       "PERF_SAMPLE_(bit 45)"},
      {"no such CPU", {{kFaults}, all.on({60000})}, "cpu", "cpu", "cpu"},
      {"a software event",
       {{wrong([](Attr& a) { a.config = 12; })}, self},
       "config",
       "config",
       "config"},
      {"msr of oneself", {{pmu("msr/tsc/")}, self}, "opens", "exclude_kernel", "opens"},
      {"msr of all", {{pmu("msr/tsc/")}, all}, "opens", "exclude_kernel", "opens"},
      {"msr of oneself with a period",
       {{pmu("msr/tsc/").period(1000)}, self},
       "sample_period",
       "exclude_kernel",
       "sample_period"},
      {"msr of all with a frequency",
       {{pmu("msr/tsc/").frequency(99)}, all},
       "sample_period",
       "exclude_kernel",
       "sample_period"},
      {"msr without the kernel",
       {{pmu("msr/tsc/").kernel(Kernel::Excluded)}, self},
       "exclude_kernel",
       "exclude_kernel",
       "exclude_kernel"},
      {"a clock",
       {{wrong([](Attr& a) { a.clockid = 2; })}, self},
       "clockid, use_clockid",
       "clockid, use_clockid",
       "clockid, use_clockid"},
  };
  for (const Asked& row : rows) {
    if (row.request.events[0].kind() == Kind::Pmu && !has_pmu("msr")) continue;
    const auto ask = [&row] { return fields_of(row.request); };
    EXPECT_EQ(in_child(ask), row.root) << row.what;
    EXPECT_EQ(as_nobody({}, ask), row.user) << row.what;
    EXPECT_EQ(as_nobody({kPerfmon}, ask), row.perfmon) << row.what;
  }
}

}  // namespace
}  // namespace perfring::event
