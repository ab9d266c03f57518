// `perfring conform -- PROGRAM`, as a user meets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/testing.h"

namespace perfring::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Programs as they are. A case takes two of the subject's own timeouts.
class ConformProgramTest : public PerfringTest {
 protected:
  void SetUp() override {
    PerfringTest::SetUp();
#ifndef __x86_64__
    GTEST_SKIP() << "the supervisor knows x86-64 only";
#endif
    if (kSanitized) GTEST_SKIP() << "a sanitizer's own calls are not those of a subject";
  }
  static std::string subject(const char* name) {
    return std::filesystem::absolute(of_environment(name)).string();
  }
  Ended run_shell(const std::string& line) {
    return run({"conform", "--only", "one-record", "--", "/bin/sh", "-c", line});
  }
  json outcome_of_perfring(const std::string& program) {
    const Ended ended = run({"conform", "--json", "--", program, "{pages}", "{wakeup_watermark}",
                             "{wakeup_events}", "{sample_type}", "{sample_id_all}"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    return parsed(ended.out);
  }
  // Where a system call fails with EPERM, as a container's profile has it.
  Ended run_without(long call, const std::vector<std::string>& arguments) {
    constexpr const char* kForbid = R"(
import ctypes, os, struct, sys
call, libc = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in [
    (0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0): sys.exit(99)
os.execv(sys.argv[2], sys.argv[2:])
)";
    return run(arguments, {"/usr/bin/python3", "-c", kForbid, std::to_string(call)});
  }
};

// In all cases but those of a 32-bit kernel.
TEST_F(ConformProgramTest, PerfringIsRight) {
  const json outcome = outcome_of_perfring(subject("PERFRING_SUBJECT"));
  EXPECT_GE(outcome["counts"]["right"], 118) << outcome["counts"];
  for (const json& row : outcome["cases"]) {
    const bool narrow = row["id"].get<std::string>().starts_with("w32-");
    EXPECT_EQ(row["outcome"], narrow ? "not run" : "right") << row;
  }
}

// Seen of libbpf 1.1.2 by other means (P14, P20, P22).
TEST_F(ConformProgramTest, LibbpfHasTheOutcomesThatAreKnownOfIt) {
  const Ended ended =
      run({"conform", "--known",
           temporary("known",
                     "oversize-65525 garbage\noversize-65540 garbage\n"
                     "oversize-near-the-end out of bounds\nwhile-registering loses\n"
                     "raw-1mib out of bounds\nsize-0 floods\n"),
           "--only", "three-sizes", "straddle-8", "lost-one", "oversize-65525", "oversize-65540",
           "oversize-near-the-end", "while-registering", "raw-1mib", "size-0", "--",
           subject("LIBBPF_SUBJECT"), "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("3 right"), HasSubstr("2 out of bounds"),
                               HasSubstr("signal 11 at byte 8192 of the ring's 8192")));
}

// A row of RESULTS.md, by its first column.
std::map<std::string, std::vector<std::string>> rows_of_results() {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream file{of_environment("RESULTS")};
  for (std::string line; std::getline(file, line) && !line.starts_with("## On the live");) {
    std::vector<std::string> words;
    std::istringstream cells{line};
    for (std::string cell; line.starts_with("| ") && std::getline(cells, cell, '|');) {
      const std::size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
      words.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
    }
    if (words.size() > 2) rows.try_emplace(words[1], words.begin() + 2, words.end());
  }
  return rows;
}

// The others are the job `ci/conform`'s.
TEST_F(ConformProgramTest, LibbpfHasTheOutcomesOfTheMatrix) {
  auto rows = rows_of_results();
  const auto column =
      static_cast<std::size_t>(std::ranges::find(rows[""], "libbpf") - rows[""].begin());
  ASSERT_LT(column, rows[""].size());
  const std::string version =
      run_child({"/usr/bin/dpkg-query", "-W", "-f=${Version}", "libbpf1"}).out;
  if (version != rows["version"].at(column)) {
    GTEST_SKIP() << "RESULTS.md is of libbpf " << rows["version"][column] << ", here is "
                 << version;
  }
  const Ended ended = run({"conform", "--json", "--", subject("LIBBPF_SUBJECT"), "{pages}"});
  const json outcome = parsed(ended.out);
  ASSERT_GE(outcome["cases"].size(), 120U) << ended.err;
  for (const json& row : outcome["cases"]) {
    std::string cell;
    for (const json& each : row.value("accepted", json::array())) {
      cell += (cell.empty() ? "" : ", ") + each.get<std::string>();
    }
    const std::string said = row["outcome"];
    EXPECT_EQ(rows[row["id"]].at(column), said == "acceptable" ? "(" + cell + ")" : said) << row;
  }
}

// Each record of theirs has more than the case's payload: words, or fields, as RESULTS.md has it.
TEST_F(ConformProgramTest, PerfTraceIsRunWithItsEventsEnteredForIt) {
  if (!there_is("perf")) GTEST_SKIP() << "linux-perf is not installed: ci/setup";
  const Ended ended =
      run({"conform", "--only", "one-record,straddle-24,lost-one,cpus-2,oversize-65540,size-4",
           "--reader", "perf-trace", "--", "/bin/sh", "-c",
           "exec perf trace --no-syscalls -a -m {pages} -e "
           "bpf-output/no-inherit=1,name=evt/ 2>&1"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("6 cases: 5 right, 1 loses"),
                               HasSubstr("size-4          hostile    loses")))
      << ended.err;
}

TEST_F(ConformProgramTest, BpftraceLoadsItsProgramAndReadsTheSimulatedRing) {
  if (!there_is("bpftrace")) GTEST_SKIP() << "bpftrace is not installed: ci/setup --peers";
  if (::geteuid() != 0) GTEST_SKIP() << "bpftrace wants root";
  const Ended ended = run(
      {"conform", "--only", "one-record,straddle-24,lost-one,turns,while-registering", "--reader",
       "bpftrace", "--", "/usr/bin/env", "BPFTRACE_PERF_RB_PAGES={pages}", "bpftrace", "-e",
       R"(BEGIN { if (pid == 0) { printf("seq %llu sum %llx\n", nsecs, nsecs); } })"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("5 cases: 3 right, 1 not run, 1 loses"),
                               HasSubstr("not run: its reader needs 16 bytes")))
      << ended.err;
}

// As in RESULTS.md's row w32-uniform, by 4 GiB that are written and read (P12).
TEST_F(ConformProgramTest, AnI386ProgramReads4GiB) {
  if (of_environment("PERFRING_LONG").empty()) {
    GTEST_SKIP() << "a minute: bazel test //harness/cli:conform_long_test";
  }
  const std::string i386 =
      compiled("i686-linux-gnu-gcc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const Ended ended = run({"conform", "--only", "w32-through-4gib", "--reader", "lines-24", "--",
                           i386, "well-24", "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const Ended wrong = run({"conform", "--only", "w32-through-4gib", "--reader", "lines-24", "--",
                           i386, "compares-24", "{pages}"});
  EXPECT_EQ(wrong.exit_code, 1) << wrong.err << wrong.out;
}

TEST_F(ConformProgramTest, ASubjectThatOpensNoRingShowsNothing) {
  const std::vector<std::pair<std::string, std::string>> ways{
      {"exec /nonexistent", "it opened no ring, and ended with exit code 127: "},
      {"true", "it opened no ring"},
      {"echo no such map >&2; exit 3",
       "it opened no ring, and ended with exit code 3: no such map"},
      {"kill -9 $$", "it opened no ring, and signal 9 ended it"},
      {"exec yes", "it opened no ring, and printed more than 16777216 bytes"},
      {"sleep 60", "it opened no ring"},
      {"trap '' INT; sleep 60 & wait; sleep 60", "it opened no ring"},
      {"while :; do :; done", "it opened no ring"},
  };
  for (const auto& [line, why] : ways) {
    const Ended ended = run_shell(line);
    EXPECT_EQ(ended.exit_code, 3) << line << ended.out;
    EXPECT_THAT(ended.out, HasSubstr("not run: " + why)) << line;
  }
}

TEST_F(ConformProgramTest, AProgramThatCannotBeStartedIsOneError) {
  const std::vector<std::pair<std::string, std::string>> programs{
      {"/nonexistent/consumer", "No such file or directory"},
      {"no-such-consumer", "No such file or directory"},
      {"/etc/passwd", "Permission denied"},
      {"/", "Permission denied"},
  };
  for (const auto& [program, why] : programs) {
    const Ended ended = run({"conform", "--", program});
    EXPECT_EQ(ended.exit_code, 2) << program << ended.out;
    EXPECT_THAT(ended.err, HasSubstr("'" + program + "' cannot be started: " + why +
                                     ": give a program, or its path"));
  }
}

TEST_F(ConformProgramTest, ASystemThatForbidsSupervisionIsOneError) {
  const std::vector<std::pair<long, std::string>> calls{
      {SYS_seccomp, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER): Operation not permitted"},
      {SYS_ptrace, "ptrace(PTRACE_SEIZE): Operation not permitted"},
      {SYS_pidfd_getfd, "pidfd_getfd: Operation not permitted"},
  };
  for (const auto& [call, why] : calls) {
    const Ended ended = run_without(call, {"conform", "--", subject("PERFRING_SUBJECT"), "8"});
    EXPECT_EQ(ended.exit_code, 2) << why << ended.out;
    EXPECT_THAT(ended.err, AllOf(HasSubstr(why), HasSubstr("or give an --adapter")));
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
  }
}

TEST_F(ConformProgramTest, EachMisbehaviourOfAStaticProgramIsNamed) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const std::vector<std::pair<std::string, std::string>> ways{
      {"well", "reachable  right\n"},
      {"hundred", "reachable  right\n"},
      {"forks", "reachable  right\n"},
      {"execs", "reachable  right\n"},
      {"alarms", "reachable  right\n"},
      {"restarts", "reachable  right\n"},
      {"threads", "reachable  right\n"},
      {"selects", "reachable  right\n"},
      {"restarts-selects", "reachable  right\n"},
      {"masks", "reachable  right\n"},
      {"masks-in-pselect", "reachable  right\n"},
      {"has-a-pipe", "reachable  right\n"},
      {"disabled", "not run: it left its event disabled"},
      {"silent",
       "loses: not delivered: sample of 20 bytes: 01 00 00 00 00 00 00 00 15 7c 4a 7f b9 "
       "79 37 9e... (it printed nothing)"},
      {"ignores", "; it was killed, because SIGINT did not end it"},
      {"ignores-well", "right: it was killed, because SIGINT did not end it\n"},
      {"polls-on", "loses: it went on waiting, and did not read what was announced to it: data_ta"},
      {"invents", "garbage: nobody wrote: sample of 1 bytes: 07; data_tail went from 0x0 to 0x20"},
      {"jumps", "crashes: signal 11 at address 0x10, by adapter.c+0x"},
      {"killed", "crashes: signal 9"},
      {"floods", "floods: more than 16777216 bytes of output"},
      {"spins", "hangs: no end; data_tail went from 0x0 to 0x0, data_head is 0x20"},
      {"alarms-reads", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"reads", "out of bounds: signal 11 at byte -8 of the ring's 8192, by adapter.c+0x"},
      {"reads-at-first", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"catches", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"maps-twice", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"runs-ahead", "loses: a tail beyond the head: data_tail went from 0x0 to 0x40, data_head"},
      {"sleeps-on", "loses: it slept on what had been announced to it: data_tail went from 0x0 to"},
      {"floods-on", "floods: more than 16777216 bytes of output"},
      {"fails-at-the-end", "crashes: exit code 5"},
  };
  for (const auto& [how, outcome] : ways) {
    const Ended ended = run({"conform", "--only", "one-record", "--", program, how, "{pages}"});
    EXPECT_THAT(ended.out, HasSubstr(outcome)) << how << ended.err;
  }
}

