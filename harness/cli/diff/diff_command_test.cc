// Runs `perfring diff` and `perfring conform --live` as processes: both compare the simulated
// kernel with the live one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/live/require_live_kernel.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/privileges.h"
#include "harness/program/sanitizers.h"
#include "perfring/version.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ProcessResult diff(const std::string& arguments, const std::string& before = "") {
  return run_line("diff " + arguments, before);
}

// Returns the path of the file with all traces.
std::string traces() {
  const char* const path = std::getenv("TRACES");
  return path == nullptr ? "" : path;
}

class DiffLiveTest : public ::testing::Test {
 protected:
  void SetUp() override { live::require_live_kernel(); }
};

TEST(DiffReplayTest, ATraceNeedsNoLiveKernel) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the traces are little-endian";
  const std::string one =
      temporary("one.trace", "trace full\npoll => 0 head 0 tail 0 lost 0 0 time 0\n");
  const ProcessResult ended = diff("--replay " + traces() + " --replay " + one + " --json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["verdict"], "holds");
  EXPECT_EQ(json["kernel"], "recorded kernel");
  EXPECT_EQ(json["scripts"], 46);
}

TEST(DiffReplayTest, ATraceOfTheOtherByteOrderIsRefused) {
  const bool little = std::endian::native == std::endian::little;
  const std::string other = temporary(
      "other.trace", std::string{"trace full\nbyte_order "} + (little ? "big" : "little") +
                         "\npoll => 0 head 0 tail 0 lost 0 0 time 0\n");
  const ProcessResult ended = diff("--replay " + other);
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("was recorded on a machine with the other byte order"));
}

TEST(DiffReplayTest, ATraceThatShowsSomethingElseIsAViolation) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the traces are little-endian";
  std::string text = contents(traces());
  const std::size_t at = text.find(" head 2", text.find("trace full\n"));
  ASSERT_NE(at, std::string::npos) << text;
  text[at + 6] = '8';  // another data_head
  const std::string changed = temporary("changed.trace", text);
  const ProcessResult ended = diff("--replay " + changed + " --json");
  EXPECT_EQ(ended.exit_code, 1) << ended.out;
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["verdict"], "violated");
  EXPECT_THAT(json["violation"]["message"].get<std::string>(), HasSubstr("data_head 8"));
  EXPECT_THAT(diff("--replay " + changed).out,
              HasSubstr("replay: perfring diff --replay " + changed +
                        "  # perfring " PERFRING_VERSION ", its trace 'full'"));
}

TEST_F(DiffLiveTest, AScriptOrCpuThatThisKernelCannotRunIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"# such as\nword 32\noutput 1\n", "line 2: this live kernel has 64 bits"},
      {"start 8\noutput 1\n", "line 1: this live kernel has 64 bits"},
      {"output 1\n> at 1 output 1\n", "line 2: a nested step"},
  };
  for (const auto& [script, message] : cases) {
    const ProcessResult ended = diff("--script " + temporary("script", script));
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.out, HasSubstr(message));
  }
  const ProcessResult cpu = diff("--cpu 4095 --scripts 1");
  EXPECT_EQ(cpu.exit_code, 2);
  EXPECT_THAT(cpu.out, HasSubstr("--cpu: this process may not run on CPU 4095: choose from "));
}

TEST_F(DiffLiveTest, TooFewDescriptorsAreTheSystemsError) {
  if (kSanitized) GTEST_SKIP() << kTooFewForASanitizer;
  int failed = 0;
  for (int files = 4; files < 64; ++files) {
    const ProcessResult ended = diff("--scripts 1", "prlimit --nofile=" + std::to_string(files));
    if (ended.exit_code == 0) break;
    if (ended.out.find("perfring: ") == std::string::npos) continue;  // the program did not start
    EXPECT_EQ(ended.exit_code, 2) << files;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("Too many open files"), Not(HasSubstr("report it"))));
    ++failed;
  }
  EXPECT_GT(failed, 3) << "none was missing";
}

TEST_F(DiffLiveTest, AScriptMayComeFromAFileOrAPipe) {
  const ProcessResult file = diff("--script " + temporary("right", "output 1\n"));
  EXPECT_EQ(file.exit_code, 0) << file.out;
  EXPECT_THAT(file.out, HasSubstr("1 script, 1 step"));
  const ProcessResult pipe = diff("--script - --json", "echo output 1 |");
  EXPECT_EQ(pipe.exit_code, 0) << pipe.out;
  EXPECT_EQ(parsed(pipe.out)["verdict"], "holds");
}

