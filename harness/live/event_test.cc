// lib/perfring/event on the machine's own kernel: each sort of event, as root, as a user and with
// CAP_PERFMON. Needs no BPF.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "harness/live/process.h"
#include "perfring/event/check.h"
#include "perfring/event/group.h"
#include "perfring/event/sampler.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/record/to_string.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using live::open_files;
using Clock = Sampler::Clock;

const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);

bool is_root() {
  return ::geteuid() == 0 && real_system().read("/proc/sys/kernel/perf_event_paranoid").has_value();
}

class EventTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_root()) return;
    if (std::getenv("PERFRING_REQUIRE_LIVE") != nullptr) FAIL() << "root and perf are needed";
    GTEST_SKIP() << "it needs root, and a kernel with perf";
  }
};

// The error's text, as the failure of a test.
template <class T>
T opened(std::expected<T, EventError> result) {
  if (!result) ADD_FAILURE() << result.error().explain();
  if (!result) throw std::runtime_error{"not opened"};
  return *std::move(result);
}

// In a child, with tracefs where it belongs.
std::string with_tracefs(const std::function<std::string()>& body) {
  return in_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) != 0) {
      return std::string{"no tracefs: "} + std::strerror(errno);
    }
    return body();
  });
}

// Touches so many new pages; returns where they were.
std::uint64_t fault(int pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t length = page * static_cast<std::size_t>(pages);
  auto* const memory = static_cast<volatile char*>(
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::madvise(const_cast<char*>(memory), length, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < length; at += page) memory[at] = 1;
  ::munmap(const_cast<char*>(memory), length);
  return reinterpret_cast<std::uintptr_t>(memory);
}

TEST_F(EventTest, TheBlogsProgramPrintsTenSwitchRecords) {
  Sampler sampler =
      opened(Sampler::open({.events = {changes({.switches = true})}, .target = this_thread()}));
  for (int i = 0; i < 10; ++i) {
    const auto one = sampler.next(Clock::now() + 500ms);
    ASSERT_TRUE(one) << "a timeout, after " << i;
    EXPECT_TRUE(std::holds_alternative<record::Switch>(one->record)) << to_string(one->record);
  }
  // R5: the wait's own records wake nobody.
  const auto before = sampler.counts().delivered;
  for (const auto end = Clock::now() + 500ms; Clock::now() < end;) {
    sampler.wait(end);
    sampler.for_each([](const Delivered&) {});
  }
  EXPECT_LT(sampler.counts().delivered - before, 100U);
}

TEST_F(EventTest, NextNeverTimesOutWithARecordInTheRing) {
  Sampler sampler =
      opened(Sampler::open({.events = {kFaults}, .target = this_thread(), .batch = 1 << 20}));
  while (sampler.next(Clock::now())) {
  }
  fault(3);
  std::uint64_t seen = 0;
  while (sampler.next(Clock::time_point::min())) ++seen;
  EXPECT_GE(seen, 3U);
  const auto began = Clock::now();
  while (sampler.next(began + 150ms)) {
  }
  EXPECT_GE(Clock::now() - began, 150ms);
}

TEST_F(EventTest, NextHoldsNothingBackBeyondItsDeadline) {
  Sampler sampler =
      opened(Sampler::open({.events = {kFaults}, .target = this_thread().and_children()}));
  if (sampler.rings() < 2) GTEST_SKIP() << "one CPU, so that nothing is held for its order";
  while (sampler.next(Clock::now())) {
  }
  fault(1);
  EXPECT_TRUE(sampler.next(Clock::time_point::min()));
}

TEST_F(EventTest, PageFaultsHaveTheirAddresses) {
  Sampler sampler =
      opened(Sampler::open({.events = {kFaults.callchain()}, .target = this_thread()}));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t memory = fault(52);
  std::set<std::uint64_t> faulted;  // of the pages touched; ThreadSanitizer's own fault as well
  sampler.flush([&](const Delivered& each) {
    const auto& sample = std::get<record::Sample>(each.record);
    EXPECT_EQ(sample.tid(), static_cast<std::uint32_t>(::gettid()));
    EXPECT_TRUE(sample.callchain());
    const std::uint64_t offset = *sample.addr() - memory;
    if (offset < 52 * page && offset % page == 0) faulted.insert(offset);
  });
  EXPECT_EQ(faulted.size(), 52U);
  EXPECT_EQ(sampler.lost(), 0U);
}

TEST_F(EventTest, TheTracepointNeedsNoFlag) {
  const std::string said = with_tracefs([]() -> std::string {
    const auto format = TracepointFormat::of("sched:sched_switch");
    if (!format) return format.error().says;
    const auto name = format->text("prev_comm");
    const auto pid = format->field<std::int32_t>("prev_pid");
    if (!name || !pid) return "fields";
    auto sampler = Sampler::open({.events = {tracepoint("sched:sched_switch")}});
    if (!sampler) return sampler.error().explain();
    ::prctl(PR_SET_NAME, "the sleeper");
    for (int i = 0; i < 5; ++i) ::usleep(1000);
    int own = 0;
    sampler->flush([&](const Delivered& each) {
      const auto* const sample = std::get_if<record::Sample>(&each.record);
      if (sample == nullptr || pid->of(*sample->raw()) != ::gettid()) return;
      if (name->of(*sample->raw()) == "the sleeper") ++own;
    });
    return own >= 5 ? "seen" : "only " + std::to_string(own);
  });
  EXPECT_EQ(said, "seen");
}

TEST_F(EventTest, AFilterLeavesTheOthersOut) {
  const std::string said = with_tracefs([]() -> std::string {
    const Event exits = tracepoint("sched:sched_process_exit");
    auto wrong = Sampler::open({.events = {exits.filter("nope == 1")}});
    if (wrong || wrong.error().step != EventError::Step::Filter) return "a wrong filter";
    auto none = Sampler::open({.events = {exits.filter("pid == 0")}});
    auto all = Sampler::open({.events = {exits}});
    if (!none || !all) return "not opened";
    in_child([] { return ""; });
    std::size_t filtered = 0;
    std::size_t unfiltered = 0;
    none->flush([&](const Delivered&) { ++filtered; });
    all->flush([&](const Delivered&) { ++unfiltered; });
    return std::to_string(filtered) + (unfiltered != 0 ? " of some" : " of none");
  });
  EXPECT_EQ(said, "0 of some");
}

TEST_F(EventTest, SeveralRingsComeInTheOrderOfTheirTimes) {
  Sampler sampler =
      opened(Sampler::open({.events = {software(PERF_COUNT_SW_CPU_CLOCK).frequency(2000), kFaults},
                            .target = event::system()}));
  std::uint64_t last = 0;
  std::size_t events[2] = {0, 0};
  const auto each = [&](const Delivered& one) {
    EXPECT_TRUE(one.late || one.time >= last);
    last = std::max(last, one.time);
    ASSERT_LT(one.event, 2U) << to_string(one.record);
    ++events[one.event];
  };
  for (const auto end = Clock::now() + 200ms; Clock::now() < end;) {
    fault(1);
    sampler.for_each(each);
  }
  sampler.flush(each);
  EXPECT_GT(events[0], 50U);
  EXPECT_GT(events[1], 50U);
  EXPECT_LE(sampler.counts().late, sampler.counts().delivered / 100);
  EXPECT_EQ(sampler.counts().malformed, 0U);
}

TEST_F(EventTest, AChildIsSeenFromItsExecveToItsEnd) {
  Sampler sampler = opened(Sampler::open(
      {.events = {changes({.execs = true, .forks = true})}, .target = child({"true"})}));
  std::string seen;
  const auto each = [&](const Delivered& one) {
    const auto* const comm = std::get_if<record::Comm>(&one.record);
    if (comm != nullptr) seen += std::string{comm->comm()} + (comm->is_exec() ? " exec " : " ");
    if (std::holds_alternative<record::Exit>(one.record)) seen += "exit";
  };
  while (!sampler.child_status()) sampler.wait(Clock::now() + 10ms);
  EXPECT_EQ(*sampler.child_status(), 0);
  sampler.flush(each);
  EXPECT_EQ(seen, "true exec exit");
}

TEST_F(EventTest, ACommandThatCannotBeRunIsSaid) {
  const std::size_t before = open_files();
  const auto none = Sampler::open(
      {.events = {changes({.execs = true})}, .target = child({"/nonexistent/program"})});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Child);
  EXPECT_NE(none.error().explain().find("there is no such program"), std::string::npos);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the child is left as a zombie";
}

