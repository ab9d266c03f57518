// lib/examples, and the README's loop over all CPUs, on the live kernel.

#include <gmock/gmock.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "harness/live/live_testing.h"
#include "harness/program/child_process.h"
#include "perfring/perfring.h"

namespace perfring::live {
namespace {

// The README's second example, verbatim, and the function that it leaves to the reader.
std::atomic<int> used = 0;
void use(const PerfEvent& event) {
  used += event.index() == 0;
}
#include "lib/perfring/readme_loop.inc"

using testing::MatchesRegex;

// Returns the command's stdout, and its end: "OUTPUT[exit 0]". Calls `keep_going` every 10 ms while
// the command runs.
std::string ran(const std::string& command, const std::function<void()>& keep_going) {
  ChildProcess child{{"/bin/sh", "-c", command}};
  const ProcessResult ended = child.wait([&] {
    ::usleep(8000);
    keep_going();
    return false;
  });
  return ended.out + "[exit " + std::to_string(ended.exit_code) + "]";
}

class ExamplesTest : public BpffsTest {
 protected:
  // Runs an example on the emitter's map, which is pinned as `events`.
  std::string on_pin(const std::string& name, const std::string& argument,
                     const std::function<void()>& keep_going, const std::string& before = {}) {
    return with_bpffs([&] {
      const auto pin = path("events");
      must(array().pin(pin.c_str()));
      return ran(before + "lib/examples/" + name + " " + pin.string() + " " + argument, keep_going);
    });
  }
};

// This example needs no kernel.
TEST(RingOnlyExampleTest, PrintsHello) {
  EXPECT_EQ(ran("lib/examples/ring_only", [] {}), "hello\n[exit 0]");
}

TEST_F(ExamplesTest, OneCpuPrintsTenSamples) {
  const std::string output = on_pin("one_cpu", std::to_string(cpu()), [&] { emit(8); });
  EXPECT_TRUE(std::regex_match(output, std::regex{"1: 12 bytes\n(.*\n)*10: 12 bytes\n"
                                                  "(1[1-9]: 12 bytes\n)*\\[exit 0\\]"}))
      << output;
}

TEST_F(ExamplesTest, SetUnsetCountsAllThatItsEntryTook) {
  const std::string output = with_bpffs([&] {
    const auto pin = path("events");
    must(array().pin(pin.c_str()));
    int accepted = 0;
    const std::string out =
        ran("lib/examples/set_unset " + pin.string() + " " + std::to_string(cpu()),
            [&] { accepted += emit(8) == 0; });
    return out + " of " + std::to_string(accepted);
  });
  EXPECT_TRUE(std::regex_match(output, std::regex{"([1-9][0-9]+) samples\n\\[exit 0\\] of \\1"}))
      << output;
}

TEST_F(ExamplesTest, StopEarlyTakesThreeEventsAtATime) {
  const std::string output = on_pin("stop_early", std::to_string(cpu()), [&] {
    if (emit(8) == 0) emitter().emit_many(cpu(), 8, 12);
  });
  EXPECT_TRUE(std::regex_match(
      output, std::regex{"(took [123](, which is all)?\n)*took 3\n(took [123](, which is all)?\n)*"
                         "\\[exit 0\\]"}))
      << output;
}

TEST_F(ExamplesTest, AllCpusCountsWhatEveryCpuOutputs) {
  const std::string output = on_pin("all_cpus", "5", [&] {
    static std::uint64_t accepted = 0;
    // Stop after some: the example does not count events after its last drain.
    if (accepted < 20) accepted += emit(8) == 0;
    if (accepted < 40 && other_cpu()) accepted += emitter().emit(*other_cpu(), 8) == 0;
  });
  const std::string samples = other_cpu() ? "40" : "20";
  EXPECT_TRUE(
      std::regex_match(output, std::regex{samples + " samples, 0 lost, 0 malformed\n\\[exit 0\\]"}))
      << output;
}

TEST_F(ExamplesTest, RingSetCountsEveryCpuUntilSignal) {
  std::uint64_t accepted = 0;
  const std::string output = on_pin(
      "ring_set", "",
      [&] {
        if (accepted < 20) accepted += emit(8) == 0;
        if (accepted < 20 && other_cpu()) accepted += emitter().emit(*other_cpu(), 8) == 0;
      },
      "timeout --preserve-status -s TERM 5 ");
  EXPECT_EQ(output, "20 samples, 0 lost, 0 malformed\n[exit 0]");
}

TEST_F(ExamplesTest, OwnLoopPrintsEveryCpusEventsInTheirOrder) {
  const auto cpu_of = [&](std::uint64_t key) {
    return key % 2 == 0 ? other_cpu().value_or(cpu()) : cpu();
  };
  const std::string output = on_pin(
      "own_loop", "",
      [&] {
        static std::uint64_t next = 1;
        if (next <= 20) next += emitter().emit_many(cpu_of(next), 8, 1, next).accepted;
      },
      "sleep 5 | ");
  std::string expected;
  for (std::uint64_t key = 1; key <= 20; ++key) {
    expected += "CPU " + std::to_string(cpu_of(key)) + ", key " + std::to_string(key) + "\n";
  }
  EXPECT_EQ(output, expected + "[exit 0]");
}

// Runs loops of libuv and of Boost.Asio, if these are installed.
TEST_F(ExamplesTest, LibraryLoopsPrintEveryCpusEventsInOrder) {
  const auto cpu_of = [&](std::uint64_t key) {
    return key % 2 == 0 ? other_cpu().value_or(cpu()) : cpu();
  };
  std::string expected;
  for (std::uint64_t key = 1; key <= 20; ++key) {
    expected += "CPU " + std::to_string(cpu_of(key)) + ", key " + std::to_string(key) + "\n";
  }
  for (const std::string name : {"uv_loop", "asio_loop"}) {
    if (::access(("lib/examples/" + name).c_str(), X_OK) != 0) continue;
    std::uint64_t next = 1;
    const std::string output = on_pin(name, "3", [&] {
      if (next <= 20) next += emitter().emit_many(cpu_of(next), 8, 1, next).accepted;
    });
    EXPECT_EQ(output, expected + "[exit 0]") << name;
  }
}

TEST_F(ExamplesTest, EachExampleSaysWhyItCannotRun) {
  for (const std::string name :
       {"one_cpu", "all_cpus", "set_unset", "stop_early", "ring_set", "own_loop"}) {
    const bool takes_two = !name.starts_with("ring") && !name.starts_with("own");
    const std::string arguments = takes_two ? " /nonexistent/pin 1" : " /nonexistent/pin";
    EXPECT_THAT(ran("lib/examples/" + name + arguments, [] {}),
                testing::AllOf(testing::HasSubstr("asked for: bpf_obj_get of /nonexistent/pin\n"),
                               testing::EndsWith("[exit 1]")));
    EXPECT_THAT(ran("lib/examples/" + name, [] {}), testing::StartsWith("usage: " + name));
  }
}

TEST_F(ExamplesTest, WithLibbpfPrintsTheProgramsThatAreStarted) {
  const std::string output = ran("lib/examples/with_libbpf lib/examples/execs.bpf.o 2>&1",
                                 [] { EXPECT_EQ(std::system("/bin/true"), 0); });
  EXPECT_TRUE(std::regex_match(output, std::regex{"(pid [0-9]+: .*\n){3,}\\[exit 0\\]"})) << output;
}

TEST_F(ExamplesTest, TheReadmesLoopDrainsEveryCpuUntilItIsStopped) {
  used = 0;
  std::atomic<bool> stop = false;
  int returned = -1;
  std::thread drains{[&] { returned = drain_every_cpu(array(), stop); }};
  int accepted = 0;
  for (int tries = 0; tries < 10'000 && accepted < 20; ++tries) {
    accepted += emit(8) == 0;
    if (other_cpu()) accepted += emitter().emit(*other_cpu(), 8) == 0;
    if (accepted == 0) ::usleep(1000);
  }
  for (int tries = 0; tries < 10'000 && used < accepted; ++tries) ::usleep(1000);
  stop = true;
  drains.join();
  EXPECT_GE(accepted, 20);
  EXPECT_EQ(used, accepted);
  EXPECT_EQ(returned, 0);
}

// The examples of events, which need no BPF.
class EventExamplesTest : public live::RootTest {
 protected:
  static std::string run(const std::string& line) {
    return ran("lib/examples/" + line, [] {});
  }
};

TEST_F(EventExamplesTest, PageFaultsPrintsEachPage) {
  const std::string output = run("page_faults | grep -c 'fault at'");
  EXPECT_GE(std::stoi(output), 200) << output;
}

// The README's.
TEST_F(EventExamplesTest, QuickStartPrintsEachPage) {
  const std::string output = run("quick_start | grep -c 'page fault at 0x'");
  EXPECT_GE(std::stoi(output), 200) << output;
}

TEST_F(EventExamplesTest, TracepointPrintsWhatIsRun) {
  const std::string output =
      ran("unshare -m sh -c '{ mountpoint -q /sys/kernel/tracing || "
          "mount -t tracefs tracefs /sys/kernel/tracing; } && "
          "{ (sleep 0.5; /bin/true) & lib/examples/tracepoint 1; }'",
          [] {});
  EXPECT_TRUE(std::regex_search(output, std::regex{"CPU [0-9]+: [0-9]+ runs /bin/true\n"}))
      << output;
}

TEST_F(EventExamplesTest, ProbesCountsTheCallsOfAFunction) {
  const std::string output = run("probes do_sys_openat2 $(realpath /bin/true) 0x2000 /bin/true");
  EXPECT_NE(output.find("has no symbol 0x2000"), std::string::npos) << output;
  const std::string libc = "$(ldd /bin/sh | sed -n 's/.*=> \\(.*libc.so[^ ]*\\).*/\\1/p')";
  const std::string hit = run("probes do_sys_openat2 " + libc + " getpid /bin/sh -c :");
  EXPECT_TRUE(
      std::regex_search(hit, std::regex{"getpid: ([1-9][0-9]*) calls, \\1 returns\n\\[exit 0"}))
      << hit;
}

TEST_F(EventExamplesTest, ProfileHasCallchainsWithMaps) {
  const std::string output =
      run("profile sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done' 2>/dev/null");
  EXPECT_TRUE(std::regex_match(output, std::regex{"[1-9][0-9]* samples, [1-9][0-9]* frames, "
                                                  "[1-9][0-9]* maps, 0 lost\n\\[exit 0\\]"}))
      << output;
}

TEST_F(EventExamplesTest, CountersFallBackWhereThereIsNoPmu) {
  const std::string output = run("counters");
  EXPECT_TRUE(std::regex_search(output, std::regex{"[1-9][0-9]*\\n.*[0-9]*\\n[1-9][0-9]*\\n"}))
      << output;
  EXPECT_NE(output.find("[exit 0]"), std::string::npos) << output;
}

TEST_F(EventExamplesTest, BreakpointSeesTenWrites) {
  const std::string output = run("breakpoint");
  if (breakpoints_are_silent()) {
    EXPECT_EQ(output, "0 of 10 writes were seen: not every hypervisor has breakpoints\n[exit 1]");
    return;
  }
  EXPECT_TRUE(std::regex_search(output, std::regex{"write 10 by 0x[0-9a-f]+\n\\[exit 0\\]"}))
      << output;
}

}  // namespace
}  // namespace perfring::live
