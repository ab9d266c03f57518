// lib/perfring/event on the machine's own kernel: each sort of event. Needs no libbpf.

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "harness/live/testing.h"
#include "harness/program/sanitizers.h"
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
using live::with_tracefs;
using Clock = Sampler::Clock;

const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);

class LiveEventTest : public live::RootTest {};

// The error's text, as the failure of a test.
template <class T>
T opened(std::expected<T, EventError> result) {
  if (!result) ADD_FAILURE() << result.error().explain();
  if (!result) throw std::runtime_error{"not opened"};
  return *std::move(result);
}

bool has_pmu(const char* name) {
  return internal::Facts{real_system()}.pmu_type(name).has_value();
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

TEST_F(LiveEventTest, TheBlogsProgramPrintsTenSwitchRecords) {
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

TEST_F(LiveEventTest, NextNeverTimesOutWithARecordInTheRing) {
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

// E7: without a deadline, and although nothing else would end the wait for a minute.
TEST_F(LiveEventTest, NextEndsWithTheTasksThatAreWatched) {
  for (const std::vector<Event>& events :
       {std::vector{kFaults}, std::vector{kFaults, changes({.forks = true})}}) {
    Sampler sampler =
        opened(Sampler::open({.events = events, .target = child({"true"}), .longest_wait = 60s}));
    std::size_t faults = 0;
    std::size_t exits = 0;
    const auto began = Clock::now();
    while (const auto each = sampler.next()) {
      faults += std::holds_alternative<record::Sample>(each->record);
      exits += std::holds_alternative<record::Exit>(each->record);
    }
    EXPECT_LT(Clock::now() - began, 30s);
    EXPECT_GT(faults, 0U);
    EXPECT_EQ(exits, events.size() - 1);
    EXPECT_TRUE(sampler.ended());
    EXPECT_FALSE(sampler.next());
    // Nor does a loop of waits spin (R22).
    int waits = 0;
    for (const auto end = Clock::now() + 200ms; Clock::now() < end; ++waits) sampler.wait(end);
    EXPECT_LT(waits, 20);
    while (!sampler.child_status()) ::usleep(1000);
  }
}

// A process that does what it is told, a byte at a time, and ends without one.
class Obedient {
 public:
  explicit Obedient(const std::function<void(char)>& does) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error{"no process"};
    if (pid_ != 0) return;
    ::close(pipe_[1]);
    for (char order = 0; ::read(pipe_[0], &order, 1) == 1;) does(order);
    ::_exit(0);
  }
  ~Obedient() { end(); }
  Obedient(const Obedient&) = delete;
  Obedient& operator=(const Obedient&) = delete;

  pid_t pid() const { return pid_; }
  void tell(char order) const { EXPECT_EQ(::write(pipe_[1], &order, 1), 1); }
  void end() {
    if (pid_ == 0) return;
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t pid_ = 0;
};

TEST_F(LiveEventTest, ASamplerOfAProcessEndsWithItsLastChild) {
  Obedient process{[](char order) {
    fault(order - '0');
    if (order != '2') return;
    // It leaves a child, which inherits the pipe's end and the events, and does the rest.
    if (::fork() != 0) ::_exit(0);
  }};
  Sampler sampler = opened(Sampler::open({.events = {kFaults, changes({.forks = true})},
                                          .target = event::process(process.pid()).and_children(),
                                          .longest_wait = 20ms}));
  EXPECT_FALSE(sampler.ended());
  process.tell('2');
  while (::kill(process.pid(), 0) == 0 && ::waitpid(process.pid(), nullptr, WNOHANG) == 0) {
    ::usleep(1000);
  }
  while (sampler.next(Clock::now() + 50ms)) {
  }
  EXPECT_FALSE(sampler.ended()) << "the child has not";
  process.tell('5');
  process.end();
  std::size_t faults = 0;
  while (const auto each = sampler.next()) {
    faults += std::holds_alternative<record::Sample>(each->record);
  }
  EXPECT_GE(faults, 5U);
  EXPECT_TRUE(sampler.ended());
  EXPECT_EQ(sampler.lost(), 0U);
}

// Of threads that share rings, which the first one's events are mapped by: it ends before the
// other.
TEST_F(LiveEventTest, TheLastThreadsEndIsTheEnd) {
#ifdef PERFRING_TSAN
  GTEST_SKIP() << "ThreadSanitizer starts no thread in a process that fork() made";
#endif
  int go[2] = {-1, -1};
  ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
  const Obedient process{[&go](char order) {
    if (order == 'e') ::syscall(SYS_exit, 0);  // this thread alone
    ::close(go[1]);
    std::thread{[&go] {
      char none = 0;
      static_cast<void>(!::read(go[0], &none, 1));
      ::usleep(200'000);  // so that most likely somebody waits by then
      fault(5);
      ::_exit(0);
    }}.detach();
  }};
  const std::string folder = "/proc/" + std::to_string(process.pid()) + "/task";
  const auto threads = [&] { return real_system().list(folder).value().size(); };
  process.tell('t');
  while (threads() != 2) ::usleep(1000);
  Sampler sampler = opened(Sampler::open({.events = {kFaults},
                                          .target = event::process(process.pid()).and_children(),
                                          .longest_wait = 60s}));
  process.tell('e');
  const std::string first = folder + "/" + std::to_string(process.pid()) + "/stat";
  while (real_system().read(first).value().find(") Z ") == std::string::npos) ::usleep(1000);
  while (sampler.next(Clock::now())) {
  }
  EXPECT_FALSE(sampler.ended());
  for (const int end : go) ::close(end);
  const auto began = Clock::now();
  std::size_t faults = 0;
  while (const auto each = sampler.next()) {
    faults += std::holds_alternative<record::Sample>(each->record);
  }
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_GE(faults, 5U);
  EXPECT_TRUE(sampler.ended());
}

TEST_F(LiveEventTest, ASamplerOfAllTasksDoesNotEnd) {
  Sampler sampler =
      opened(Sampler::open({.events = {changes({.forks = true})}, .target = event::system()}));
  EXPECT_FALSE(sampler.ended());
  const auto began = Clock::now();
  while (sampler.next(began + 50ms)) {
  }
  EXPECT_GE(Clock::now() - began, 50ms);
}

TEST_F(LiveEventTest, NextHoldsNothingBackBeyondItsDeadline) {
  Sampler sampler =
      opened(Sampler::open({.events = {kFaults}, .target = this_thread().and_children()}));
  if (sampler.rings() < 2) GTEST_SKIP() << "one CPU, so that nothing is held for its order";
  while (sampler.next(Clock::now())) {
  }
  fault(1);
  EXPECT_TRUE(sampler.next(Clock::time_point::min()));
}

// Of another loop, which knows fd() and next_deadline() alone: a record that is held for its order
// is seen when that is over, and one below the batch by longest_wait (E2).
TEST_F(LiveEventTest, AnotherLoopSeesEachRecordInTime) {
  for (const bool is_held : {true, false}) {
    Sampler sampler =
        opened(Sampler::open({.events = {kFaults},
                              .target = is_held ? this_thread().and_children() : this_thread(),
                              .batch = is_held ? 0U : 1U << 15,
                              .longest_wait = is_held ? std::chrono::nanoseconds{60s} : 100ms}));
    if (is_held && sampler.rings() < 2) continue;  // one CPU: nothing is held
    bool is_seen = false;
    std::uint64_t memory = 0;
    const auto each = [&](const Delivered& one) {
      const auto* const sample = std::get_if<record::Sample>(&one.record);
      is_seen = is_seen || (sample != nullptr && sample->addr() == memory);
    };
    memory = fault(1);
    const auto began = Clock::now();
    while (!is_seen && Clock::now() - began < 30s) {
      sampler.wait(Clock::time_point::min());
      sampler.for_each(each);
      if (is_seen) break;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(sampler.next_deadline() - Clock::now());
      pollfd ready{sampler.fd(), POLLIN, 0};
      ::poll(&ready, 1, std::clamp(static_cast<int>(left.count()), 0, 30'000));
    }
    EXPECT_LT(Clock::now() - began, 20s) << (is_held ? "held" : "below the batch");
    EXPECT_TRUE(is_seen);
  }
}

TEST_F(LiveEventTest, PageFaultsHaveTheirAddresses) {
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

// The context switches of this thread, as the kernel counts them.
long switched_out() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw + used.ru_nivcsw;
}

TEST_F(LiveEventTest, TheTracepointNeedsNoFlag) {
  const std::string said = with_tracefs([]() -> std::string {
    const auto format = TracepointFormat::of("sched:sched_switch");
    if (!format) return format.error().says;
    const auto name = format->text("prev_comm");
    const auto pid = format->field<std::int32_t>("prev_pid");
    if (!name || !pid) return "fields";
    auto sampler = Sampler::open({.events = {tracepoint("sched:sched_switch")}});
    if (!sampler) return sampler.error().explain();
    ::prctl(PR_SET_NAME, "the sleeper");
    // A sleep may be over before it begins, where a hypervisor takes the processor meanwhile: what
    // counts is how often this thread was switched out.
    const long before = switched_out();
    for (int i = 0; i < 1000 && switched_out() - before < 5; ++i) ::usleep(1000);
    const long switches = switched_out() - before;
    if (switches < 5) return "the thread was not switched out";
    long own = 0;
    sampler->flush([&](const Delivered& each) {
      const auto* const sample = std::get_if<record::Sample>(&each.record);
      if (sample == nullptr || pid->of(*sample->raw()) != ::gettid()) return;
      if (name->of(*sample->raw()) == "the sleeper") ++own;
    });
    return own >= switches ? "seen" : std::to_string(own) + " of " + std::to_string(switches);
  });
  EXPECT_EQ(said, "seen");
}

TEST_F(LiveEventTest, AFilterLeavesOutRecordsThatDoNotMatch) {
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

TEST_F(LiveEventTest, SeveralRingsComeInTheOrderOfTheirTimes) {
  // Clocks, since their samples have times of their own: those of kFaults would be as old as they
  // are of the first that is served, if others sample it, too (R25), and so late.
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  Sampler sampler =
      opened(Sampler::open({.events = {Event{clock}.frequency(2000), Event{clock}.frequency(1000)},
                            .target = event::system()}));
  std::uint64_t last = 0;
  std::size_t events[2] = {0, 0};
  const auto each = [&](const Delivered& one) {
    EXPECT_TRUE(one.late || one.time >= last);
    last = std::max(last, one.time);
    ASSERT_LT(one.event, 2U) << to_string(one.record);
    ++events[one.event];
  };
  for (const auto end = Clock::now() + 200ms; Clock::now() < end;) sampler.for_each(each);
  sampler.flush(each);
  EXPECT_GT(events[0], 50U);
  EXPECT_GT(events[1], 50U);
  EXPECT_LE(sampler.counts().late, sampler.counts().delivered / 100);
  EXPECT_EQ(sampler.counts().malformed, 0U);
}

// Whatever the events' clock, nothing is held for longer than its order takes.
TEST_F(LiveEventTest, RecordsComeWhateverTheirClock) {
  for (const clockid_t clock :
       {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI, -1}) {
    const Event event = kFaults.adjust([clock](perf_event_attr& attr) {
      attr.use_clockid = clock >= 0;
      attr.clockid = std::max(clock, 0);
    });
    Sampler sampler =
        opened(Sampler::open({.events = {event}, .target = this_thread().and_children()}));
    fault(3);
    const auto deadline = Clock::now() + 10s;
    std::size_t seen = 0;
    while (seen < 3 && Clock::now() < deadline) {
      sampler.wait(deadline);
      sampler.for_each([&](const Delivered&) { ++seen; });
    }
    EXPECT_GE(seen, 3U) << "clock " << clock;
    fault(3);
    const auto began = Clock::now();
    EXPECT_TRUE(sampler.next(began + 60s)) << "clock " << clock;
    EXPECT_LT(Clock::now(), began + 50s) << "clock " << clock;
  }
}

// R25
TEST_F(LiveEventTest, EachOfTwoSamplersOfASoftwareEventGetsItsSamples) {
  const Request asked{.events = {software(PERF_COUNT_SW_CPU_CLOCK).period(1'000'000'000), kFaults},
                      .target = this_thread()};
  Sampler first = opened(Sampler::open(asked));
  Sampler second = opened(Sampler::open(asked));
  fault(20);
  for (Sampler* const each : {&first, &second}) {
    std::size_t faults = 0;
    each->flush([&](const Delivered& one) {
      EXPECT_NE(one.event, Delivered::kNoEvent) << to_string(one.record);
      if (one.event == 1) ++faults;
    });
    EXPECT_GE(faults, 20U);
  }
}

// R28: the kernel makes the records of the second too long.
TEST_F(LiveEventTest, EachOfTwoSamplersOfBpfProgramsGetsTimeAndTask) {
  const Request asked{.events = {changes({.symbols = true, .programs = true})}, .target = system()};
  std::array samplers{opened(Sampler::open(asked)), opened(Sampler::open(asked))};
  std::array<bpf_insn, 2> instructions{};
  instructions[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  instructions[1].code = BPF_JMP | BPF_EXIT;
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  load.insns = reinterpret_cast<std::uintptr_t>(instructions.data());
  load.insn_cnt = instructions.size();
  load.license = reinterpret_cast<std::uintptr_t>("GPL");
  const os::Fd program{static_cast<int>(::syscall(__NR_bpf, BPF_PROG_LOAD, &load, sizeof load))};
  if (program.get() < 0) GTEST_SKIP() << "bpf(BPF_PROG_LOAD): " << std::strerror(errno);
  for (Sampler& sampler : samplers) {
    std::size_t loaded = 0;
    sampler.flush([&](const Delivered& one) {
      const auto* const record = std::get_if<record::BpfEvent>(&one.record);
      if (record == nullptr || record->sample_id().tid() != ::gettid()) return;
      EXPECT_EQ(one.event, 0U);
      EXPECT_GT(record->sample_id().time(), 0U);
      loaded += record->type() == PERF_BPF_EVENT_PROG_LOAD;
    });
    EXPECT_EQ(loaded, 1U);
  }
}

TEST_F(LiveEventTest, AChildIsSeenFromItsExecveToItsEnd) {
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

// R10: COMM is what lets NAMESPACES of a CPU come, and brings FORK and EXIT.
TEST_F(LiveEventTest, NamespacesOfAllTasksComeWithoutOtherRecords) {
  Sampler sampler =
      opened(Sampler::open({.events = {changes({.namespaces = true})}, .target = event::system()}));
  EXPECT_EQ(in_child([] { return std::to_string(::unshare(CLONE_NEWUTS)); }), "0");
  std::size_t namespaces = 0;
  sampler.flush([&](const Delivered& each) {
    if (std::holds_alternative<record::Namespaces>(each.record)) {
      ++namespaces;
    } else {
      ADD_FAILURE() << to_string(each.record);
    }
  });
  EXPECT_GT(namespaces, 0U);
}

TEST_F(LiveEventTest, ACommandThatCannotBeRunIsExplained) {
  const std::size_t before = open_files();
  const auto none = Sampler::open(
      {.events = {changes({.execs = true})}, .target = child({"/nonexistent/program"})});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Child);
  EXPECT_NE(none.error().explain().find("there is no such program"), std::string::npos);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the child is left as a zombie";
}

TEST_F(LiveEventTest, AChildKilledBeforeItsStartIsAnErrorAndNoSignal) {
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
  EXPECT_EQ(said, "its process ended before it was started");
}

TEST_F(LiveEventTest, ABreakpointSeesEachWrite) {
  static volatile int watched = 0;
  const Request request{
      .events = {breakpoint(reinterpret_cast<std::uintptr_t>(&watched), Access::Write)},
      .target = this_thread()};
  if (!has_pmu("breakpoint")) GTEST_SKIP() << "this kernel has no breakpoints";
  auto writes = Sampler::open(request);
#if defined(__arm__)
  // arch/arm/kernel/hw_breakpoint.c: hw_breakpoint_arch_parse(); qemu's have none.
  if (!writes && writes.error().io_error == std::errc::invalid_argument) {
    GTEST_SKIP() << "this processor has no breakpoints that can be stepped over";
  }
#elif defined(__powerpc__)
  // arch/powerpc/kernel/hw_breakpoint.c: hw_breakpoint_arch_parse(), v6.1: POWER9's are not used.
  if (!writes && writes.error().io_error == std::errc::no_such_device) {
    GTEST_SKIP() << "the kernel uses no breakpoints of this processor";
  }
#endif
  ASSERT_TRUE(writes) << writes.error().explain();
  for (int i = 0; i < 7; ++i) watched = i;
  std::size_t hits = 0;
  writes->flush([&](const Delivered& each) {
    EXPECT_EQ(*std::get<record::Sample>(each.record).addr(),
              reinterpret_cast<std::uintptr_t>(&watched));
    ++hits;
  });
  EXPECT_EQ(hits, 7U);
}

TEST_F(LiveEventTest, ACounterAndAGroupCountPageFaults) {
  auto counter = opened(Counter::open(kFaults, this_thread()));
  auto group = opened(Group::open(
      {.events = {software(PERF_COUNT_SW_TASK_CLOCK), kFaults}, .target = this_thread()}));
  fault(20);
  EXPECT_GE(counter.read()->value, 20U);
  const auto counts = group.read();
  ASSERT_TRUE(counts);
  EXPECT_GT((*counts)[0].value, 0U);
  EXPECT_GE((*counts)[1].value, 20U);
  EXPECT_EQ((*counts)[1].scaled(), (*counts)[1].value);
}

TEST_F(LiveEventTest, AUprobeBySymbolIsHitAndReturns) {
#if defined(__thumb__)
  GTEST_SKIP() << "32-bit ARM kernels put no uprobe on Thumb instructions";
#endif
  // Of a static program: itself.
  Dl_info libc{};
  std::error_code none;
  const bool is_shared = ::dladdr(reinterpret_cast<void*>(&::getppid), &libc) != 0 &&
                         std::filesystem::path{libc.dli_fname}.is_absolute();
  const auto path = std::filesystem::canonical(is_shared ? libc.dli_fname : "/proc/self/exe", none);
  Sampler sampler =
      opened(Sampler::open({.events = {uprobe(path, "getppid"), uretprobe(path, "getppid"),
                                       uprobe("/nonexistent", std::uint64_t{0}).or_else(kFaults)},
                            .target = this_thread()}));
  EXPECT_EQ(sampler.notes().size(), 1U);
  for (int i = 0; i < 10; ++i) static_cast<void>(::getppid());
  std::size_t hits[3] = {};
  sampler.flush([&](const Delivered& each) { ++hits[each.event]; });
  EXPECT_EQ(hits[0], 10U);
  EXPECT_EQ(hits[1], 10U);
}

// 0 where it is not known.
std::uint64_t kernel_address_of(const std::string& function) {
  std::ifstream symbols{"/proc/kallsyms"};
  std::string address;
  std::string type;
  std::string name;
  for (std::string rest; symbols >> address >> type >> name; std::getline(symbols, rest)) {
    if (name == function) return std::stoull(address, nullptr, 16);
  }
  return 0;
}

TEST_F(LiveEventTest, KprobesSeeEachCallAndItsReturn) {
  if (!has_pmu("kprobe")) GTEST_SKIP() << "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  const std::uint64_t function = kernel_address_of("do_filp_open");
  ASSERT_NE(function, 0U);
  Sampler sampler = opened(Sampler::open(
      {.events = {kprobe("do_filp_open"), kretprobe("do_filp_open")}, .target = this_thread()}));
  for (int i = 0; i < 10; ++i) ::close(::open("/nonexistent", O_RDONLY));
  std::size_t hits[2] = {};
  sampler.flush([&](const Delivered& each) {
    ++hits[each.event];
    // struct kprobe_trace_entry_head and kretprobe_trace_entry_head (kernel/trace/trace.h): behind
    // the common fields an address, of the instruction that was replaced, if not of the function.
    unsigned long address = 0;
    const auto raw = *std::get<record::Sample>(each.record).raw();
    ASSERT_GE(raw.size(), 8 + sizeof address);
    std::memcpy(&address, raw.data() + 8, sizeof address);
    EXPECT_LE(address - function, 16U) << std::hex << address << " of " << function;
  });
  EXPECT_EQ(hits[0], 10U);
  EXPECT_EQ(hits[1], 10U);
}

// 2.2: what a kprobe may not be, as the kernel says it, and as it is explained.
TEST_F(LiveEventTest, AKprobeThatCannotBeIsNamed) {
  if (!has_pmu("kprobe")) GTEST_SKIP() << "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  const auto refused = [](const Event& event) {
    const auto none = Sampler::open({.events = {event}, .target = this_thread()});
    return none ? "it opened"
                : none.error().io_error.message() + ": " + none.error().causes[0].says;
  };
  const auto says = [](int error) { return std::generic_category().message(error) + ": "; };
  EXPECT_EQ(refused(kprobe("no_such_function")),
            says(ENOENT) + "the kernel has no function of this name");
  EXPECT_EQ(refused(kretprobe("no_such_function")),
            says(ENOENT) + "the kernel has no function of this name");
#if defined(__x86_64__)
  EXPECT_EQ(refused(kprobe("exc_int3")),
            says(EINVAL) + "this place in the kernel may not be probed");
  // Its first instruction is ftrace's call, of 5 bytes, or endbr64, of 4.
  EXPECT_EQ(refused(kprobe("do_filp_open", 1)),
            says(EILSEQ) + "the offset is inside an instruction");
#endif
}

TEST_F(LiveEventTest, WithoutAPmuTheFallbackIsTakenAndSaid) {
  const Event cycles =
      hardware(PERF_COUNT_HW_CPU_CYCLES).or_else(software(PERF_COUNT_SW_CPU_CLOCK));
  Sampler sampler = opened(Sampler::open({.events = {cycles}, .target = this_thread()}));
  const bool has_pmu = sampler.events()[0].attr.type == PERF_TYPE_HARDWARE;
  ASSERT_EQ(sampler.notes().size(), has_pmu ? 0U : 1U);
  for (const std::string& note : sampler.notes()) {
    EXPECT_NE(note.find("cpu-clock instead"), std::string::npos) << note;
  }
}

TEST_F(LiveEventTest, IfNoFallbackOpensEachRefusalIsNamed) {
  const Event chain =
      software(static_cast<perf_sw_ids>(12))
          .or_else(software(static_cast<perf_sw_ids>(13))
                       .or_else(software(PERF_COUNT_SW_DUMMY).adjust([](perf_event_attr& a) {
                         a.sigtrap = 1;
                       })));
  const auto none = Sampler::open({.events = {chain}, .target = this_thread()});
  ASSERT_FALSE(none);
  std::string said;
  for (const Cause& each : none.error().causes) said += each.says + "\n";
  EXPECT_EQ(said,
            "sigtrap needs remove_on_exec\n"
            "before it, the software event 12 was refused: there is no software event 12\n"
            "before it, the software event 13 was refused: there is no software event 13\n");
}

TEST_F(LiveEventTest, ACounterCountsWhatItsFilterLetsThrough) {
  const std::string wrong = live::with_tracefs([]() -> std::string {
    const Event calls = tracepoint("syscalls:sys_enter_getpgid");
    auto all = Counter::open(calls, this_thread());
    auto some = Counter::open(calls.filter("pid == 77"), this_thread());
    if (!all || !some) return (all ? some : all).error().explain();
    for (const pid_t pid : {0, 77, 0, 77, 0}) static_cast<void>(::getpgid(pid));
    return std::to_string(all->read()->value) + " " + std::to_string(some->read()->value);
  });
  EXPECT_EQ(wrong, "5 2");
}

}  // namespace
}  // namespace perfring::event