TEST_F(EventTest, AChildKilledBeforeItsStartIsAnErrorAndNoSignal) {
  const std::string said = in_child([]() -> std::string {
    auto sampler = Sampler::open({.events = {kFaults}, .target = child({"true"})}, false);
    if (!sampler) return sampler.error().explain();
    ::kill(sampler->child(), SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(sampler->child()), &ended, WEXITED | WNOWAIT);
    const auto started = sampler->start();
    if (started) return "it started";
    if (started.error().step != EventError::Step::Child) return started.error().explain();
    if (sampler->child_status() != SIGKILL) return "its status is not known";
    return started.error().causes.front().says;
  });
  EXPECT_EQ(said, "its process has ended before it was started");
}

TEST_F(EventTest, BreakpointsProbesAndCounters) {
  static volatile int watched = 0;
  Sampler writes = opened(Sampler::open(
      {.events = {breakpoint(reinterpret_cast<std::uintptr_t>(&watched), Access::Write)},
       .target = this_thread()}));
  Sampler calls =
      opened(Sampler::open({.events = {uprobe("/nonexistent", std::uint64_t{0}).or_else(kFaults)},
                            .target = this_thread()}));
  EXPECT_EQ(calls.notes().size(), 1U);
  auto counter = opened(Counter::open(kFaults, this_thread()));
  auto group = opened(Group::open(
      {.events = {software(PERF_COUNT_SW_TASK_CLOCK), kFaults}, .target = this_thread()}));
  for (int i = 0; i < 7; ++i) watched = i;
  fault(20);
  std::size_t hits = 0;
  writes.flush([&](const Delivered& each) {
    EXPECT_EQ(*std::get<record::Sample>(each.record).addr(),
              reinterpret_cast<std::uintptr_t>(&watched));
    ++hits;
  });
  EXPECT_EQ(hits, 7U);
  EXPECT_GE(counter.read()->value, 20U);
  const auto counts = group.read();
  ASSERT_TRUE(counts);
  EXPECT_GT((*counts)[0].value, 0U);
  EXPECT_GE((*counts)[1].value, 20U);
  EXPECT_EQ((*counts)[1].scaled(), (*counts)[1].value);
}

