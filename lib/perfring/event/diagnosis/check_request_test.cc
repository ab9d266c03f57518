// check()'s findings about a request as a whole.

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using perfring::testing::page_size;
using testing::FakeSystem;
using testing::kFaults;
using testing::kSwitch;

// Returns the fields of the findings, refusals first.
std::string fields(const Request& request, FakeSystem& machine) {
  std::string all;
  for (const Finding& each : check(request, machine)) all += each.field + " ";
  return all;
}

TEST(CheckRequestTest, RootGetsNoFindingsForExistingEvents) {
  FakeSystem machine;
  machine.be_root();
  machine.files["/sys/kernel/tracing/events/block/block_rq_complete/id"] = "9\n";
  machine.kinds["/bin/true"] = {FileKind::Type::Regular, 8192, 0};
  for (const Event& each :
       {tracepoint("block:block_rq_complete"), kprobe("x"), uprobe("/bin/true", 4096), kFaults,
        software(PERF_COUNT_SW_CPU_CLOCK).callchain(),
        changes({.execs = true, .forks = true, .maps = true, .cgroups = true}),
        breakpoint(4096, Access::ReadWrite)}) {
    EXPECT_EQ(fields({.events = {each}, .target = event::system()}, machine), "") << each.name();
  }
}

TEST(CheckRequestTest, DistinguishesTracepointLookupFailures) {
  FakeSystem machine;
  const auto message_of = [&machine](const char* name) {
    return check(Request{.events = {tracepoint(name)}}, machine).front().says;
  };
  const auto advice_of = [&machine](const char* name) {
    return check(Request{.events = {tracepoint(name)}}, machine).front().advice;
  };
  for (const char* const file : {"enable", "header_page", "sched/enable", "sched/filter"}) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + file] = "0\n";
  }
  EXPECT_EQ(message_of("sched:sched_swich"), "there is no tracepoint 'sched:sched_swich'");
  EXPECT_EQ(advice_of("sched:sched_swich"),
            "the most similar of sched are sched_switch, sched_waking");
  EXPECT_EQ(message_of("shed:x"), "there is no group of tracepoints 'shed'");
  EXPECT_EQ(advice_of("shed:x"), "the most similar are sched, irq");
  EXPECT_EQ(by_name("PAGE-FAULTS").error().advice.substr(0, 28), "give one such as page-faults");
  machine.errors["/sys/kernel/tracing/events"] = EACCES;
  EXPECT_NE(message_of("sched:sched_switch").find("may not be read"), std::string::npos);
  machine.errors["/sys/kernel/tracing/events"] = ENOENT;
  EXPECT_NE(message_of("sched:sched_switch").find("is not mounted"), std::string::npos);
  for (const char* const odd : {"", ":", "a:", ":b", "sched:../../x", "a/b:c", "\xff\n"}) {
    EXPECT_NE(message_of(odd).find("not the name of a tracepoint"), std::string::npos) << odd;
  }
}

// R5
TEST(CheckRequestTest, SamplingOnlyTheWaitingThreadsTimeIsNamed) {
  FakeSystem machine;
  machine.be_root();
  const Event clock = software(PERF_COUNT_SW_TASK_CLOCK);
  const auto of = [&](const Event& event, const Target& target) {
    return fields({.events = {event}, .target = target}, machine);
  };
  machine.files["/proc/77/task/77/comm"] = "x";
  machine.files["/proc/" + std::to_string(::gettid()) + "/comm"] = "x";
  EXPECT_EQ(of(clock, this_thread()), "pid ");
  EXPECT_EQ(of(software(PERF_COUNT_SW_CPU_CLOCK), thread(::gettid())), "pid ");
  EXPECT_EQ(of(clock, this_process()), "") << "it has two threads";
  EXPECT_EQ(of(clock, thread(77)), "");
  EXPECT_EQ(of(clock, event::system()), "");
  EXPECT_EQ(of(kFaults, this_thread()), "");
}