TEST_F(DiffLiveTest, ARecordedTraceReplaysWithoutADifference) {
  const std::string folder = temporary("traces");
  std::filesystem::remove_all(folder);
  const ProcessResult recorded = diff("--scripts 2 --seed 5 --steps 20 --record " + folder);
  EXPECT_EQ(recorded.exit_code, 0) << recorded.out;
  EXPECT_THAT(recorded.out, AllOf(HasSubstr("2 traces recorded in " + folder),
                                  HasSubstr("diff --replay " + folder + "/seed-6.trace")));
  const ProcessResult replayed =
      diff("--replay " + folder + "/seed-5.trace --replay " + folder + "/seed-6.trace");
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out;
  EXPECT_THAT(replayed.out, HasSubstr("equals the recorded kernel"));
  const ProcessResult joined = diff("--replay - --json", "cat " + folder + "/*.trace |");
  EXPECT_EQ(joined.exit_code, 0) << joined.out;
  EXPECT_EQ(parsed(joined.out)["scripts"], 2);
  const ProcessResult piped = run_line("diff --script '" + temporary("# a one", "output 8\n") +
                                       "'" + " --record - | $PERFRING_RUN_UNDER " +
                                       std::getenv("PERFRING_BINARY") + " diff --replay -");
  EXPECT_EQ(piped.exit_code, 0) << piped.out;
  EXPECT_THAT(piped.out, HasSubstr("1 script, 1 step"));
}

TEST_F(DiffLiveTest, FolderThatCannotBeCreatedIsRefused) {
  const std::string parent = temporary("missing");
  std::filesystem::remove_all(parent);
  const ProcessResult missing = diff("--scripts 1 --record " + parent + "/folder");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.out, AllOf(HasSubstr("cannot be created: No such file"),
                                 HasSubstr("give one whose parent exists")));
  EXPECT_FALSE(std::filesystem::exists(parent));
  const ProcessResult file = diff("--scripts 1 --record " + temporary("file", "x"));
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_THAT(file.out, HasSubstr("cannot be created: Not a directory"));
}

TEST_F(DiffLiveTest, AnInterruptIsNoPass) {
  for (const char* signal : {"INT", "TERM"}) {
    const ProcessResult ended =
        run_line_until(signal, "diff --scripts 1000000000 --json 2>/dev/null");
    EXPECT_EQ(ended.exit_code, 3) << ended.out;
    const auto json = parsed(ended.out);
    EXPECT_EQ(json["interrupted"], true);
    EXPECT_EQ(json["holds"], false);
  }
}

// `perfring conform --live` must give the verdicts that were found on the simulated kernel.
class ConformLiveTest : public PerfringTest {
 protected:
  void SetUp() override {
#ifndef __x86_64__
    GTEST_SKIP() << "the supervisor supports only x86-64";
#endif
    if (kSanitized) GTEST_SKIP() << "a sanitizer makes system calls of its own";
    if (live::require_live_kernel()) PerfringTest::SetUp();
  }
  ProcessResult conform(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"conform", "--live"});
    return run(arguments);
  }
  static std::string subject(const char* name) {
    return std::filesystem::absolute(environment_variable(name)).string();
  }
};