TEST_F(EventTest, AUprobeBySymbolIsHit) {
  Dl_info libc{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::getppid), &libc), 0);
  Sampler sampler = opened(
      Sampler::open({.events = {uprobe(std::filesystem::canonical(libc.dli_fname), "getppid")},
                     .target = this_thread()}));
  for (int i = 0; i < 10; ++i) static_cast<void>(::getppid());
  std::size_t hits = 0;
  sampler.flush([&](const Delivered&) { ++hits; });
  EXPECT_EQ(hits, 10U);
}

TEST_F(EventTest, WithoutAPmuTheFallbackIsTakenAndSaid) {
  const Event cycles =
      hardware(PERF_COUNT_HW_CPU_CYCLES).or_else(software(PERF_COUNT_SW_CPU_CLOCK));
  Sampler sampler = opened(Sampler::open({.events = {cycles}, .target = this_thread()}));
  const bool has_pmu = sampler.events()[0].attr.type == PERF_TYPE_HARDWARE;
  ASSERT_EQ(sampler.notes().size(), has_pmu ? 0U : 1U);
  for (const std::string& note : sampler.notes()) {
    EXPECT_NE(note.find("cpu-clock instead"), std::string::npos) << note;
  }
}

TEST_F(EventTest, TooFewDescriptorsLeaveNothingOpen) {
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

// What the types allow and no kernel does: an error that names it, or a request that is as good.
TEST_F(EventTest, WrongArgumentsAreNamed) {
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

// The rows of the table of refusals that this machine can have, as root, as a user, with
// CAP_PERFMON: what is named as the cause.
TEST_F(EventTest, EachCallersRefusalsAreNamed) {
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
      {"a clock",
       {{wrong([](Attr& a) { a.clockid = 2; })}, self},
       "clockid, use_clockid",
       "clockid, use_clockid",
       "clockid, use_clockid"},
  };
  constexpr int kPerfmon = 38;  // CAP_PERFMON
  for (const Row& row : rows) {
    const auto ask = [&row] { return fields_of(row.request); };
    EXPECT_EQ(in_child(ask), row.root) << row.what;
    EXPECT_EQ(as_nobody({}, ask), row.user) << row.what;
    EXPECT_EQ(as_nobody({kPerfmon}, ask), row.perfmon) << row.what;
  }
}

}  // namespace
}  // namespace perfring::event