// One that starts late sleeps before it opens a ring; a slow one, between two records.
TEST_F(ConformProgramTest, TheRingsPlayedAreThoseInTheMapAndTheProgramMayTakeItsTime) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"probes", "enters-two", "starts-late", "slow"}) {
    const Ended ended = run({"conform", "--only", "three-sizes", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 0) << how << ended.out;
  }
  const std::vector<std::pair<std::string, std::string>> ways{
      {"in-no-map", "its event of CPU 0 is in no map: nothing is written to it"},
      {"wrong-key", "its event of CPU 0 is at key 1 of its map: nothing is written to it there"},
      {"deletes-its-key", "it deleted key 0 of its map before the case was over"},
      {"three-pages",
       "it opened no ring: an mmap of 16384 bytes is refused: a control page and a "},
      {"reads-the-count", "read(2) of an event's descriptor is not emulated"},
  };
  for (const auto& [how, why] : ways) {
    const Ended ended = run({"conform", "--only", "drained-twice", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 3) << how << ended.out;
    EXPECT_THAT(ended.out, HasSubstr("not run: " + why)) << ended.err;
  }
}

// A reason that has nothing to do with the case is met three times, and ends the run; one that the
// case itself brings in is met in each case.
TEST_F(ConformProgramTest, AProgramThatNoCaseCanBeRunOfIsNotTriedOnceMore) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"nests-epolls", "in-no-map", "three-pages"}) {
    const json all = parsed(
        run({"conform", "--json", "--only", "straddle-*", "--", program, how, "{pages}"}).out);
    ASSERT_EQ(all["cases"].size(), 8U);
    const std::string first = all["cases"][0]["detail"];
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(all["cases"][i]["outcome"], "not run") << how;
      EXPECT_EQ(all["cases"][i]["detail"],
                first + (i < 3 ? "" : " (so it was in 3 cases: not tried)"));
    }
  }
  const Ended others = run({"conform", "--only", "w32-*", "misc-kernel-user", "--",
                            subject("PERFRING_SUBJECT"), "{pages}"});
  EXPECT_THAT(others.out, HasSubstr("6 cases: 1 right, 5 not run"));
}