TEST(CheckRequestTest, FieldsThatFtracesTracepointsRefuseAreNamed) {
  FakeSystem machine;
  machine.be_root();
  for (const char* const name : {"ftrace/function", "ftrace/print"}) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + name + "/id"] = "1\n";
  }
  const auto of = [&](const Event& event) { return fields({.events = {event}}, machine); };
  const Event function = tracepoint("ftrace:function");
  const Event alone =
      function.adjust([](perf_event_attr& attr) { attr.exclude_callchain_user = 1; });
  EXPECT_EQ(of(function), "exclude_callchain_user ");
  EXPECT_EQ(of(alone), "");
  EXPECT_EQ(of(alone.sample(PERF_SAMPLE_STACK_USER)), "sample_type ");
  EXPECT_EQ(of(function.period(0)), "sample_period ") << "it counts";
  EXPECT_EQ(of(tracepoint("ftrace:print")), "config ");
  OpenArgs args;
  args.attr = function.attr(machine).value();
  machine.answer = [](const OpenArgs& each) {
    return each.attr.type == PERF_TYPE_TRACEPOINT ? EINVAL : 0;
  };
  EXPECT_EQ(EventError::at_failure(EventError::Step::Open, EINVAL, args, function.name(), machine)
                .causes.front()
                .field,
            "exclude_callchain_user");
}

// At the entry and the exit of a system call, the registers are those of user code (R16).
TEST(CheckRequestTest, ATracepointOfASystemCallNeedsNoKernel) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](const char* group, const char* name) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + group + "/" + name + "/id"] = "9\n";
    const Event event = tracepoint(std::string{group} + ":" + name).kernel(Kernel::Excluded);
    return fields({.events = {event}, .target = process(77)}, machine);
  };
  machine.files["/proc/77/task/77/comm"] = "x";
  EXPECT_EQ(of("syscalls", "sys_enter_read"), "");
  EXPECT_EQ(of("syscalls", "sys_exit_read"), "");
  EXPECT_EQ(of("raw_syscalls", "sys_enter"), "exclude_kernel pid ");
}

TEST(CheckRequestTest, ReportsBadPageCountsOrTooManyFiles) {
  FakeSystem machine;
  const Event faults = kFaults.kernel(Kernel::Excluded);
  // One ring and its control page fit into 3 CPUs x 516 KiB.
  const std::size_t most = std::bit_floor(3 * 516 * 1024 / page_size() - 1);
  Request request{.events = {faults}, .target = this_thread(), .page_count = most};
  EXPECT_EQ(fields(request, machine), "");
  request.page_count = 3;
  EXPECT_EQ(fields(request, machine), "page_count ");
  request.page_count = 2 * most;
  EXPECT_EQ(fields(request, machine), "page_count ");
  machine.capabilities(1ULL << CAP_IPC_LOCK);
  EXPECT_EQ(fields(request, machine), "");
  machine.capabilities(0);
  request.page_count = 2;  // with the control page, one page for each CPU
  const auto kb = [&](std::size_t kib) {
    machine.files["/proc/sys/kernel/perf_event_mlock_kb"] = std::to_string(kib) + "\n";
    return fields(request, machine);
  };
  EXPECT_EQ(kb(page_size() / 1024), "") << "as much as may be locked";
  EXPECT_EQ(kb(page_size() / 1024 - 1), "page_count ");
  machine.capabilities(1ULL << CAP_IPC_LOCK);
  request.page_count = 1;
  request.events.assign(70, faults);
  EXPECT_EQ(fields(request, machine), "fd config ");
}

// R25
TEST(CheckRequestTest, ASoftwareEventRequestedTwiceIsNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto fields_of = [&](const Event& first, const Event& second) {
    return fields({.events = {first, second}, .target = event::system()}, machine);
  };
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  EXPECT_EQ(fields_of(kFaults, kFaults), "config ");
  EXPECT_EQ(fields_of(kFaults, Event{kFaults}.period(3)), "config ");
  EXPECT_EQ(fields_of(kFaults, software(PERF_COUNT_SW_PAGE_FAULTS_MIN)), "");
  EXPECT_EQ(fields_of(clock, clock), "") << "each has a timer of its own";
  EXPECT_EQ(fields_of(changes({.forks = true}), changes({.execs = true})), "");
}

