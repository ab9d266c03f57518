// lib/perfring/event on the machine's own kernel: each sort of event. Needs no libbpf.

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/bpf_common.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <set>
#include <string>
#include <system_error>
#include <variant>

#include "harness/live/event_testing.h"
#include "harness/live/live_testing.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/os/fd.h"
#include "perfring/record/mappings.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/record/to_string.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event {
namespace {

using live::in_child;
using live::must;
using live::with_tracefs;
using testing::fault;
using testing::has_pmu;
using testing::kFaults;
using testing::LiveEventTest;

TEST_F(LiveEventTest, PageFaultsHaveTheirAddresses) {
  Sampler sampler = must(Sampler::open({.events = {kFaults.callchain()}, .target = this_thread()}));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t memory = fault(52);
  std::set<std::uint64_t> faulted;  // of the touched pages; ThreadSanitizer has a fault of its own
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

// Returns the number of context switches of this thread, as the kernel counts them.
long switched_out() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw + used.ru_nivcsw;
}

// A tracepoint's ids are from the machine's first PID namespace (PROC_PID_INIT_INO).
bool is_pid_namespace_of_boot() {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == 0xEFFFFFFC;
}

TEST_F(LiveEventTest, TheTracepointNeedsNoFlag) {
  const std::string output = with_tracefs([]() -> std::string {
    const auto format = TracepointFormat::of("sched:sched_switch");
    if (!format) return format.error().says;
    const auto name = format->text("prev_comm");
    const auto pid = format->field<std::int32_t>("prev_pid");
    if (!name || !pid) return "fields";
    auto sampler = Sampler::open({.events = {tracepoint("sched:sched_switch")}});
    if (!sampler) return sampler.error().explain();
    ::prctl(PR_SET_NAME, "the sleeper");
    // A sleep may be over before it begins, if a hypervisor takes the processor meanwhile. So count
    // how often this thread was switched out.
    const long before = switched_out();
    for (int i = 0; i < 1000 && switched_out() - before < 5; ++i) ::usleep(1000);
    const long switches = switched_out() - before;
    if (switches < 5) return "the thread was not switched out";
    long own = 0;
    sampler->flush([&](const Delivered& each) {
      const auto* const sample = std::get_if<record::Sample>(&each.record);
      if (sample == nullptr || name->of(*sample->raw()) != "the sleeper") return;
      if (is_pid_namespace_of_boot() && pid->of(*sample->raw()) != ::gettid()) return;
      ++own;
    });
    return own >= switches ? "seen" : std::to_string(own) + " of " + std::to_string(switches);
  });
  EXPECT_EQ(output, "seen");
}

TEST_F(LiveEventTest, AFilterLeavesOutRecordsThatDoNotMatch) {
  const std::string output = with_tracefs([]() -> std::string {
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
  EXPECT_EQ(output, "0 of some");
}

// This does not depend on the ids that the kernel has left in the samples (R25).
TEST_F(LiveEventTest, BothSamplersOfSoftwareEventGetSamples) {
  const Request requested{
      .events = {software(PERF_COUNT_SW_CPU_CLOCK).period(1'000'000'000), kFaults},
      .target = this_thread()};
  Sampler first = must(Sampler::open(requested));
  Sampler second = must(Sampler::open(requested));
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

// The kernel makes the second sampler's records too long (R28).
TEST_F(LiveEventTest, BothSamplersOfBpfProgramsGetSampleIds) {
  const Request requested{.events = {changes({.symbols = true, .programs = true})},
                          .target = system()};
  std::array samplers{must(Sampler::open(requested)), must(Sampler::open(requested))};
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

// R10: COMM enables NAMESPACES records of a CPU, and brings FORK and EXIT.
TEST_F(LiveEventTest, NamespacesOfAllTasksComeWithoutOtherRecords) {
  Sampler sampler =
      must(Sampler::open({.events = {changes({.namespaces = true})}, .target = event::system()}));
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

TEST_F(LiveEventTest, ABreakpointSeesEachWrite) {
  static volatile int watched = 0;
  const Request request{
      .events = {breakpoint(reinterpret_cast<std::uintptr_t>(&watched), Access::Write)},
      .target = this_thread()};
  if (!has_pmu("breakpoint")) GTEST_SKIP() << "this kernel has no breakpoints";
  if (live::breakpoints_are_silent()) GTEST_SKIP() << "no breakpoint is hit here (R30)";
  auto writes = Sampler::open(request);
#if defined(__arm__)
  // arch/arm/kernel/hw_breakpoint.c: hw_breakpoint_arch_parse(). qemu's processors have none.
  if (!writes && writes.error().io_error == std::errc::invalid_argument) {
    GTEST_SKIP() << "this processor has no breakpoints that can be stepped over";
  }
#elif defined(__powerpc__)
  // arch/powerpc/kernel/hw_breakpoint.c: hw_breakpoint_arch_parse(), v6.1: it does not use
  // POWER9's.
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

TEST_F(LiveEventTest, CounterOrGroupCountsPageFaults) {
  auto counter = must(Counter::open(kFaults, this_thread()));
  auto group = must(Group::open(
      {.events = {software(PERF_COUNT_SW_TASK_CLOCK), kFaults}, .target = this_thread()}));
  fault(20);
  EXPECT_GE(counter.read()->value, 20U);
  const auto counts = group.read();
  ASSERT_TRUE(counts);
  EXPECT_GT((*counts)[0].value, 0U);
  EXPECT_GE((*counts)[1].value, 20U);
  EXPECT_EQ((*counts)[1].scaled(), (*counts)[1].value);
}

TEST_F(LiveEventTest, UprobesBySymbolSeeBothEndsOfEachCall) {
#if defined(__thumb__)
  GTEST_SKIP() << "32-bit ARM kernels put no uprobe on Thumb instructions";
#endif
  // A static program probes itself.
  Dl_info libc{};
  std::error_code none;
  const bool is_shared = ::dladdr(reinterpret_cast<void*>(&::getppid), &libc) != 0 &&
                         std::filesystem::path{libc.dli_fname}.is_absolute();
  const auto path = std::filesystem::canonical(is_shared ? libc.dli_fname : "/proc/self/exe", none);
  Sampler sampler =
      must(Sampler::open({.events = {uprobe(path, "getppid"), uretprobe(path, "getppid"),
                                     uprobe("/nonexistent", std::uint64_t{0}).or_else(kFaults)},
                          .target = this_thread()}));
  EXPECT_EQ(sampler.notes().size(), 1U);
  for (int i = 0; i < 10; ++i) static_cast<void>(::getppid());
  std::size_t hits[3] = {};
  sampler.flush([&](const Delivered& each) { ++hits[each.event]; });
  EXPECT_EQ(hits[0], 10U);
  EXPECT_EQ(hits[1], 10U);
}

// Returns 0 if the address is unknown.
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

TEST_F(LiveEventTest, KprobesSeeBothEndsOfEachCall) {
  if (!has_pmu("kprobe")) GTEST_SKIP() << "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  const std::uint64_t function = kernel_address_of("do_sys_openat2");
  ASSERT_NE(function, 0U);
  Sampler sampler =
      must(Sampler::open({.events = {kprobe("do_sys_openat2"), kretprobe("do_sys_openat2")},
                          .target = this_thread()}));
  for (int i = 0; i < 10; ++i) ::close(::open("/nonexistent", O_RDONLY));
  std::size_t hits[2] = {};
  sampler.flush([&](const Delivered& each) {
    ++hits[each.event];
    // struct kprobe_trace_entry_head and kretprobe_trace_entry_head (kernel/trace/trace.h): an
    // address follows the common fields, either the function's or that of the replaced instruction.
    // It is the kernel's unsigned long, which may be too long for a 32-bit process.
    const auto raw = *std::get<record::Sample>(each.record).raw();
    const bool is_long = sizeof(long) == 8 || function >> 32 != 0;
    std::uint64_t address = 0;
    ASSERT_GE(raw.size(), is_long ? 16U : 12U);
    if (is_long) {
      std::memcpy(&address, raw.data() + 8, sizeof address);
    } else {
      std::uint32_t low = 0;
      std::memcpy(&low, raw.data() + 8, sizeof low);
      address = low;
    }
    EXPECT_LE(address - function, 16U) << std::hex << address << " of " << function;
  });
  EXPECT_EQ(hits[0], 10U);
  EXPECT_EQ(hits[1], 10U);
}

// 2.2: kprobes that are not possible, with the kernel's error and the explanation.
TEST_F(LiveEventTest, AKprobeThatCannotBeIsNamed) {
  if (!has_pmu("kprobe")) GTEST_SKIP() << "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  const auto refused = [](const Event& event) {
    const auto none = Sampler::open({.events = {event}, .target = this_thread()});
    return none ? "it opened"
                : none.error().io_error.message() + ": " + none.error().causes[0].says;
  };
  const auto prefix_of = [](int error) { return std::generic_category().message(error) + ": "; };
  EXPECT_EQ(refused(kprobe("no_such_function")),
            prefix_of(ENOENT) + "the kernel has no function of this name");
  EXPECT_EQ(refused(kretprobe("no_such_function")),
            prefix_of(ENOENT) + "the kernel has no function of this name");
#if defined(__x86_64__)
  EXPECT_EQ(refused(kprobe("exc_int3")),
            prefix_of(EINVAL) + "this place in the kernel may not be probed");
  // The function begins with ftrace's call, of 5 bytes, or with endbr64, of 4.
  EXPECT_EQ(refused(kprobe("do_sys_openat2", 1)),
            prefix_of(EILSEQ) + "the offset is inside an instruction");
#endif
}

TEST_F(LiveEventTest, WithoutPmuFallbackIsNoted) {
  const Event cycles =
      hardware(PERF_COUNT_HW_CPU_CYCLES).or_else(software(PERF_COUNT_SW_CPU_CLOCK));
  Sampler sampler = must(Sampler::open({.events = {cycles}, .target = this_thread()}));
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
  std::string output;
  for (const Cause& each : none.error().causes) output += each.says + "\n";
  EXPECT_EQ(output,
            "sigtrap needs remove_on_exec\n"
            "before it, the software event 12 was refused: there is no software event 12\n"
            "before it, the software event 13 was refused: there is no software event 13\n");
}

TEST_F(LiveEventTest, ACounterCountsWhatItsFilterLetsThrough) {
  const std::string wrong = live::with_tracefs([]() -> std::string {
    // Not a system call's tracepoint: a 64-bit x86 kernel does not count a 32-bit process's calls
    // (R29).
    const Event signals = tracepoint("signal:signal_generate");
    auto all = Counter::open(signals, this_thread());
    auto some = Counter::open(signals.filter("sig == " + std::to_string(SIGURG)), this_thread());
    if (!all || !some) return (all ? some : all).error().explain();
    // Both signals are ignored by default.
    for (const int sig : {SIGCHLD, SIGURG, SIGCHLD, SIGURG, SIGCHLD}) ::raise(sig);
    return std::to_string(all->read()->value) + " " + std::to_string(some->read()->value);
  });
  EXPECT_EQ(wrong, "5 2");
}

}  // namespace
}  // namespace perfring::event
