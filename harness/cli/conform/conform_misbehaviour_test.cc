// Runs `perfring conform -- PROGRAM` with programs that misbehave, or that cannot be run or
// supervised.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConformMisbehaviourTest : public SupervisedTest {
 protected:
  ProcessResult run_shell(const std::string& line) {
    return run({"conform", "--only", "one-record", "--", "/bin/sh", "-c", line});
  }
  // Runs the program with a seccomp filter that lets `call` fail with EPERM, as in a container.
  ProcessResult run_without(long call, const std::vector<std::string>& arguments) {
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

TEST_F(ConformMisbehaviourTest, ASubjectThatOpensNoRingShowsNothing) {
  const std::vector<std::pair<std::string, std::string>> ways{
      {"exec /nonexistent", "it opened no ring, and ended with exit code 127: "},
      {"true", "it opened no ring"},
      {"echo no such map >&2; exit 3",
       "it opened no ring, and ended with exit code 3: no such map"},
      {"kill -9 $$", "it opened no ring, and signal 9 ended it"},
      {"exec yes", "it opened no ring, and printed more than 16777216 bytes"},
      {"sleep 60", "it opened no ring"},
      {"trap '' INT; sleep 60 & wait; sleep 60", "it opened no ring"},
      // With idle priority, so that it leaves the processor to other tests.
      {"exec chrt --idle 0 sh -c 'while :; do :; done'", "it opened no ring"},
  };
  for (const auto& [line, why] : ways) {
    const ProcessResult ended = run_shell(line);
    EXPECT_EQ(ended.exit_code, 3) << line << ended.out;
    EXPECT_THAT(ended.out, HasSubstr("not run: " + why)) << line;
  }
}

TEST_F(ConformMisbehaviourTest, AProgramThatCannotBeStartedIsOneError) {
  const std::vector<std::pair<std::string, std::string>> programs{
      {"/nonexistent/consumer", "No such file or directory"},
      {"no-such-consumer", "No such file or directory"},
      {"/etc/passwd", "Permission denied"},
      {"/", "Permission denied"},
  };
  for (const auto& [program, why] : programs) {
    const ProcessResult ended = run({"conform", "--", program});
    EXPECT_EQ(ended.exit_code, 2) << program << ended.out;
    EXPECT_THAT(ended.err, HasSubstr("'" + program + "' cannot be started: " + why +
                                     ": give a program, or its path"));
  }
}

TEST_F(ConformMisbehaviourTest, ASystemThatForbidsSupervisionIsOneError) {
  const std::vector<std::pair<long, std::string>> calls{
      {SYS_seccomp, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER): Operation not permitted"},
      {SYS_ptrace, "ptrace(PTRACE_SEIZE): Operation not permitted"},
      {SYS_pidfd_getfd, "pidfd_getfd: Operation not permitted"},
      {SYS_perf_event_open, "perf_event_open: Operation not permitted"},
  };
  for (const auto& [call, why] : calls) {
    const ProcessResult ended =
        run_without(call, {"conform", "--", subject("PERFRING_SUBJECT"), "8"});
    EXPECT_EQ(ended.exit_code, 2) << why << ended.out;
    EXPECT_THAT(ended.err, AllOf(HasSubstr(why), HasSubstr("or give an --adapter")));
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
  }
}

TEST_F(ConformMisbehaviourTest, EachMisbehaviourOfAStaticProgramIsNamed) {
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
      {"times-a-select", "reachable  right\n"},
      {"polls-a-closed-one", "reachable  right\n"},
      {"truncates", "reachable  right\n"},
      {"truncates-by-name", "reachable  right\n"},
      {"opens-anew", "reachable  right\n"},
      {"disabled", "not run: it left its event disabled"},
      {"silent",
       "loses: not delivered: sample of 20 bytes: 01 00 00 00 00 00 00 00 15 7c 4a 7f b9 "
       "79 37 9e... (it printed nothing)"},
      {"ignores", "; it was killed, because SIGINT did not end it"},
      {"ignores-well", "right: it was killed, because SIGINT did not end it\n"},
      {"polls-on", "loses: it kept waiting, and did not read the records announced to it: data_ta"},
      {"invents", "garbage: never written: sample of 1 bytes: 07; data_tail went from 0x0 to 0x20"},
      {"jumps", "crashes: signal 11 at address 0x10, by adapter.c+0x"},
      {"killed", "crashes: signal 9"},
      {"floods", "floods: more than 16777216 bytes of output"},
      {"spins", "hangs: it did not end; data_tail went from 0x0 to 0x0, data_head is 0x20"},
      {"alarms-reads", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"reads", "out of bounds: signal 11 at byte -8 of the ring's 8192, by adapter.c+0x"},
      {"reads-at-first", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"catches", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"maps-twice", "out of bounds: signal 11 at byte -8 of the ring's 8192"},
      {"runs-ahead", "loses: a tail beyond the head: data_tail went from 0x0 to 0x40, data_head"},
      {"sleeps-on",
       "loses: it slept although records were announced to it: data_tail went from 0x0 to"},
      {"floods-on", "floods: more than 16777216 bytes of output"},
      {"fails-at-the-end", "crashes: exit code 5"},
  };
  for (const auto& [how, outcome] : ways) {
    const ProcessResult ended =
        run({"conform", "--only", "one-record", "--", program, how, "{pages}"});
    EXPECT_THAT(ended.out, HasSubstr(outcome)) << how << ended.err;
  }
}