// A record written while the program does something else wakes its next poll.
TEST_F(ConformProgramTest, APollThatASignalHasEndedTakesNoWakeup) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const Ended ended =
      run({"conform", "--only", "paused-unread", "--", program, "dozes", "{pages}"});
  EXPECT_THAT(ended.out, HasSubstr("reachable  right\n")) << ended.err;
}

// By gdb, where that is there: of a thread, and of the last function called first.
TEST_F(ConformProgramTest, ACrashHasABacktrace) {
  if (!there_is("gdb")) GTEST_SKIP() << "gdb is not installed";
  const std::string program =
      compiled("cc -g -O0 -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"reads", "crashes", "crashes-in-a-thread"}) {
    const Ended ended =
        run({"conform", "--only", "one-record", "--json", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 1) << ended.err << ended.out;
    const json row = parsed(ended.out)["cases"][0];
    EXPECT_EQ(row["outcome"], how == "reads" ? "out of bounds" : "crashes") << row;
    const std::string frames = row.value("backtrace", json::array()).dump();
    EXPECT_THAT(frames, ::testing::ContainsRegex(
                            "misbehave \\(misbehaving.c:[0-9]+\\)\",\"drain \\(misbehaving"))
        << row;
  }
  const Ended text = run({"conform", "--only", "one-record", "--", program, "reads", "{pages}"});
  EXPECT_THAT(text.out, HasSubstr("; backtrace: misbehave (misbehaving.c:"));
  EXPECT_THAT(text.out, HasSubstr(" < drain (misbehaving.c:"));
}

// What a program does not ask for, or does not open, is no case that it can be held to.
TEST_F(ConformProgramTest, WakeupsAndCpusAreThoseThatTheProgramAsksFor) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const auto outcomes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"conform", "--only", "wakeup-*", "watermark-1", "cpus-2",
                                       "--",      program,  "well",     "{pages}"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments).out;
  };
  const std::string asked = outcomes({"{wakeup_events}"});
  EXPECT_THAT(asked, AllOf(HasSubstr("8 cases"), HasSubstr("6 right, 2 not run")));
  EXPECT_THAT(asked, HasSubstr("not run: the case is of wakeup_watermark 1\n"));
  EXPECT_THAT(asked, HasSubstr("not run: it opened rings on 1 of the case's 2 CPUs\n"));
  EXPECT_THAT(outcomes({}), HasSubstr("not run: the case is of wakeup_events 1000\n"));
}

