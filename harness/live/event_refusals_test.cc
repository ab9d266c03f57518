// Events that are not opened, and why, on the machine's own kernel: as root, as a user and with
// CAP_PERFMON.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "harness/live/testing.h"
#include "perfring/event/check.h"
#include "perfring/event/sampler.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using live::open_files;
using live::with_tracefs;

const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);

class LiveEventRefusalTest : public live::RootTest {};

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

std::string fields_of(const Request& request) {
  const auto sampler = Sampler::open(request, false);
  if (sampler) return sampler->notes().empty() ? "opens" : "opens without the kernel";
  std::string fields;
  for (const Cause& each : sampler.error().causes)
    fields += (fields.empty() ? "" : ", ") + each.field;
  return fields;
}

TEST_F(LiveEventRefusalTest, TooFewDescriptorsLeaveNothingOpen) {
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
TEST_F(LiveEventRefusalTest, WrongArgumentsAreNamed) {
  const auto self = this_thread();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct Row {
    const char* what;
    Request request;
    const char* said;
  };
  const std::vector<Row> rows{
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
  for (const Row& row : rows) EXPECT_EQ(fields_of(row.request), row.said) << row.what;
  const auto none = Sampler::open({.events = {}, .target = self});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Check);
}

// Does something of everything that is watched below.
void act() {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < 10; ++i) {
    void* const memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile char*>(memory) = 1;
    ::munmap(memory, page);
  }
  for (int i = 0; i < 100; ++i) ::syscall(SYS_getppid);
  ::prctl(PR_SET_NAME, "active");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWUTS));
  ::waitpid(child, nullptr, 0);
  ::usleep(1000);
  const auto end = std::chrono::steady_clock::now() + 30ms;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// What the kernel accepts and never answers, or hardly.
struct Quiet {
  const char* what;
  Event event;
  Target target;
  const char* field;  // that check() names
  std::size_t most;   // of records
};
constexpr std::size_t kAny = ~std::size_t{0};

std::vector<Quiet> quiet_requests() {
  using Attr = perf_event_attr;
  const auto self = this_thread();
  const auto all = event::system();
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK).period(1'000'000);
  const Event dummy = software(PERF_COUNT_SW_DUMMY);
  const Event switches = tracepoint("sched:sched_switch");
  const Event getppid = tracepoint("syscalls:sys_enter_getppid");
  const auto user_only = [](Attr& a) { a.exclude_kernel = 1; };
  return {
      {"no period", kFaults.period(0), self, "sample_period", 0},
      {"a clock of nobody", clock.adjust([](Attr& a) { a.exclude_user = a.exclude_kernel = 1; }),
       self, "exclude_user", 0},
      {"callchains of nobody", kFaults.callchain().adjust([](Attr& a) {
         a.exclude_callchain_user = a.exclude_callchain_kernel = 1;
       }),
       self, "exclude_callchain_user", kAny},
      {"dummy alone", dummy, self, "config", 0},
      {"comm_exec", dummy.adjust([](Attr& a) { a.comm_exec = 1; }), self, "comm_exec", 0},
      {"inherit_stat", dummy.adjust([](Attr& a) { a.inherit_stat = 1; }), self, "inherit_stat", 0},
      // It brings MMAP where anybody has asked for those (perf_event_mmap()).
      {"mmap2", dummy.adjust([](Attr& a) { a.mmap2 = 1; }), self, "mmap2", kAny},
      {"build_id", changes({.maps = true}).adjust([](Attr& a) { a.mmap2 = 0, a.build_id = 1; }),
       self, "build_id", kAny},
      {"switches without the kernel", software(PERF_COUNT_SW_CONTEXT_SWITCHES).adjust(user_only),
       self, "exclude_kernel", 0},
      {"migrations without the kernel", software(PERF_COUNT_SW_CPU_MIGRATIONS).adjust(user_only),
       self, "exclude_kernel", 0},
      {"precise_ip", kFaults.adjust([](Attr& a) { a.precise_ip = 2; }), self, "precise_ip", kAny},
      {"a clock of 100 ns", software(PERF_COUNT_SW_TASK_CLOCK).period(100), self, "sample_period",
       kAny},
      {"bpf-output without a program", software(PERF_COUNT_SW_BPF_OUTPUT), all, "config", 0},
      {"cgroup alone", changes({.cgroups = true}).adjust([](Attr& a) { a.comm = 0; }), all,
       "cgroup", 0},
      {"namespaces alone", changes({.namespaces = true}).adjust([](Attr& a) { a.comm = 0; }), all,
       "namespaces", 0},
      {"enable_on_exec of CPUs", clock.adjust([](Attr& a) { a.enable_on_exec = 1; }), all,
       "enable_on_exec", kAny},
      {"remove_on_exec of CPUs", clock.adjust([](Attr& a) { a.remove_on_exec = 1; }), all,
       "remove_on_exec", kAny},
#if !defined(__thumb__)  // on which 32-bit ARM kernels put no uprobe
      {"a uprobe's unknown bits",
       uprobe("/proc/self/exe", "main").adjust([](Attr& a) { a.config |= 2; }), self, "config",
       kAny},
#endif
      {"a kprobe without the kernel", kprobe("do_filp_open").adjust(user_only), self,
       "exclude_kernel", 0},
      {"a tracepoint without the kernel", switches.adjust(user_only), all, "exclude_kernel", 0},
      {"a tracepoint without users", getppid.adjust([](Attr& a) { a.exclude_user = 1; }), all,
       "exclude_user", kAny},
      {"a tracepoint of one task", switches, self, "pid", kAny},
      {"a tracepoint by frequency", getppid.frequency(1), self, "freq", 50},
      {"every 1000th of a tracepoint", getppid.period(1000), self, "sample_period", 0},
#if defined(__x86_64__) || defined(__i386__)
      {"alignment-faults", software(PERF_COUNT_SW_ALIGNMENT_FAULTS), self, "config", 0},
      {"emulation-faults", software(PERF_COUNT_SW_EMULATION_FAULTS), self, "config", 0},
#endif
  };
}