// Each reads or stores the control page in a wrong order, which only a producer that writes, or
// that overwrites what was released, during the drain can show.
TEST_F(ConformMisbehaviourTest, EachWrongAccessOfADrainIsNamed) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  struct Way {
    std::string how, of, outcome, access;
  };
  const std::vector<Way> ways{
      {"reads-head-twice", "during-read", "loses",
       "data_tail was moved to 80, past the record at 32; before that, data_head was read as 0, "
       "32, 80"},
      {"stores-before-the-copy", "three-sizes", "out of bounds",
       "data_tail was moved to 160 while the record at 0 was still being read"},
      {"stores-before-each-copy", "three-sizes", "garbage",
       "data_tail was moved to 16 while the record at 0 was still being read"},
      {"keeps-an-old-head", "one-record", "loses", "data_head is 0x20"},
      {"stores-an-old-tail", "during-read", "garbage", "delivered again"},
      {"counts-a-lost-twice", "lost-one", "garbage", "delivered again: LOST 1"},
      {"stores-into-a-record", "one-record", "garbage",
       "data_tail was moved into a record: data_tail went from 0x0 to 0x18"},
      {"stores-to-data-head", "one-record", "out of bounds",
       "it stored 0x28 to data_head, which was 0x20"},
  };
  for (const auto& [how, of, outcome, access] : ways) {
    const ProcessResult ended = run({"conform", "--only", of, "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 1) << how;
    EXPECT_THAT(ended.out, AllOf(HasSubstr(" " + outcome + ": "), HasSubstr(access))) << how;
  }
}

// The same bugs in the adapter in C.
TEST_F(ConformMisbehaviourTest, EachWrongAccessOfAnAdapterIsNamed) {
  const std::string source = contents(file_of("ADAPTERS", "adapter.c"));
  const std::string store = "  __atomic_store_n(&control->data_tail, end, __ATOMIC_RELEASE);\n";
  struct Way {
    std::string what, by, of, outcome, access;
  };
  const std::vector<Way> ways{
      {store,
       "  const __u64 last = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);\n"
       "  __atomic_store_n(&control->data_tail, last, __ATOMIC_RELEASE);\n"
       "  if (last != end) return printf(\"tail %llu\\n\", last), 0;\n",
       "during-read", "loses", "data_head was read as 32, 80"},
      {"  while (left != 0) {\n", store + "  while (left != 0) {\n", "three-sizes", "garbage",
       "data_tail was moved to 160 while its records were still being read"},
      {"    struct perf_event_header header;\n",
       "    struct perf_event_header header;\n"
       "    __atomic_store_n(&control->data_tail, tail + 8, __ATOMIC_RELEASE);\n",
       "three-sizes", "garbage", "data_tail was moved to 8 while its records"},
      {store, "  control->data_head = head + 8;\n" + store, "one-record", "garbage",
       "it stored 0x28 to data_head, which was 0x20"},
  };
  for (const auto& [what, by, of, outcome, access] : ways) {
    std::string changed = source;
    ASSERT_NE(changed.find(what), std::string::npos) << what;
    changed.replace(changed.find(what), what.size(), by);
    const std::string program = compiled("cc -O1 -o", temporary("changed.c", changed));
    const ProcessResult ended = run({"conform", "--only", of, "--adapter", program});
    EXPECT_EQ(ended.exit_code, 1) << by;
    EXPECT_THAT(ended.out, AllOf(HasSubstr(" " + outcome + ": "), HasSubstr(access))) << by;
  }
}

// A reader that is right is right at each place, and hears that this was looked for.
TEST_F(ConformMisbehaviourTest, WritesDuringADrainAreDelivered) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"well", "threads", "forks", "alarms", "selects"}) {
    const ProcessResult ended =
        run({"conform", "--only", "during-*", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 0) << how << ended.out;
    EXPECT_THAT(ended.out, HasSubstr("8 cases: 8 right")) << how;
    EXPECT_EQ(ended.out.find("a write during a drain"), std::string::npos) << ended.out;
  }
}

