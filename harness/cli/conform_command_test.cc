// `perfring conform` and `perfring inspect`, as a user meets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/cli/testing.h"

namespace perfring::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string of_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class ConformCommandTest : public PerfringTest {
 protected:
  // An adapter is right in every case.
  void expect_right(const std::string& adapter) {
    const Ended ended = run({"conform", "--json", "--adapter", adapter});
    EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    const json outcome = json::parse(ended.out);
    EXPECT_GE(outcome["counts"]["right"], 90) << outcome["counts"];
    EXPECT_EQ(outcome["counts"].size(), 1U) << outcome["counts"];
  }
  // The program that a compiler, if there is one, makes of an adapter's source.
  static std::string compiled(const std::string& compiler, const std::string& source) {
    const std::string to = temporary("adapter" + source.substr(source.rfind('.')));
    const std::string line = compiler + " " + to + " " + source;
    const Ended ended = run_child({"/bin/sh", "-c", line});
    EXPECT_EQ(ended.exit_code, 0) << line << "\n" << ended.err;
    return to;
  }
  // Runs it until the file is there, which the consumer makes, then sends SIGINT.
  Ended interrupted_when(const std::vector<std::string>& arguments, const std::string& file) {
    ChildProcess child{command(arguments)};
    bool sent = false;
    return child.wait([&] {
      if (!sent && std::filesystem::exists(file)) sent = ::kill(child.id(), SIGINT) == 0;
      return false;
    });
  }
  static bool there_is(const std::string& program) {
    return run_child({"/bin/sh", "-c", "command -v " + program}).exit_code == 0;
  }
  static std::string source(const std::string& suffix) {
    std::stringstream files{of_environment("ADAPTERS")};
    for (std::string file; files >> file;) {
      if (file.ends_with(suffix)) return file;
    }
    return {};
  }
};

TEST_F(ConformCommandTest, PerfringIsRightAndTheSuiteIsNamed) {
  const Ended ended = run({"conform", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const json outcome = json::parse(ended.out);
  EXPECT_EQ(outcome["verdict"], "holds");
  EXPECT_EQ(outcome["suite"], 1);
  EXPECT_GE(outcome["cases"].size(), 90U);
}

TEST_F(ConformCommandTest, TheAdapterInCIsRight) {
  expect_right(std::filesystem::absolute(of_environment("ADAPTER_C")).string());
}

TEST_F(ConformCommandTest, TheAdapterInPythonIsRight) {
  expect_right("/usr/bin/python3 " + std::filesystem::absolute(source(".py")).string());
}

TEST_F(ConformCommandTest, TheAdapterInGoIsRight) {
  if (!there_is("go")) GTEST_SKIP() << "golang-go is not installed: ci/setup --peers";
  const std::string cache = temporary("go_cache");
  expect_right(compiled("GOCACHE=" + cache + " GO111MODULE=off go build -o", source(".go")));
}

TEST_F(ConformCommandTest, TheAdapterInRustIsRight) {
  std::string rustc = "rustc";
  const passwd* const user = ::getpwuid(::getuid());  // a test has no HOME
  const std::string own = std::string{user == nullptr ? "" : user->pw_dir} + "/.cargo/bin/rustc";
  if (!there_is(rustc)) rustc = own;
  if (!there_is(rustc)) GTEST_SKIP() << "rustc is not installed";
  expect_right(compiled(rustc + " --edition 2021 -O -o", source(".rs")));
}

TEST_F(ConformCommandTest, AConsumerThatIsWrongIsNamedCaseByCase) {
  const Ended ended =
      run({"conform", "--fault", "forgets_lost", "--only", "lost-one", "one-record"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("lost-one    reachable  loses: not delivered: LOST 1"),
                               HasSubstr("one-record  reachable  right\n"),
                               HasSubstr("2 cases: 1 right, 1 loses")));
}

TEST_F(ConformCommandTest, KnownFailuresHideNoNewOnes) {
  const std::vector<std::string> lost{"conform", "--fault", "forgets_lost", "--only", "lost-one"};
  const auto with = [&](const std::string& known) {
    std::vector<std::string> arguments = lost;
    arguments.insert(arguments.end(), {"--known", temporary("known", known)});
    return run(arguments);
  };
  EXPECT_EQ(with("lost-one loses  # to be mended\n").exit_code, 0);
  EXPECT_EQ(with("lost-one hangs\n").exit_code, 1) << "it fails in another way";
  EXPECT_EQ(with("lost-many loses\n").exit_code, 1);
  const Ended mended =
      run({"conform", "--only", "lost-one", "--known", temporary("known", "lost-one loses\n")});
  EXPECT_EQ(mended.exit_code, 1) << "the file is to be kept true";
  EXPECT_THAT(mended.out, HasSubstr("right, known to be loses"));
  const Ended refused = with("lost-one right\n");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("line 1: 'lost-one right' is not accepted"));
}

TEST_F(ConformCommandTest, CasesAreChosenByIdAndKind) {
  const Ended list = run({"conform", "--list", "--only", "w32-*", "type-77"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("w32-lost"), HasSubstr("type-77"), Not(HasSubstr("w64"))));
  const Ended reachable = run({"conform", "--list", "--reachable"});
  EXPECT_THAT(reachable.out, AllOf(HasSubstr("one-record"), Not(HasSubstr("hostile"))));
  const Ended none = run({"conform", "--reachable", "--only", "type-77"});
  EXPECT_EQ(none.exit_code, 3) << "no case was run: that is no pass";
  const Ended wrong = run({"conform", "--only", "lost-on"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--only: 'lost-on'"), HasSubstr("lost-one")));
}

TEST_F(ConformCommandTest, AnAdapterThatCannotBeStartedIsOneError) {
  for (const std::string adapter : {"/nonexistent", "no-such-adapter -v", "/etc/passwd"}) {
    const Ended ended = run({"conform", "--adapter", adapter});
    EXPECT_EQ(ended.exit_code, 2) << adapter;
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, AllOf(HasSubstr("--adapter: '" + adapter + "' cannot be started: "),
                                 AnyOf(HasSubstr("not found"), HasSubstr("ermission denied")),
                                 HasSubstr("give a command that the shell finds")));
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
  }
}

TEST_F(ConformCommandTest, AnInterruptEndsTheAdapterUnderWay) {
  const std::string began = temporary("adapter_began");
  const std::string ended_by_itself = temporary("adapter_ended");
  const Ended ended =
      interrupted_when({"conform", "--adapter",
                        "sh -c 'touch " + began + "; sleep 8; touch " + ended_by_itself + "'"},
                       began);
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(ended_by_itself));
  EXPECT_THAT(ended.out, HasSubstr("0 cases"));
}

TEST_F(ConformCommandTest, TheOutcomeIsJUnitAndMarkdownToo) {
  const std::string junit = temporary("junit.xml");
  const Ended ended = run({"conform", "--fault", "believes", "--only", "raw-1mib", "one-record",
                           "sample-time", "--markdown", "--junit", junit});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("| raw-1mib | hostile | out of bounds: "));
  EXPECT_THAT(contents(junit),
              AllOf(HasSubstr("tests=\"3\" failures=\"1\" skipped=\"1\""),
                    HasSubstr("name=\"raw-1mib\""), HasSubstr("<failure message=\"out of bounds")));
}