TEST_F(ConformLiveTest, PerfringIsRightInEachPlayableCase) {
  const ProcessResult ended =
      conform({"--json", "--", subject("PERFRING_SUBJECT"), "{pages}", "{wakeup_watermark}",
               "{wakeup_events}", "{sample_type}", "{sample_id_all}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const auto counts = parsed(ended.out)["counts"];
  EXPECT_GE(counts["right"], 60) << ended.out;
  EXPECT_EQ(counts["right"].get<int>() + counts["not run"].get<int>(), 133) << ended.out;
}

// Failures that were observed before by other means (P22), and cases that libbpf passes.
TEST_F(ConformLiveTest, LibbpfFailsAsItDoesOnTheSimulatedKernel) {
  const std::string known = temporary("known",
                                      "oversize-65525 garbage\noversize-65540 garbage\n"
                                      "oversize-near-the-end out of bounds\n"
                                      "while-registering loses\nregistering-full loses\n");
  const ProcessResult ended =
      conform({"--known", known, "--only", "three-sizes", "straddle-8", "lost-many", "lost-paused",
               "oversize-65525", "oversize-65540", "oversize-near-the-end", "while-registering",
               "registering-full", "--", subject("LIBBPF_SUBJECT"), "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("4 right, 2 loses, 2 garbage, 1 out of bounds"),
                               HasSubstr("signal 11 at byte 135168 of the ring's 135168")));
}

TEST_F(ConformLiveTest, BpftoolFloodsOnTheSecondOfTwoRings) {
  const std::string bpftool = "/usr/sbin/bpftool";
  if (!std::filesystem::exists(bpftool)) GTEST_SKIP() << "bpftool: ci/setup conform";
  const ProcessResult ended =
      conform({"--reader", "bpftool", "--only", "oversize-overwrites", "sample-time", "--", bpftool,
               "-j", "map", "event_pipe", "id", "1"});
  EXPECT_THAT(ended.out, HasSubstr("1 right, 1 floods")) << ended.err;
}

TEST_F(ConformLiveTest, AFaultyConsumerIsFound) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const std::vector<std::pair<std::string, std::string>> ways{
      {"well", "lost-one  reachable  right\n"},
      {"silent", "loses: not delivered: "},
      {"reads", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"disabled", "not run: it left its event disabled"},
  };
  for (const auto& [how, outcome] : ways) {
    const ProcessResult ended = conform({"--only", "lost-one", "--", program, how, "{pages}"});
    EXPECT_THAT(ended.out, HasSubstr(outcome)) << how << ended.err;
  }
}

TEST_F(ConformLiveTest, WithoutPrivilegesNoCaseIsRun) {
  if (!is_root()) GTEST_SKIP() << "to drop privileges needs some";
  const ProcessResult ended = run({"conform", "--live", "--only", "one-record", "--", "/bin/true"},
                                  {"/usr/bin/setpriv", "--bounding-set=-all"});
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("one-record  reachable  not run: no privilege for"));
}

// A subject that waits as its first argument says, and writes the results to the file in its
// second.
constexpr const char* kWaits = R"(
import ctypes, os, select, signal, struct, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
libc, size = ctypes.CDLL(None), 65 * 4096
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
attr = struct.pack("IIQQQQQI", 1, 112, 10, 1, 1 << 10, 0, 0, 1).ljust(112, b"\0")
fd = libc.syscall(298, attr, -1, 0, -1, 8)
ring = libc.mmap(None, size, 3, 1, fd, 0)
bpf = lambda command, words: libc.syscall(321, command, words.ljust(72, b"\0"), 72)
array, key, value = bpf(0, struct.pack("IIII", 4, 4, 4, 64)), ctypes.c_uint32(0), ctypes.c_uint32(fd)
bpf(2, struct.pack("IIQQ", array, 0, ctypes.addressof(key), ctypes.addressof(value)))
IN, OUT, NORM, ET, ONCE = select.POLLIN, select.POLLOUT, 64, select.EPOLLET, select.EPOLLONESHOT
def poll(events=IN, times=1, ppoll=False):
    one = ctypes.create_string_buffer(struct.pack("ihh", fd, events, 0) * times)
    ready = libc.ppoll(one, times, b"\0" * 16, None) if ppoll else libc.poll(one, times, 0)
    return ready, struct.unpack("ihh" * times, one.raw[:8 * times])[2::3]
def epoll(events=IN, of=fd):
    one = select.epoll()
    one.register(of, events)
    return one
def seen(one): return [events for _, events in one.poll(0.05)]
def nine(one): return [seen(one) for _ in range(9)]
def written():  # all of the case, unread, and the flag is set
    one = epoll(ONCE | IN)
    nine(one), one.unregister(fd)
def drain():
    word = ctypes.c_uint64.from_address
    word(ring + 1032).value = word(ring + 1024).value
def selected(which):
    return [len(each) for each in select.select(*[[fd] * (i == which) for i in range(3)], 0)]