// Nothing if it is named, opens and is as quiet as it says.
std::string heard_of(const Quiet& row) {
  const Request request{.events = {row.event}, .target = row.target};
  const auto found = check(request);
  const auto named = std::ranges::find_if(found, [&](const Finding& each) {
    return each.field == row.field && each.severity == Finding::Severity::Silent;
  });
  if (named == found.end()) return "is not named";
  auto sampler = Sampler::open(request);
  if (!sampler) return sampler.error().explain();
  act();
  std::size_t records = 0;
  std::size_t frames = 0;
  sampler->flush([&](const Delivered& each) {
    const auto* const sample = std::get_if<record::Sample>(&each.record);
    if (sample != nullptr && sample->callchain()) frames += sample->callchain()->ips().size();
    ++records;
  });
  if (frames != 0) return std::to_string(frames) + " frames";
  return records > row.most ? std::to_string(records) + " records" : "";
}

TEST_F(LiveEventRefusalTest, WhatIsAcceptedInSilenceIsNamedAndIsSilent) {
  const bool has_kprobes = has_pmu("kprobe");
  const std::string said = with_tracefs([&] {
    std::string wrong;
    for (const Quiet& row : quiet_requests()) {
      if (row.event.kind() == Kind::Kprobe && !has_kprobes) continue;
      const std::string heard = heard_of(row);
      if (!heard.empty()) wrong += std::string{row.what} + ": " + heard + "\n";
    }
    return wrong;
  });
  EXPECT_EQ(said, "");
  if (!has_kprobes) RecordProperty("not seen", "a kprobe without the kernel: there are none");
}

// R9: it opens, and cannot be mapped.
TEST_F(LiveEventRefusalTest, AnInheritedEventWithoutACpuIsNotMapped) {
  const auto none =
      Sampler::open({.events = {kFaults.adjust([](perf_event_attr& a) { a.inherit = 1; })},
                     .target = this_thread()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Map);
  EXPECT_EQ(none.error().io_error, std::errc::invalid_argument);
}

// For one task it opens, and is silent.
TEST_F(LiveEventRefusalTest, ACpuThatIsOfflineIsNamed) {
  if (std::getenv("PERFRING_OFFLINE_CPU") == nullptr) {
    GTEST_SKIP() << "PERFRING_OFFLINE_CPU is not set: it takes a CPU offline, which stops others";
  }
  const auto switch_to = [](const char* to) {
    std::ofstream online{"/sys/devices/system/cpu/cpu1/online"};
    online << to << std::flush;
    return static_cast<bool>(online);
  };
  if (!switch_to("0")) GTEST_SKIP() << "CPU 1 cannot be taken offline";
  const auto all = Sampler::open({.events = {kFaults}, .target = event::system().on({1})});
  const Request own{.events = {kFaults}, .target = this_thread().on({1})};
  const auto found = check(own);
  auto one = Sampler::open(own);
  act();
  std::size_t records = 0;
  if (one) one->flush([&](const Delivered&) { ++records; });
  ASSERT_TRUE(switch_to("1"));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().io_error.value(), ENODEV);
  EXPECT_EQ(all.error().causes.front().field, "cpu");
  ASSERT_TRUE(one) << one.error().explain();
  EXPECT_EQ(records, 0U);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().says, "offline: CPU 1");
}

// The rows of the table of refusals that this machine can have, as root, as a user, with
// CAP_PERFMON: what is named as the cause.
TEST_F(LiveEventRefusalTest, EachCallersRefusalsAreNamed) {
  if (real_system().read("/proc/sys/kernel/perf_event_paranoid") != "2\n") {
    GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  }
  const auto self = this_thread();
  const auto all = event::system();
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const auto wrong = [](auto change) { return kFaults.adjust(change); };
  using Attr = perf_event_attr;
  struct Row {
    const char* what;
    Request request;
    const char* root;
    const char* user;
    const char* perfmon;
  };
  const std::vector<Row> rows{
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
      {"no such CPU", {{kFaults}, all.on({60000})}, "cpu", "pid", "cpu"},
      {"a software event", {{wrong([](Attr& a) { a.config = 12; })}, self}, "type", "type", "type"},
      {"msr of oneself", {{pmu("msr/tsc/")}, self}, "opens", "exclude_kernel", "opens"},
      {"msr of all", {{pmu("msr/tsc/")}, all}, "opens", "exclude_kernel", "opens"},
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
  constexpr int kPerfmon = 38;  // CAP_PERFMON
  for (const Row& row : rows) {
    if (row.request.events[0].kind() == Kind::Pmu && !has_pmu("msr")) continue;
    const auto ask = [&row] { return fields_of(row.request); };
    EXPECT_EQ(in_child(ask), row.root) << row.what;
    EXPECT_EQ(as_nobody({}, ask), row.user) << row.what;
    EXPECT_EQ(as_nobody({kPerfmon}, ask), row.perfmon) << row.what;
  }
}

}  // namespace
}  // namespace perfring::event