// Programs as they are. A case takes two of the subject's own timeouts.
class ConformProgramTest : public ConformCommandTest {
 protected:
  void SetUp() override {
    ConformCommandTest::SetUp();
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

TEST_F(ConformProgramTest, PerfringIsRight) {
  const Ended ended = run({"conform", "--json", "--", subject("PERFRING_SUBJECT"), "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const json counts = json::parse(ended.out)["counts"];
  EXPECT_GE(counts["right"], 85) << counts;
  EXPECT_EQ(counts["right"].get<int>() + counts["not run"].get<int>(), 94) << counts;
}

// What was seen of libbpf 1.1.2 by other means (P14, P20, P22).
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

TEST_F(ConformProgramTest, ASubjectThatOpensNoRingShowsNothing) {
  const std::vector<std::pair<std::string, std::string>> ways{
      {"exec /nonexistent", "it opened no ring: "},
      {"true", "it opened no ring"},
      {"echo no such map >&2; exit 3", "it opened no ring: no such map"},
      {"kill -9 $$", "it opened no ring, and signal 9 ended it"},
      {"exec yes", "it opened no ring, and signal 25 ended it"},
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
  const std::string program = compiled("cc -static -o", source("misbehaving.c"));
  const std::vector<std::pair<std::string, std::string>> ways{
      {"well", "reachable  right\n"},
      {"hundred", "reachable  right\n"},
      {"forks", "reachable  right\n"},
      {"execs", "reachable  right\n"},
      {"threads", "reachable  right\n"},
      {"silent",
       "loses: not delivered: sample of 20 bytes: 01 00 00 00 00 00 00 00 15 7c 4a 7f b9 "
       "79 37 9e... (it printed nothing)"},
      {"ignores", "; it was killed, because SIGINT did not end it"},
      {"killed", "crashes: signal 9"},
      {"floods", "floods: more than 67108864 bytes of output"},
      {"spins", "hangs: no end; data_tail 0x0, data_head 0x20"},
      {"reads", "out of bounds: signal 11 at byte -8 of the ring's 8192, by adapter.c+0x"},
  };
  for (const auto& [how, outcome] : ways) {
    const Ended ended = run({"conform", "--only", "one-record", "--", program, how, "{pages}"});
    EXPECT_THAT(ended.out, HasSubstr(outcome)) << how << ended.err;
  }
}

// A 32-bit kernel is simulated for the cases that ask for one.
TEST_F(ConformProgramTest, AnI386ProgramIsRightOn32BitKernelsToo) {
  if (!there_is("i686-linux-gnu-gcc")) GTEST_SKIP() << "gcc-i686-linux-gnu: ci/setup";
  const std::string i386 = compiled("i686-linux-gnu-gcc -static -o", source("misbehaving.c"));
  if (run_child({i386}).exit_code != 2) GTEST_SKIP() << "this kernel runs no i386 programs";
  const Ended ended = run({"conform", "--json", "--only", "w32-*", "straddle-*", "three-sizes",
                           "lost-one", "--", i386, "well", "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_EQ(json::parse(ended.out)["counts"], json({{"right", 15}})) << ended.out;
}

// The set-uid bit gives a traced program no privilege, but the program runs.
TEST_F(ConformProgramTest, ASetUidSubjectRuns) {
  const std::string copy = temporary("set_uid_subject");
  std::filesystem::copy_file(subject("PERFRING_SUBJECT"), copy);
  std::filesystem::permissions(copy, std::filesystem::perms{04755});
  const Ended ended = run({"conform", "--only", "one-record", "--", copy, "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
}

TEST_F(ConformProgramTest, AnInterruptEndsTheProgramUnderWay) {
  const std::string began = temporary("program_began");
  const Ended ended =
      interrupted_when({"conform", "--", "/bin/sh", "-c",
                        "trap '' INT; touch " + began + "; while :; do sleep 1; done"},
                       began);
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("0 cases"));
}

TEST_F(ConformProgramTest, AProgramIsRunAlone) {
  const Ended ended = run({"conform", "--adapter", "true", "--", "true"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("is not run with --adapter or --fault"));
}

TEST_F(ConformProgramTest, NothingIsLeftRunning) {
  const std::string file = temporary("left");
  run_shell("(sleep 1; echo still >" + file + ") & exit 1");
  run_shell("setsid sh -c 'sleep 1; echo still >" + file + "' & exit 1");
  ::sleep(2);
  EXPECT_EQ(contents(file), "");
}

class InspectCommandTest : public PerfringTest {
 protected:
  static std::string image(std::uint64_t head, const std::string& data) {
    std::string file(8192, '\0');
    file.replace(1024, 8, reinterpret_cast<const char*>(&head), 8);
    return file.replace(4096, data.size(), data);
  }
};

TEST_F(InspectCommandTest, ACaseOfTheVectorsIsExplained) {
  const std::string vectors = of_environment("VECTORS");
  const Ended ended = run({"inspect", vectors, "--case", "size-0"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("data_tail 0x0, data_head 0x60: 96 bytes unread"),
                               HasSubstr("0x0 (at 0) 32 bytes: SAMPLE"),
                               HasSubstr("header.size 0: no multiple of 8"),
                               HasSubstr("data_tail goes to 0x60")));
  const Ended second = run({"inspect", vectors, "--case", "turns", "--turn", "2", "--json"});
  const json outcome = json::parse(second.out);
  EXPECT_EQ(outcome["data_tail"], 32);
  EXPECT_EQ(outcome["records"].size(), 2U);
  EXPECT_EQ(outcome["records"][0]["delivers"], "sample");
}

TEST_F(InspectCommandTest, ARawImageAndAFuzzersInputAreExplained) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the bytes are little-endian";
  const std::string lost{"\2\0\0\0\0\0\x18\0\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 24};
  const Ended raw = run({"inspect", temporary("image", image(24, lost))});
  EXPECT_EQ(raw.exit_code, 0) << raw.err;
  EXPECT_THAT(raw.out, HasSubstr("LOST misc 0x0 size 24: id 1, lost 7"));
  const std::string positions{"\0\0\0\0\0\0\0\0\0\x18\0\0\0\0\0\0\0", 17};
  const Ended fuzz = run({"inspect", "--fuzz", temporary("fuzz", positions + lost)});
  EXPECT_EQ(fuzz.exit_code, 0) << fuzz.err;
  EXPECT_THAT(fuzz.out, HasSubstr("LOST misc 0x0 size 24: id 1, lost 7"));
}

TEST_F(InspectCommandTest, ARingIsDrawn) {
  const Ended ended =
      run({"inspect", of_environment("VECTORS"), "--case", "straddle-8", "--svg", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("<svg "), HasSubstr("data_tail 0xff8"),
                               HasSubstr("0xff8: 64 bytes, sample"), HasSubstr("</svg>")));
}

TEST_F(InspectCommandTest, AFileThatHoldsNoRingIsRefused) {
  const std::string vectors = of_environment("VECTORS");
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"/nonexistent"}, "'/nonexistent' cannot be read"},
      {{temporary("short", "abc")}, "it is no ring image"},
      {{vectors, "--case", "nothing"}, "it has no case 'nothing'"},
      {{vectors, "--case", "turns", "--turn", "3"}, "the case has turns 1 to 2"},
      {{temporary("text", "{}"), "--case", "turns"}, "it is no index of vectors"},
      {{vectors, "--turn", "2"}, "--turn requires --case"},
  };
  for (const auto& [arguments, why] : refused) {
    std::vector<std::string> all{"inspect"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ended ended = run(all);
    EXPECT_EQ(ended.exit_code, 2) << why;
    EXPECT_THAT(ended.err, HasSubstr(why));
  }
}

}  // namespace
}  // namespace perfring::cli