TEST_F(ConformProgramTest, PerfringIsRightIn32BitsToo) {
  if (!there_is("i686-linux-gnu-g++")) GTEST_SKIP() << "g++-i686-linux-gnu: ci/setup --cross";
  const std::string program = compiled(
      "i686-linux-gnu-g++ -std=c++23 -O1 -static -Ilib "
      "$(ls lib/perfring/*.cc lib/perfring/os/*.cc | grep -v _test) -o",
      file_of("ADAPTERS", "perfring.cc"));
  // It ends if its number of pages is no power of two.
  if (run_child({"/bin/sh", "-c", program + " 3"}).exit_code != 1)
    GTEST_SKIP() << "this kernel runs no i386 programs";
  const json outcome = outcome_of_perfring(program);
  EXPECT_GE(outcome["counts"]["right"], 123);
  EXPECT_EQ(outcome["counts"].size(), 1U) << outcome["counts"];
}

// A 32-bit kernel is simulated for the cases that ask for one.
TEST_F(ConformProgramTest, AnI386ProgramIsRightOn32BitKernelsToo) {
  if (!there_is("i686-linux-gnu-gcc")) GTEST_SKIP() << "gcc-i686-linux-gnu: ci/setup";
  const std::string i386 =
      compiled("i686-linux-gnu-gcc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  if (run_child({i386}).exit_code != 2) GTEST_SKIP() << "this kernel runs no i386 programs";
  const Ended ended = run({"conform", "--json", "--only", "w32-*", "straddle-*", "three-sizes",
                           "lost-one", "--", i386, "well", "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_EQ(parsed(ended.out)["counts"], json({{"right", 15}})) << ended.out;
  for (const std::string how : {"selects", "masks", "masks-in-pselect"}) {
    const Ended waits = run({"conform", "--only", "drained-twice", "--", i386, how, "{pages}"});
    EXPECT_EQ(waits.exit_code, 0) << how << waits.out;
  }
}

// The set-uid bit gives a traced program no privilege, but the program runs.
TEST_F(ConformProgramTest, ASetUidSubjectRuns) {
  const std::string copy = temporary("set_uid_subject");
  std::filesystem::copy_file(subject("PERFRING_SUBJECT"), copy);
  std::filesystem::permissions(copy, std::filesystem::perms{04755});
  const Ended ended = run({"conform", "--only", "one-record", "--", copy, "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  const Ended failed = run({"conform", "--only", "one-record", "--", copy, "3"});
  EXPECT_THAT(failed.out,
              HasSubstr("; a program that is traced has no privilege of its set-uid bit"));
}

TEST_F(ConformProgramTest, AnInterruptEndsTheProgramUnderWay) {
  const std::string began = temporary("program_began");
  const Ended ended =
      interrupted_when({"conform", "--", "/bin/sh", "-c",
                        "trap '' INT; touch " + began + "; while :; do sleep 1; done"},
                       began);
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Not shown: interrupted before the end"));
}

// What it has started in another session, too, which makes no system call any more.
TEST_F(ConformProgramTest, AProgramEndsWithPerfringEvenIfThatIsKilled) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const std::string file = temporary("left");
  std::filesystem::remove(file);
  ChildProcess child{command({"conform", "--", "/bin/sh", "-c",
                              program + " leaves-a-session " + file + "; exec sleep 600"})};
  pid_t left = 0;
  child.wait([&] { return static_cast<bool>(std::ifstream{file} >> left); });
  EXPECT_NE(left, 0);
  EXPECT_TRUE(has_ended(left)) << left;
}

TEST_F(ConformProgramTest, AProgramBesideAnAdapterIsRefused) {
  const Ended ended = run({"conform", "--adapter", "true", "--", "true"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("is not run with --adapter or --fault"));
}

TEST_F(ConformProgramTest, NoProcessOfTheProgramIsLeftRunning) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const std::string file = temporary("left");
  for (const std::string how : {"leaves", "leaves-a-session"}) {
    run({"conform", "--only", "one-record", "--", program, how, file});
    pid_t left = 0;
    ASSERT_TRUE(std::ifstream{file} >> left) << how;
    EXPECT_TRUE(has_ended(left)) << how << left;
  }
}

}  // namespace
}  // namespace perfring::cli