// kernel/events/core.c: perf_event_set_output() at v6.18, and R12.
TEST(CheckRequestTest, EventsThatCannotShareARingAreNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto findings_of = [&](std::vector<Event> events) {
    std::string all;
    for (const Finding& each : check({.events = std::move(events), .target = system()}, machine)) {
      EXPECT_EQ(each.severity, Finding::Severity::Refused) << each.says;
      EXPECT_FALSE(each.advice.empty()) << each.says;
      all += each.field + ": " + each.says + "\n";
    }
    return all;
  };
  using Attr = perf_event_attr;
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const Event raw = clock.adjust([](Attr& a) { a.clockid = CLOCK_MONOTONIC_RAW; });
  const Event none = clock.adjust([](Attr& a) { a.use_clockid = 0, a.clockid = 0; });
  const Event nobodys =
      clock.adjust([](Attr& a) { a.sample_type &= ~std::uint64_t{PERF_SAMPLE_IDENTIFIER}; });
  const Event no_sample_id = clock.adjust([](Attr& a) { a.sample_id_all = 0; });
  const std::string clocks = "clockid: the events of one ring have different clocks\n";
  const std::string whose =
      "sample_type: several events write to one ring, and their records do not identify their "
      "event (R12)\n";
  EXPECT_EQ(findings_of({kFaults, clock}), "");
  EXPECT_EQ(findings_of({kFaults, raw}), clocks);
  EXPECT_EQ(findings_of({none, kFaults}), clocks);
  EXPECT_EQ(findings_of({kFaults, clock, raw, none}), clocks) << "once";
  EXPECT_EQ(findings_of({raw}), "") << "alone in its ring";
  EXPECT_EQ(findings_of({kFaults, nobodys}), whose);
  EXPECT_EQ(findings_of({no_sample_id, kFaults}), whose);
  EXPECT_EQ(findings_of({nobodys}), "") << "alone in its ring";
  EXPECT_EQ(findings_of({kFaults.adjust([](Attr& a) { a.write_backward = 1; })}),
            "write_backward: the ring is written backwards, and a Sampler reads forwards\n");
}

TEST(CheckRequestTest, MissingCpusAreNamedAsOneRange) {
  FakeSystem machine;
  machine.be_root();
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t i = 0; i < 10'000; ++i) cpus.push_back(i);
  const Request request{.events = {kFaults}, .target = event::system().on(cpus)};
  const auto found = check(request, machine);
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0].says, "this machine has no CPU 4-9999");
  EXPECT_EQ(found[1].says, "offline: CPU 3");
  EXPECT_EQ(fds_needed(request, machine), 10'002U);
}

TEST(CheckRequestTest, CountsAllOpenFilesRequestNeeds) {
  FakeSystem machine;
  machine.be_root();
  Request request{.events = {kFaults, kSwitch}, .target = this_thread()};
  EXPECT_EQ(fds_needed(request, machine), 4U);
  request.target = child({"x"}).on({0});
  EXPECT_EQ(fds_needed(request, machine), 6U);
  request = {.events = std::vector<Event>(60, software(PERF_COUNT_SW_CPU_CLOCK)),
             .target = child({"x"}).on({0})};
  EXPECT_EQ(fields(request, machine), "") << "64 are allowed";
  machine.files["/proc/self/fd/0"] = machine.files["/proc/self/fd/1"] = "";
  EXPECT_EQ(fields(request, machine), "fd ") << "one is open, besides that of the folder";
  EXPECT_EQ(check(request, machine).front().says,
            "60 events need 64 open files, and the limit is 64, with 1 in use");
}

TEST(CheckRequestTest, AFolderThatIsNotACgroupIsNamed) {
  FakeSystem machine;
  machine.be_root();
  machine.kinds["/sys/fs/cgroup/a"] = {FileKind::Type::Folder, 0, 0x63677270};
  machine.kinds["/tmp"] = {FileKind::Type::Folder, 0, 0x1021994};
  const auto of = [&](const char* path) {
    return fields({.events = {kFaults}, .target = cgroup(path)}, machine);
  };
  EXPECT_EQ(of("/sys/fs/cgroup/a"), "");
  EXPECT_EQ(of("/tmp"), "cgroup ");
  EXPECT_EQ(of("/none"), "cgroup ");
}