// "starts-late" sleeps before it opens a ring, "slow" between two records.
TEST_F(ConformMisbehaviourTest, PlaysOnlyRingsFoundInMap) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"probes", "enters-two", "starts-late", "slow"}) {
    const ProcessResult ended =
        run({"conform", "--only", "three-sizes", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 0) << how << ended.out;
  }
  const std::vector<std::pair<std::string, std::string>> ways{
      {"in-no-map", "its event of CPU 0 is in no map: nothing is written to it"},
      {"enters-an-unmapped-one",
       "its event of CPU 0 is entered in its map, but its ring is not mapped"},
      {"deletes-its-key", "it deleted key 0 of its map before the case was over"},
      {"three-pages",
       "it opened no ring: an mmap of 16384 bytes is refused: it must have a control "},
      {"reads-the-count", "read(2) of an event's descriptor is not emulated"},
  };
  const ProcessResult lost =
      run({"conform", "--only", "drained-twice", "--", program, "wrong-key", "{pages}"});
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_THAT(lost.out, HasSubstr("loses: its event of CPU 0 is at key 1 of its map: nothing is "
                                  "written to it there"));
  for (const auto& [how, why] : ways) {
    const ProcessResult ended =
        run({"conform", "--only", "drained-twice", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 3) << how << ended.out;
    EXPECT_THAT(ended.out, HasSubstr("not run: " + why)) << ended.err;
  }
}

// A reason that does not depend on the case ends the run after three cases. A reason that depends
// on the case is reported for each case.
TEST_F(ConformMisbehaviourTest, GivesUpAfterSameReasonInThreeCases) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"nests-epolls", "in-no-map", "three-pages"}) {
    const Json all = parsed(
        run({"conform", "--json", "--only", "straddle-*", "--", program, how, "{pages}"}).out);
    ASSERT_EQ(all["cases"].size(), 8U);
    const std::string first = all["cases"][0]["detail"];
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(all["cases"][i]["outcome"], "not run") << how;
      EXPECT_EQ(all["cases"][i]["detail"],
                first + (i < 3 ? "" : " (same reason in the first 3 cases; not tried again)"));
    }
  }
  const ProcessResult others = run({"conform", "--only", "w32-*", "misc-kernel-user", "--",
                                    subject("PERFRING_SUBJECT"), "{pages}"});
  EXPECT_THAT(others.out, HasSubstr("6 cases: 1 right, 5 not run"));
}

// The signal arrives while the supervisor writes the answer: the program delays the write until
// then.
TEST_F(ConformMisbehaviourTest, APollThatEndsWhileItIsAnsweredLosesNoWakeup) {
  const auto faults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  if (faults < 0) GTEST_SKIP() << "this user may not handle the faults of system calls";
  ::close(faults);
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const ProcessResult ended =
      run({"conform", "--only", "one-record", "--", program, "polls-a-protected-page", "{pages}"});
  EXPECT_THAT(ended.out, HasSubstr("reachable  right\n")) << ended.err;
}

// The same verdict as for an adapter that reports the error in every turn (AdapterTest).
TEST_F(ConformMisbehaviourTest, ASecondErrorHasTheVerdictOfAnAdapters) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const ProcessResult ended =
      run({"conform", "--only", "head-off-the-grid", "--", program, "complains", "{pages}"});
  EXPECT_THAT(ended.out,
              HasSubstr("acceptable (errors): a second error for one malformed record\n"));
}

