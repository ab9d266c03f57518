// Tests of the lines that adapters and other programs print, and of how adapters end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include <bit>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/cases/vector.h"
#include "harness/conformance/subjects.h"
#include "harness/program/child_process.h"

namespace perfring::conformance {
namespace {

using Kind = Wanted::Kind;
using ::testing::HasSubstr;

TEST(PrintedTest, TheProtocolsLinesAreEvents) {
  const auto printed = parse_printed("sample 0aff\nlost 3\nerror why\ntail 32\n");
  ASSERT_TRUE(printed.has_value()) << printed.error();
  const std::vector<Event> events{{.payload = {std::byte{0x0a}, std::byte{0xff}}},
                                  {.kind = Kind::Lost, .lost = 3},
                                  {.kind = Kind::Bad}};
  EXPECT_EQ(printed->events, events);
  EXPECT_EQ(printed->tail, 32U);
}

TEST(PrintedTest, AnyOtherLineIsRefused) {
  for (const char* const line : {"sample 0", "sample xy", "lost", "lost -1", "tail", "hello"}) {
    EXPECT_FALSE(parse_printed(line).has_value()) << line;
  }
}

TEST(ReaderTest, BpftoolsJsonIsEvents) {
  const auto read = reader_of("bpftool").read(
      R"([{"type":9,"cpu":0,"index":0,"timestamp":5,"data":[10,255]},)"
      R"({"type":2,"cpu":0,"index":0,"lost":{"id":1,"count":3}},{"type":77,"cpu":0,"index":0}])");
  ASSERT_TRUE(read.has_value()) << read.error();
  const std::vector<Event> events{{.payload = {std::byte{0x0a}, std::byte{0xff}}},
                                  {.kind = Kind::Lost, .lost = 3},
                                  {.kind = Kind::Bad}};
  EXPECT_EQ(*read, events);
  EXPECT_FALSE(reader_of("bpftool").read(R"([{"type":9,)").has_value());
}

// The output is genuine: bpftrace 0.17 and perf 6.1 print such lines.
TEST(ReaderTest, BpftracesLinesAreTheWordsOfPayloads) {
  const auto read =
      reader_of("bpftrace")
          .read("Attaching 1 probe...\nseq 2 sum 3c6ef372fe94f82a\nLost 3 events\n\n\n");
  ASSERT_TRUE(read.has_value()) << read.error();
  const std::vector<std::byte> whole = payload_of(1, 24, Echo::Words);
  EXPECT_EQ(*read, (std::vector<Event>{{.payload = whole}, {.kind = Kind::Lost, .lost = 3}}));
  EXPECT_EQ(whole[0], std::byte{0}) << "the number of the printf";
  EXPECT_FALSE(reader_of("bpftrace").read("seq 2 sum 3c6ef372fe94f82a more\n").has_value());
}

TEST(ReaderTest, PerfTracesLinesAreTheTextOfPayloads) {
  // 2 and the first bytes of 0x3c6ef372fe94f82a, in memory order.
  const std::string text =
      std::endian::native == std::endian::little ? "2000000000000000a28f" : "0000000000000020c3e6";
  const auto read = reader_of("perf-trace")
                        .read("     0.000 evt(" + text +
                              ")\nLOST 3 events!\n"
                              "Can't parse sample, err = -14, skipping...\n");
  ASSERT_TRUE(read.has_value()) << read.error();
  const std::vector<Event> events{{.payload = payload_of(1, 20, Echo::Text)},
                                  {.kind = Kind::Lost, .lost = 3},
                                  {.kind = Kind::Bad}};
  EXPECT_EQ(*read, events);
  EXPECT_FALSE(reader_of("perf-trace").read("usage: perf trace\n").has_value());
}

Cell adapter(const std::string& command, double seconds = 60) {
  return run_adapter(command, vector_of(*find_case("one-record")),
                     {.seconds = seconds, .cpu_seconds = 1, .output = 100'000});
}

TEST(AdapterTest, EachWayToEndIsNamed) {
  const std::vector<std::tuple<std::string, CaseOutcome, std::string>> ways{
      {"sh -c 'exit 77'", CaseOutcome::NotRun, "does not support it"},
      {"sh -c 'echo no >&2; exit 3'", CaseOutcome::Crashes, "exit code 3: no"},
      {"sh -c 'kill -SEGV $$'", CaseOutcome::Crashes, "signal 11"},
      {"sh -c 'kill -KILL $$'", CaseOutcome::Crashes, "signal 9"},
      {"sh -c 'while :; do :; done'", CaseOutcome::Hangs, "1 s of CPU time"},
      {"sh -c 'trap : XCPU; while :; do :; done'", CaseOutcome::Hangs, "1 s of CPU time"},
      {"yes sample 00", CaseOutcome::Floods, "100000 bytes of output"},
      {"sh -c 'trap \"\" XFSZ; yes sample 00; exit 0'", CaseOutcome::Floods,
       "100000 bytes of output"},
      {"sh -c 'exec head -c 200000 /dev/zero >" + ::testing::TempDir() + "/too_large'",
       CaseOutcome::Floods, "100000 bytes of output"},
      {"sh -c '[ $(ulimit -Hc) = 0 ] || exit 4'", CaseOutcome::NotRun, "it printed no tail"},
      {"true", CaseOutcome::NotRun, "it printed no tail line, which must be the last"},
      {"echo hello", CaseOutcome::NotRun, "a line that is not in the protocol: 'hello"},
      {"sh -c 'echo zz; echo tail 0'", CaseOutcome::NotRun, "'zz': print other text to stderr"},
      {"sh -c 'echo tail 0; echo error'", CaseOutcome::NotRun,
       "it printed more after its tail line"},
      {"sh -c 'echo zz; exit 3'", CaseOutcome::Crashes, "exit code 3"},
      {"yes zz", CaseOutcome::Floods, "100000 bytes of output"},
      {"sh -c 'echo tail 32'", CaseOutcome::Garbage, "it printed tail 32, but the ring has 0"},
      {"sh -c 'echo tail 0'", CaseOutcome::Loses, "not delivered: sample of 20 bytes"},
  };
  for (const auto& [command, outcome, detail] : ways) {
    const Cell cell = adapter(command);
    EXPECT_STREQ(to_string(cell.outcome), to_string(outcome)) << command;
    EXPECT_THAT(cell.detail, HasSubstr(detail)) << command;
  }
  EXPECT_THROW(adapter("/nonexistent/adapter"), CannotRun);
  const Cell sleeps = adapter("sh -c 'sleep 60'", 0.3);
  EXPECT_EQ(sleeps.outcome, CaseOutcome::Hangs);
  EXPECT_THAT(sleeps.detail, HasSubstr("it did not end within 0.3 s"));
}

// Like a kernel's ring, the file has a fixed length: the adapter's call fails, and this process can
// still read the ring.
TEST(AdapterTest, ARingThatTheAdapterCutsOffStaysWhole) {
  for (const std::string cut :
       {R"(truncate -s 0 "$0")", R"(truncate -s 5000 "$0")", R"((: >"$0"))"}) {
    const Cell cell = adapter("sh -c '" + cut + "; echo tail 0'");
    EXPECT_STREQ(to_string(cell.outcome), "loses") << cut << cell.detail;
    const Cell reported = adapter("sh -c 'if " + cut + "; then echo cut off; fi; echo tail 0'");
    EXPECT_STREQ(to_string(reported.outcome), "loses") << cut << reported.detail;
  }
}

// The adapter reports the error in each drain, and it is run once more than the case has turns.
TEST(AdapterTest, AnErrorInTheDrainAfterTheLastIsASecondOne) {
  const std::string file = ::testing::TempDir() + "/complains.py";
  std::ofstream{file} << R"(
import struct, sys
with open(sys.argv[1], "r+b") as ring:
    ring.seek(1024)
    head, tail = struct.unpack("QQ", ring.read(16))
    if head % 8 != 0: print("error off the grid")
    ring.seek(1032)
    ring.write(struct.pack("Q", head))
print("tail", head)
)";
  const Cell cell =
      run_adapter("/usr/bin/python3 " + file, vector_of(*find_case("head-off-the-grid")));
  EXPECT_STREQ(to_string(cell.outcome), "acceptable") << cell.detail;
  EXPECT_EQ(cell.detail, "a second error for one malformed record");
}

// A program that ignores these signals, as Python does, passes this on to the programs it starts.
TEST(AdapterTest, SignalsThatThisProgramIgnoresEndTheAdapter) {
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  const auto before_pipe = ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(adapter("yes sample 00").outcome, CaseOutcome::Floods);
  EXPECT_THAT(adapter("sh -c 'kill -PIPE $$'").detail, HasSubstr("signal 13"));
  ::signal(SIGXFSZ, before);
  ::signal(SIGPIPE, before_pipe);
}

// Neither a child nor a daemon of a daemon, each in a session of its own.
TEST(AdapterTest, NoProcessOfTheAdapterIsLeftRunning) {
  const std::string file = ::testing::TempDir() + "/left_running";
  const std::string daemons = ::testing::TempDir() + "/daemons.py";
  std::ofstream{daemons} << R"(
import os, sys, time
begun, begin = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        with open(sys.argv[1], "w") as file:
            print(os.getpid(), file=file)
        os.write(begin, b"x")
    time.sleep(600)
os.read(begun, 1)
)";
  const std::string daemon_of_a_daemon = "/usr/bin/python3 " + daemons + " " + file;
  for (const std::string& command :
       {"sh -c 'sleep 600 & echo $! >" + file + "; exit 1'", daemon_of_a_daemon}) {
    if (command == daemon_of_a_daemon && ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
      GTEST_SKIP() << "PR_SET_CHILD_SUBREAPER is refused: qemu-user does not know it";
    }
    std::filesystem::remove(file);
    adapter(command);
    pid_t left = 0;
    ASSERT_TRUE(std::ifstream{file} >> left);
    EXPECT_TRUE(has_ended(left)) << command << left;
  }
}

}  // namespace
}  // namespace perfring::conformance