TEST(CheckRequestTest, ACgroupOfAHierarchyWithoutPerfEventIsNamed) {
  FakeSystem machine;
  machine.be_root();
  constexpr std::uint64_t kCgroup1 = 0x27e0eb;
  for (const char* const folder : {"cpu", "cpu/a", "perf_event", "perf_event/a", "link/a"}) {
    machine.kinds[std::string{"/sys/fs/cgroup/"} + folder] = {FileKind::Type::Folder, 0, kCgroup1};
  }
  machine.files["/proc/self/mounts"] =
      "sysfs / sysfs rw 0 0\n"
      "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n"
      "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n"
      "cgroup /sys/fs/cgroup/perf_event cgroup rw,net_cls,perf_event 0 0\n";
  const auto finding_of = [&](const char* folder) {
    const auto found = check(
        {.events = {kFaults}, .target = cgroup(std::string{"/sys/fs/cgroup/"} + folder)}, machine);
    return found.empty() ? "" : found.front().field + ": " + found.front().says;
  };
  constexpr const char* kNone = "cgroup: the folder is in a cgroup v1 hierarchy without perf_event";
  EXPECT_EQ(finding_of("cpu"), kNone);
  EXPECT_EQ(finding_of("cpu/a"), kNone);
  EXPECT_EQ(finding_of("perf_event"), "");
  EXPECT_EQ(finding_of("perf_event/a"), "");
  EXPECT_EQ(finding_of("link/a"), "") << "it may be a symbolic link into another";
  machine.files.erase("/proc/self/mounts");
  EXPECT_EQ(finding_of("cpu"), "");
}

// A folder belongs to the innermost mount that contains it, compared by whole names.
TEST(CheckRequestTest, AFolderIsInTheInnermostMountAboveIt) {
  FakeSystem machine;
  machine.be_root();
  constexpr std::uint64_t kCgroup1 = 0x27e0eb;
  const std::vector<std::string> folders{"/cg",       "/cg/in",   "/cg/in/a",
                                         "/cg/inner", "/cg/in.a", "/x"};
  for (const std::string& folder : folders) {
    machine.kinds[folder] = {FileKind::Type::Folder, 0, kCgroup1};
  }
  const auto lacking = [&](const std::string& mounts) {
    machine.files["/proc/self/mounts"] = mounts;
    std::string all;
    for (const std::string& folder : folders) {
      if (!check({.events = {kFaults}, .target = cgroup(folder)}, machine).empty()) {
        all += folder + " ";
      }
    }
    return all;
  };
  const std::string with = "cgroup /cg cgroup rw,perf_event 0 0\n";
  const std::string within = "cgroup /cg/in cgroup rw,cpu 0 0\n";
  EXPECT_EQ(lacking(with), "");
  EXPECT_EQ(lacking(with + within), "/cg/in /cg/in/a ");
  EXPECT_EQ(lacking(within + with), "/cg/in /cg/in/a ") << "in whatever order";
  EXPECT_EQ(lacking("cgroup /cg cgroup rw,cpu 0 0\ncgroup /cg/in cgroup rw,perf_event 0 0\n"),
            "/cg /cg/inner /cg/in.a ");
  EXPECT_EQ(lacking("cgroup / cgroup rw,cpu 0 0\n" + with), "/x ");
  EXPECT_EQ(lacking("cgroup /cg cgroup rw,no_perf_event,perf_events 0 0\n"),
            "/cg /cg/in /cg/in/a /cg/inner /cg/in.a ")
      << "a name of its own";
  EXPECT_EQ(lacking("cgroup /cg cgroup perf_event 0 0\n"), "");
  EXPECT_EQ(lacking("cgroup2 /cg cgroup2 rw 0 0\n"), "");
}

