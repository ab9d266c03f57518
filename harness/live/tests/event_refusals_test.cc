// Events that the machine's own kernel accepts and never answers. For events that it refuses see
// event_callers_test.cc and event_sources_test.cc.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "harness/live/event_testing.h"
#include "harness/live/live_testing.h"
#include "harness/program/child_process.h"
#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/record/sample.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using live::with_tracefs;
using testing::Attr;
using testing::has_pmu;
using testing::kFaults;

class LiveEventRefusalTest : public live::RootTest {};

// Triggers each of the events that are watched below.
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
  ForkedChild{[] { return ::unshare(CLONE_NEWUTS); }}.wait();
  ::usleep(1000);
  const auto end = std::chrono::steady_clock::now() + 30ms;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// A request that the kernel accepts, but answers never or hardly ever.
struct Quiet {
  const char* what;
  Event event;
  Target target;
  const char* field;            // the field that check() names
  std::size_t most;             // of records, at most
  std::pair<int, int> since{};  // this version of Linux
};
constexpr std::size_t kAny = ~std::size_t{0};

std::vector<Quiet> quiet_requests() {
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
      // It brings MMAP records if anybody has asked for these (perf_event_mmap()).
      {"mmap2", dummy.adjust([](Attr& a) { a.mmap2 = 1; }), self, "mmap2", kAny},
      {"build_id",
       changes({.maps = true}).adjust([](Attr& a) { a.mmap2 = 0, a.build_id = 1; }),
       self,
       "build_id",
       kAny,
       {5, 12}},
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
      {"remove_on_exec of CPUs",
       clock.adjust([](Attr& a) { a.remove_on_exec = 1; }),
       all,
       "remove_on_exec",
       kAny,
       {5, 13}},
#if !defined(__thumb__)  // on Thumb code, 32-bit ARM kernels put no uprobe
      {"a uprobe's unknown bits",
       uprobe("/proc/self/exe", "main").adjust([](Attr& a) { a.config |= 2; }), self, "config",
       kAny},
#endif
      {"a kprobe without the kernel", kprobe("do_sys_openat2").adjust(user_only), self,
       "exclude_kernel", 0},
      {"a tracepoint without the kernel", switches.adjust(user_only), all, "exclude_kernel", 0},
      {"a tracepoint without users", getppid.adjust([](Attr& a) { a.exclude_user = 1; }), all,
       "exclude_user", kAny},
      {"a tracepoint of one task", switches, self, "pid", kAny},
      {"a tracepoint by frequency", getppid.frequency(1), self, "freq", 50},
      // R7: 5.10 writes two records at the first hit.
      {"every 1000th of a tracepoint", getppid.period(1000), self, "sample_period",
       live::is_linux(6, 1) ? 0U : 2U},
#if defined(__x86_64__)  // on which an ELF header begins like an instruction
      {"a uprobe where no code is", uprobe("/proc/self/exe", std::uint64_t{0}), self,
       "probe_offset", 0},
#endif
#if defined(__x86_64__) || defined(__i386__)
      {"alignment-faults", software(PERF_COUNT_SW_ALIGNMENT_FAULTS), self, "config", 0},
      {"emulation-faults", software(PERF_COUNT_SW_EMULATION_FAULTS), self, "config", 0},
#endif
  };
}

// Returns "" if check() names the field, and the event opens and is as quiet as the row says.
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

// R7, R10, R11
TEST_F(LiveEventRefusalTest, AnEventThatOpensButStaysSilentIsNamedByCheck) {
  const bool has_kprobes = has_pmu("kprobe");
  const std::string output = with_tracefs([&] {
    std::string wrong;
    std::vector<Quiet> rows = quiet_requests();
    const Event print = tracepoint("ftrace:print");  // has an id on some kernels only
    if (print.attr()) rows.push_back({"the tracer's", print, event::system(), "config", 0});
    std::erase_if(
        rows, [](const Quiet& row) { return !live::is_linux(row.since.first, row.since.second); });
    for (const Quiet& row : rows) {
      if (row.event.kind() == EventKind::Kprobe && !has_kprobes) continue;
      const std::string heard = heard_of(row);
      if (!heard.empty()) wrong += std::string{row.what} + ": " + heard + "\n";
    }
    return wrong;
  });
  EXPECT_EQ(output, "");
  if (!has_kprobes) RecordProperty("not seen", "a kprobe without the kernel: there are none");
}

// The sampler watches all tasks, or this process or thread by its number (R5, R27).
TEST_F(LiveEventRefusalTest, ASamplerIsNotWokenByTheWaitsOfItsOwnThread) {
  const std::string output = with_tracefs([] {
    std::string wrong;
    const Event switches = changes({.switches = true});
    for (const auto& [event, target] :
         {std::pair{switches, event::system()}, std::pair{switches, process(::getpid())},
          std::pair{switches, thread(::gettid())},
          std::pair{tracepoint("sched:sched_switch"), event::system()},
          std::pair{tracepoint("raw_syscalls:sys_enter"), this_thread()}}) {
      auto sampler = Sampler::open({.events = {event}, .target = target});
      if (!sampler) return sampler.error().explain();
      std::size_t waits = 0;
      for (const auto end = std::chrono::steady_clock::now() + 300ms;
           std::chrono::steady_clock::now() < end; ++waits) {
        sampler->wait(end);
        sampler->for_each([](const Delivered&) {});
      }
      // Records of other programs cause a wakeup for each half of a ring of 64 KiB. There is no
      // lower bound: busy tasks may bring the waits to 0.
      if (waits > 20 + sampler->counts().delivered / 50) {
        wrong += event.name() + ": " + std::to_string(waits) + " waits for " +
                 std::to_string(sampler->counts().delivered) + " records\n";
      }
    }
    return wrong;
  });
  EXPECT_EQ(output, "");
}

// The list of a process's threads is older than their opening (R8).
TEST_F(LiveEventRefusalTest, ProcessWithChangingThreadsIsOpened) {
  const ForkedChild first_is_gone{[] {
    std::thread{[] { ::pause(); }}.detach();
    return static_cast<int>(::syscall(SYS_exit, 0));  // ends this thread only: it stays in the list
  }};
  const ForkedChild busy{[]() -> int {
    while (true) std::thread{[] {}}.join();
  }};
  const std::string process_of_it = "/proc/" + std::to_string(first_is_gone.id());
  const std::string status = process_of_it + "/status";
  const auto is_gone = [&] {
    return real_system().read(status)->find("\nState:\tZ") != std::string::npos;
  };
  for (const auto end = std::chrono::steady_clock::now() + 30s;
       !is_gone() && std::chrono::steady_clock::now() < end;) {
    ::usleep(1000);
  }
  const auto gone = Sampler::open({.events = {kFaults}, .target = process(first_is_gone.id())});
  // ThreadSanitizer has threads of its own.
  const std::filesystem::directory_iterator tasks{process_of_it + "/task"};
  const auto there = std::distance(begin(tasks), end(tasks)) - 1;
  std::string wrong;
  for (int i = 0; i < 200 && wrong.empty(); ++i) {
    const auto one = Sampler::open({.events = {kFaults}, .target = process(busy.id())});
    if (!one) wrong = one.error().explain();
  }
  EXPECT_EQ(wrong, "");
  ASSERT_TRUE(gone) << gone.error().explain();
  EXPECT_GE(there, 1);
  EXPECT_EQ(gone->rings(), static_cast<std::size_t>(there)) << "of the threads that are there";
}

// K34. For one task the event opens, and is silent.
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

}  // namespace
}  // namespace perfring::event