def limited():  # what it returns, and whether time is left
    one, time = ctypes.create_string_buffer(128), struct.pack("qq", 0, 10000)
    one[fd // 8], time = 1 << fd % 8, ctypes.create_string_buffer(time)
    return libc.select(fd + 1, one, None, None, time), any(time.raw[:16])
pipe = os.pipe()  # its first end is readable from the third look on
def beside(times, other=pipe[0], selects=False):
    one = ctypes.create_string_buffer(struct.pack("ihhihh", fd, IN, 0, other, IN, 0))
    if times == 2: os.write(pipe[1], b"1")
    if selects: return [len(each) for each in select.select([fd, pipe[0]], [fd, pipe[1]], [fd], 0)]
    return libc.poll(one, 2, 0), struct.unpack("ihhihh", one.raw[:16])[2::3]
open(sys.argv[2], "w").write(repr(eval(sys.argv[1])))
)";

// The sequences of K26 to K33. An emulated wait behaves like the kernel's, or the case is not run
// (P13).
TEST_F(ConformLiveTest, EmulatedWaitsReportWhatThisKernelReports) {
  const std::vector<std::pair<std::string, std::string>> sequences{
      {"[poll() for _ in range(9)]", ""},
      {"[poll(ppoll=True) for _ in range(9)]", ""},
      {"written(), poll(), poll()", ""},
      {"written(), drain(), poll(), poll()", ""},
      {"written(), poll(IN | NORM), poll(IN | NORM)", ""},
      {"written(), poll(OUT), poll()", ""},
      {"written(), poll(IN, 2), poll(IN, 2)", ""},
      {"written(), libc.ioctl(fd, 0x2401, 0), poll(), poll()", ""},
      {"nine(epoll())", ""},
      {"nine(epoll(IN | OUT))", ""},
      {"nine(epoll(IN | ET))", ""},
      {"(lambda e: (nine(e), e.modify(fd, IN), seen(e)))(epoll(IN | ONCE))", ""},
      {"written(), seen(epoll())", ""},
      {"(lambda e: [(seen(e), poll()) for _ in range(9)])(epoll())", "by epoll and by poll"},
      {"nine(epoll(OUT))", "epoll for events other than EPOLLIN"},
      {"nine(epoll(IN | NORM))", "epoll for events other than EPOLLIN"},
      {"(lambda e, f: nine(e))(epoll(), epoll())", "in two epoll instances"},
      {"(lambda e: nine(epoll(IN, e)))(epoll())", "an epoll instance in another"},
      {"[selected(0) for _ in range(9)]", ""},
      {"written(), selected(1), selected(0), poll()", ""},
      {"written(), selected(2), selected(0)", ""},
      {"written(), poll(), selected(0)", ""},
      {"written(), limited(), limited(), poll()", ""},
      {"[beside(i) for i in range(9)]", ""},
      {"[beside(i, 99) for i in range(9)]", ""},
      {"[beside(i, selects=True) for i in range(9)]", ""},
      {"(lambda f: [beside(i, f) for i in range(9)])(libc.signalfd(-1, b'\\0' * 128, 0))",
       "a poll of a ring and a signalfd"},
  };
  std::size_t reported = 0;
  for (const auto& [sequence, not_emulated] : sequences) {
    const auto outcome = [&](const std::string& live) {
      const std::string file = temporary("trace");
      std::filesystem::remove(file);
      std::vector<std::string> words{"conform", "--only", "around-the-ring"};
      if (!live.empty()) words.push_back(live);
      words.insert(words.end(), {"--", "/usr/bin/python3", "-c", kWaits, sequence, file});
      const ProcessResult ended = run(words);
      return ended.out.find(" is not emulated") == std::string::npos ? contents(file) : ended.out;
    };
    const std::string simulated = outcome("");
    const std::string live = outcome("--live");
    EXPECT_THAT(live, AllOf(Not(HasSubstr("not emulated")), Not(::testing::IsEmpty()))) << sequence;
    reported += std::ranges::count(live, '1') != 0 ? 1 : 0;
    if (not_emulated.empty()) {
      EXPECT_EQ(simulated, live) << sequence;
    } else {
      EXPECT_THAT(simulated, HasSubstr(not_emulated + " is not emulated")) << sequence;
    }
  }
  EXPECT_GE(reported, 20U) << "the ring was written to";
}

}  // namespace
}  // namespace perfring::cli