// On an offline CPU, events for a cgroup or for all tasks do not open (ENODEV). Events for one task
// open, but stay silent.
TEST(CheckRequestTest, AnOfflineCpuIsRefusedToACgroup) {
  FakeSystem machine;
  machine.be_root();
  machine.kinds["/cg"] = {FileKind::Type::Folder, 0, 0x63677270};
  const auto severity = [&](const Target& target) {
    const auto found = check({.events = {kFaults}, .target = target}, machine);
    EXPECT_EQ(found.size(), 1U);
    if (found.empty()) return std::string{"nothing"};
    const bool refused = found.front().severity == Finding::Severity::Refused;
    return (refused ? "refused: " : "silent: ") + found.front().says;
  };
  for (const std::vector<std::uint32_t>& cpus : {std::vector{3U}, {0U, 3U}}) {
    EXPECT_EQ(severity(cgroup("/cg").on(cpus)), "refused: offline: CPU 3");
    EXPECT_EQ(severity(event::system().on(cpus)), "refused: offline: CPU 3");
    EXPECT_EQ(severity(this_thread().on(cpus)), "silent: offline: CPU 3");
  }
  EXPECT_EQ(severity(cgroup("/cg").on({4})), "refused: this machine has no CPU 4");
  // A list that cannot be read leads to no finding.
  machine.files.erase("/sys/devices/system/cpu/possible");
  EXPECT_EQ(severity(cgroup("/cg").on({4})), "refused: offline: CPU 4");
  EXPECT_EQ(fields({.events = {kFaults}, .target = cgroup("/cg").on({2})}, machine), "");
  machine.files.erase("/sys/devices/system/cpu/online");
  EXPECT_EQ(fields({.events = {kFaults}, .target = cgroup("/cg").on({4})}, machine), "");
}

TEST(CheckRequestTest, MorePagesThanARingCanHaveAreNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](std::size_t pages) {
    return fields({.events = {kFaults}, .target = this_thread(), .page_count = pages}, machine);
  };
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(of((std::size_t{1} << 30) / page), "");
  EXPECT_EQ(of((std::size_t{1} << 31) / page * 2), "page_count ");
#if defined(__x86_64__)
  EXPECT_EQ(of((std::size_t{1} << 31) / page), "page_count ") << "K35";
  EXPECT_EQ(of(std::size_t{1} << 40), "page_count ");
#endif
}

TEST(CheckRequestTest, AFilterOfAnEventWithoutFieldsIsNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](const Event& event) {
    return fields({.events = {event.filter("pid == 1")}, .target = this_thread()}, machine);
  };
  EXPECT_EQ(of(kFaults), "filter ");
  EXPECT_EQ(of(changes({.execs = true})), "filter ");
  EXPECT_EQ(of(kSwitch).find("filter"), std::string::npos);
}

#if defined(__x86_64__) || defined(__i386__)
TEST(CheckRequestTest, MoreBreakpointsThanAProcessorHasAreNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](std::size_t count, const Target& target) {
    const Request request{.events = std::vector<Event>(count, breakpoint(4096, Access::Write)),
                          .target = target};
    std::string text;
    for (const Finding& each : check(request, machine)) text += each.field + ": " + each.says;
    return text;
  };
  constexpr const char* kFive = "type: 5 breakpoints are requested, and x86 has four for each CPU";
  EXPECT_EQ(of(4, this_thread()), "");
  EXPECT_EQ(of(5, this_thread()), kFive);
  EXPECT_EQ(of(4, event::system()), "") << "four on each CPU";
  EXPECT_EQ(of(5, event::system()), kFive);
}
#endif

// open() excludes the kernel from some events by itself, which is not a refusal (E4). check()
// refuses a request of which nothing would be left.
TEST(CheckRequestTest, APlainUsersRequestIsCheckedAsItWouldBeOpened) {
  FakeSystem machine;
  machine.capabilities(0);
  const auto fields = [&machine](const Event& event) {
    std::string text;
    for (const Finding& each : check({.events = {event}, .target = this_thread()}, machine)) {
      if (each.severity == Finding::Severity::Refused) text += "refused ";
      text += each.field + " ";
    }
    return text;
  };
  EXPECT_EQ(fields(kFaults), "");
  EXPECT_EQ(fields(kFaults.kernel(Kernel::Included)), "refused exclude_kernel ");
  const Event migrations = software(PERF_COUNT_SW_CPU_MIGRATIONS);
  EXPECT_EQ(fields(migrations.kernel(Kernel::IfAllowed)), "exclude_kernel ");
}

}  // namespace
}  // namespace perfring::event