// A record that is written while the program does something else wakes its next poll.
TEST_F(ConformMisbehaviourTest, APollThatASignalHasEndedTakesNoWakeup) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const ProcessResult ended =
      run({"conform", "--only", "paused-unread", "--", program, "dozes", "{pages}"});
  EXPECT_THAT(ended.out, HasSubstr("reachable  right\n")) << ended.err;
}

// gdb, if installed, gives the backtrace of the crashed thread, innermost function first.
TEST_F(ConformMisbehaviourTest, ACrashHasABacktrace) {
  if (!is_installed("gdb")) GTEST_SKIP() << "gdb is not installed";
  const std::string program =
      compiled("cc -g -O0 -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string how : {"reads", "crashes", "crashes-in-a-thread"}) {
    const ProcessResult ended =
        run({"conform", "--only", "one-record", "--json", "--", program, how, "{pages}"});
    EXPECT_EQ(ended.exit_code, 1) << ended.err << ended.out;
    const Json row = parsed(ended.out)["cases"][0];
    EXPECT_EQ(row["outcome"], how == "reads" ? "out of bounds" : "crashes") << row;
    const std::string frames = row.value("backtrace", Json::array()).dump();
    EXPECT_THAT(frames, ::testing::ContainsRegex(
                            "misbehave \\(misbehaving.c:[0-9]+\\)\",\"drain \\(misbehaving"))
        << row;
  }
  const ProcessResult text =
      run({"conform", "--only", "one-record", "--", program, "reads", "{pages}"});
  EXPECT_THAT(text.out, HasSubstr("; backtrace: misbehave (misbehaving.c:"));
  EXPECT_THAT(text.out, HasSubstr(" < drain (misbehaving.c:"));
}

// Runs a case only if the program requests the case's wakeups and opens rings on its CPUs.
TEST_F(ConformMisbehaviourTest, RunsOnlyCasesThatProgramIsSetUpFor) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const auto outcomes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"conform", "--only", "wakeup-*", "watermark-1", "cpus-2",
                                       "--",      program,  "well",     "{pages}"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments).out;
  };
  const std::string report = outcomes({"{wakeup_events}"});
  EXPECT_THAT(report, AllOf(HasSubstr("8 cases"), HasSubstr("6 right, 2 not run")));
  EXPECT_THAT(report, HasSubstr("not run: the case needs wakeup_watermark 1\n"));
  EXPECT_THAT(report, HasSubstr("not run: it opened rings on 1 of the case's 2 CPUs\n"));
  EXPECT_THAT(outcomes({}), HasSubstr("not run: the case needs wakeup_events 1000\n"));
}

// No process of the program keeps running.
TEST_F(ConformMisbehaviourTest, ASignalEndsTheProgramUnderWay) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string began = temporary("program_began");
    std::filesystem::remove(began);
    const ProcessResult ended =
        interrupt_when_created({"conform", "--", "/bin/sh", "-c",
                                "trap '' INT HUP; echo $$ >" + began + ".new; mv " + began +
                                    ".new " + began + "; while :; do sleep 1; done"},
                               began, signal);
    EXPECT_EQ(ended.exit_code, 3) << signal << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("Not shown: interrupted before the end"));
    EXPECT_TRUE(has_ended(std::stoi(contents(began))));
  }
}

// A process that the program started in another session ends, too, even if it makes no more system
// calls.
TEST_F(ConformMisbehaviourTest, AProgramEndsWithPerfringEvenIfThatIsKilled) {
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

TEST_F(ConformMisbehaviourTest, AProgramBesideAnAdapterIsRefused) {
  const ProcessResult ended = run({"conform", "--adapter", "true", "--", "true"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("cannot be combined with --adapter or --fault"));
}

TEST_F(ConformMisbehaviourTest, NoProcessOfTheProgramIsLeftRunning) {
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  const std::string file = temporary("left");
  for (const std::string how : {"leaves", "leaves-a-session", "leaves-an-untraced"}) {
    run({"conform", "--only", "one-record", "--", program, how, file});
    pid_t left = 0;
    ASSERT_TRUE(std::ifstream{file} >> left) << how;
    EXPECT_TRUE(has_ended(left)) << how << left;
  }
}

}  // namespace
}  // namespace perfring::cli
