#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/process.h"
#include "perfring/version.h"

namespace perfring {
namespace {

using ::testing::HasSubstr;

TEST(CountedTest, OnlyOneIsSingular) {
  EXPECT_EQ(counted(0, "record"), "0 records");
  EXPECT_EQ(counted(1, "record"), "1 record");
  EXPECT_EQ(counted(2, "record"), "2 records");
  EXPECT_EQ(counted(4'210'331, "record"), "4,210,331 records");
}

TEST(GroupedTest, EveryThreeDigitsHaveAComma) {
  EXPECT_EQ(grouped(std::uint64_t{999}), "999");
  EXPECT_EQ(grouped(std::uint64_t{1000}), "1,000");
  EXPECT_EQ(grouped(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(GroupedTest, AFractionIsRounded) {
  EXPECT_EQ(grouped(1234.5), "1,235");
}

TEST(ConcludeTest, AViolationOutweighsWhatIsNotShown) {
  const Conclusion conclusion = conclude(true, true, "nothing was checked");
  EXPECT_EQ(conclusion.verdict, Verdict::Violated);
  EXPECT_EQ(conclusion.not_shown, "");
  EXPECT_EQ(exit_code(conclusion.verdict), 1);
  EXPECT_EQ(sentence(conclusion, "All hold"), "Invariants are violated (interrupted)");
}

TEST(ConcludeTest, ARunThatWasCutShortShowsNothing) {
  const Conclusion conclusion = conclude(false, true);
  EXPECT_EQ(conclusion.verdict, Verdict::NotShown);
  EXPECT_EQ(exit_code(conclusion.verdict), 3);
  EXPECT_EQ(sentence(conclusion, "All hold"),
            "Not shown: interrupted before the end; nothing was violated");
}

TEST(ConcludeTest, ARunThatLookedAtNothingShowsNothing) {
  const Conclusion conclusion = conclude(false, false, "no record was delivered");
  EXPECT_EQ(conclusion.verdict, Verdict::NotShown);
  EXPECT_FALSE(conclusion.interrupted);
  EXPECT_EQ(conclusion.not_shown, "no record was delivered");
}

TEST(ConcludeTest, ACompleteRunWithoutAViolationHolds) {
  const Conclusion conclusion = conclude(false, false);
  EXPECT_EQ(exit_code(conclusion.verdict), 0);
  EXPECT_EQ(sentence(conclusion, "All hold"), "All hold");
}

TEST(VerdictJsonTest, BeginsWithTheSameFieldsEverywhere) {
  EXPECT_EQ(to_json(conclude(false, true)).dump(),
            R"({"verdict":"not shown","holds":false,"interrupted":true,)"
            R"("not_shown":"interrupted before the end"})");
  EXPECT_EQ(to_json(conclude(false, false))["holds"], true);
}

TEST(VerdictJsonTest, OtherCharactersAreEscapedToAscii) {
  Json json;
  json["name"] = "\x7f\xc2\x85";
  EXPECT_EQ(dump(json), "{\n  \"name\": \"\\u007f\\u0085\"\n}\n");
}

TEST(VerdictJsonTest, TextThatIsNoUtf8IsReplaced) {
  Json json;
  json["name"] = "x\xff";
  EXPECT_EQ(dump(json), "{\n  \"name\": \"x\\ufffd\"\n}\n");
}

std::string file_of(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/input";
  std::ofstream{path, std::ios::binary} << text;
  return path;
}

TEST(ReadInputTest, ReadsUpToTheLimit) {
  EXPECT_EQ(read_input("--file", file_of("two\nlines")).value(), "two\nlines");
  EXPECT_EQ(read_input("--file", file_of(std::string(kMiB, 'x')))->size(), kMiB);
}

TEST(ReadInputTest, RefusalSaysWhatIsWrongWithFile) {
  const std::string large = file_of(std::string(kMiB + 1, 'x'));
  EXPECT_EQ(read_input("--file", large).error(),
            "--file: '" + large + "' is larger than 1 MiB: give a smaller file");
  EXPECT_EQ(read_input("--file", "/nowhere").error(),
            "--file: '/nowhere' cannot be read: No such file or directory");
  EXPECT_EQ(read_input("--file", "/").error(), "--file: '/' cannot be read: Is a directory");
  EXPECT_EQ(read_input("--file", "/dev/null").error(), "--file: '/dev/null' is empty");
  EXPECT_THAT(read_input("--file", "/dev/zero").error(), HasSubstr("is larger than 1 MiB"));
  EXPECT_THAT(read_input("--file", file_of(std::string{"ab\0", 3})).error(),
              HasSubstr("is not text: byte 2 is 0"));
}

TEST(ReadInputTest, BinaryContentMayHoldAnyByte) {
  const std::string bytes{"ab\0", 3};
  EXPECT_EQ(read_input("--file", file_of(bytes), kMiB, Content::Binary).value(), bytes);
  EXPECT_EQ(read_input("--file", "/dev/null", kMiB, Content::Binary).value(), "");
}

TEST(ParseNumberTest, AllOfTheTextIsTheNumberOrItIsRefused) {
  EXPECT_EQ(parse_number("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(parse_number<std::int32_t>("-7"), -7);
  EXPECT_EQ(parse_number<std::uint8_t>("fF", 16), 0xff);
  EXPECT_EQ(parse_number<double>("0.5"), 0.5);
  for (const char* const text :
       {"", "-1", "+1", " 1", "1 ", "0x10", "18446744073709551616", "1e3"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<std::uint8_t>("100", 16), std::nullopt);
}

TEST(ParseHexTest, EachByteHasTwoDigits) {
  const std::vector<std::byte> bytes{std::byte{0x0a}, std::byte{0xff}};
  EXPECT_EQ(parse_hex("0aFF"), bytes);
  EXPECT_EQ(parse_hex(""), std::vector<std::byte>{});
  for (const char* const text : {"0", "0aF", "0x", "-1", " 1", "gg"}) {
    EXPECT_EQ(parse_hex(text), std::nullopt) << text;
  }
}

TEST(FirstLineTest, ALongOrSecondLineIsCutOff) {
  EXPECT_EQ(first_line("why\nand more\n"), "why");
  EXPECT_EQ(first_line("a\tb"), "a\\x09b");
  EXPECT_EQ(first_line(std::string(500, 'x')), std::string(200, 'x'));
  EXPECT_EQ(first_line(""), "");
}

TEST(PrintableTest, PrintableTextIsUnchanged) {
  for (const std::string text : {"plain", "two\nlines", "Grüße, 世界 🙂", ""}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(PrintableTest, BytesThatATerminalActsOnAreEscaped) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"\x1b]0;title\a", "\\x1b]0;title\\x07"},
      {"a\rb\tc\x7f", "a\\x0db\\x09c\\x7f"},
      {std::string{"a\0b", 3}, "a\\x00b"},
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},                             // U+009B, which also begins a sequence
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"},           // U+202E, right to left from here on
      {"\xff\xc3", "\\xff\\xc3"},                    // not UTF-8, and half of a character
      {"\xc0\xaf", "\\xc0\\xaf"},                    // an overlong encoding
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},  // beyond Unicode
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable(text), shown);
}

TEST(InQuotesTest, QuotedTextIsPrintableWithBoundedLength) {
  EXPECT_EQ(in_quotes("a\nb"), "'a\\x0ab'");
  EXPECT_EQ(in_quotes(std::string(201, 'x')), "'" + std::string(200, 'x') + "...'");
}

// Returns a word as a shell reads it.
std::string echoed_by(const std::string& shell, const std::string& word) {
  return run_child({shell, "-c", "printf %s " + word}).out;
}

TEST(ShellWordTest, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(shell_word("seed-1.trace"), "seed-1.trace");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ShellWordTest, AShellReadsTheTextBack) {
  for (const std::string text : {"two words", "it's of $HOME", "Grüße", "*?[a]", ";|&<>(){}#~!"}) {
    EXPECT_EQ(echoed_by("/bin/sh", shell_word(text)), text) << shell_word(text);
  }
}

TEST(ShellWordTest, BashReadsBackEscapedControlCharacters) {
  const std::string text = "x\x1b]0;it's\a\n7\xff";
  const std::string word = shell_word(text);
  EXPECT_EQ(printable(word), word);
  EXPECT_EQ(echoed_by("/bin/bash", word), text);
}

ProcessResult shell(const std::string& line, const std::string& in = {}) {
  return run_child({"/bin/sh", "-c", line}, in);
}

// Returns the status of a copy of this process that runs `body`: its exit code, or a signal.
int status_of(int (*body)()) {
  return ForkedChild{body}.wait();
}

TEST(StopOnSignalsTest, EachSignalThatEndsARunSetsTheFlag) {
  EXPECT_EQ(status_of([] {
              for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
                std::signal(signal, SIG_DFL);  // Bazel's processes may ignore it
                const StopOnSignals stop;
                if (stop.requested()) return 1;
                ::raise(signal);
                ::raise(signal);
                if (!stop.requested()) return signal;
              }
              return 0;
            }),
            0);
}

TEST(StopOnSignalsTest, ASignalThatWasIgnoredStaysIgnored) {
  EXPECT_EQ(status_of([] {
              for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
                std::signal(signal, SIG_IGN);
                const StopOnSignals stop;
                ::raise(signal);
                if (stop.requested()) return signal;
                StopOnSignals::restore_signals();
                ::raise(signal);
              }
              return 0;
            }),
            0);
}

TEST(StopOnSignalsTest, ASecondSignalEndsTheProgramButNotAHangUp) {
  const auto twice = []<int kSignal>() {
    return status_of([] {
      std::signal(kSignal, SIG_DFL);
      const StopOnSignals stop;
      ::raise(kSignal);
      StopOnSignals::restore_signals();
      ::raise(kSignal);
      return stop.requested() ? 0 : 1;
    });
  };
  EXPECT_EQ(WTERMSIG(twice.operator()<SIGINT>()), SIGINT);
  EXPECT_EQ(WTERMSIG(twice.operator()<SIGTERM>()), SIGTERM);
  EXPECT_EQ(twice.operator()<SIGHUP>(), 0);
  EXPECT_EQ(WTERMSIG(status_of([] {
              std::signal(SIGHUP, SIG_DFL);
              const StopOnSignals stop;
              StopOnSignals::restore_signals();
              ::raise(SIGHUP);
              return 0;
            })),
            SIGHUP)
      << "it came while the verdict waited for a reader";
}

TEST(ChildProcessTest, CollectsBothOutputsWithExitCode) {
  const ProcessResult ended = shell("echo to out; echo to err >&2; exit 7");
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(ended.out, "to out\n");
  EXPECT_EQ(ended.err, "to err\n");
}

TEST(ChildProcessTest, OutputBeyondAPipesCapacityIsCollected) {
  const ProcessResult ended = shell("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out.size(), 300000u);
  EXPECT_EQ(ended.err.size(), 300000u);
}

TEST(ChildProcessTest, SharedOutputIsNotOverwritten) {
  const ProcessResult ended = shell(
      "count() { n=0; while [ $n -lt 5000 ]; do echo line; n=$((n + 1)); done; }; "
      "count & count & wait");
  EXPECT_EQ(ended.out.size(), 2 * 5000 * std::string{"line\n"}.size());
}

TEST(ChildProcessTest, ArgumentsReachTheChildAsTheyAre) {
  EXPECT_EQ(run_child({"/usr/bin/env", "printf", "%s|", "two words", "", "$HOME"}).out,
            "two words||$HOME|");
}

TEST(ChildProcessTest, TheChildReadsItsInputToTheEnd) {
  const std::string in(100000, 'x');
  EXPECT_EQ(run_child({"/usr/bin/env", "cat"}, in).out, in);
}

TEST(ChildProcessTest, ASignalThatEndsTheChildIsItsExitCode) {
  EXPECT_EQ(shell("kill -TERM $$").exit_code, 128 + SIGTERM);
}

TEST(ChildProcessTest, MissingProgramThrowsOrExits127) {
  EXPECT_THROW(run_child({"/nowhere/program"}), std::system_error);
  EXPECT_EQ(run_child({"/usr/bin/env", "no-such-program"}).exit_code, 127);
}

TEST(ChildProcessTest, KillingAbandonedChildKeepsItsOutput) {
  ChildProcess child{{"/bin/sh", "-c", "echo begun >&2; exec sleep 600"}};
  const ProcessResult ended = child.wait([&] { return !child.errors().empty(); });
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_EQ(ended.err, "begun\n");
}

TEST(ChildProcessTest, AChildThatIsNotWaitedForIsKilled) {
  pid_t id = 0;
  {
    const ChildProcess child{{"/usr/bin/env", "sleep", "600"}};
    id = child.id();
    EXPECT_TRUE(os::ProcessRef::open(id));
  }
  EXPECT_FALSE(os::ProcessRef::open(id));
}

// Stands for noexcept code of a library.
int call(int (*allocate)()) noexcept {
  return allocate();
}

TEST(RunProgramTest, NoMemoryInNoexceptCodeIsTheEnvironments) {
  char name[] = "x";
  char* words[] = {name, nullptr};
  const auto body = [](int, char**) { return call([]() -> int { throw std::bad_alloc{}; }); };
  EXPECT_EXIT(std::_Exit(run_program("x", body, 1, words)), ::testing::ExitedWithCode(2),
              "x: out of memory: ");
}

TEST(RunProgramTest, AThreadThatIsRefusedIsNamed) {
  char name[] = "x";
  char* words[] = {name, nullptr};
  // std::thread throws this error.
  const auto body = [](int, char**) -> int {
    throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)};
  };
  EXPECT_EXIT(std::_Exit(run_program("x", body, 1, words)), ::testing::ExitedWithCode(2),
              "the system refused: a thread: Resource temporarily unavailable");
}

TEST(ForkedChildTest, ExitsWithTheFunctionsResultOr1IfThatThrows) {
  EXPECT_EQ(WEXITSTATUS(ForkedChild{[] { return 7; }}.wait()), 7);
  EXPECT_EQ(WEXITSTATUS(ForkedChild{[]() -> int { throw std::runtime_error{""}; }}.wait()), 1);
}

TEST(ForkedChildTest, WaitReportsTheSignalThatKilledTheChild) {
  ForkedChild child{::pause};
  child.kill();
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
}

TEST(ForkedChildTest, AChildThatIsNotWaitedForIsKilled) {
  pid_t id = 0;
  {
    const ForkedChild child{::pause};
    id = child.id();
    EXPECT_TRUE(os::ProcessRef::open(id));
  }
  EXPECT_FALSE(os::ProcessRef::open(id));
}

TEST(ForkedChildTest, DoesNotOutliveItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ForkedChild parent{[&] {
    const ForkedChild child{[&] {
      const pid_t id = ::getpid();
      return ::write(ends[1], &id, sizeof(id)) == sizeof(id) ? ::pause() : 1;
    }};
    return ::pause();
  }};
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof(child)), sizeof(child));
  parent.kill();  // its destructor does not run
  parent.wait();
  EXPECT_TRUE(has_ended(child));
  ::close(ends[0]);
  ::close(ends[1]);
}

// Returns 7 if the right error is thrown.
int fork_beyond_the_limit() {
  const rlimit none{0, 0};
  const bool is_user = ::setuid(65534) == 0 || ::getuid() != 0;  // root has no limit
  if (!is_user) return 77;
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
  try {
    const ForkedChild child{::pause};
  } catch (const std::system_error& error) {
    return error.code() == std::errc::resource_unavailable_try_again ? 7 : 3;
  }
  return 4;
}

TEST(ForkedChildTest, ThrowsIfTheProcessCannotBeCopied) {
  const int code = WEXITSTATUS(ForkedChild{fork_beyond_the_limit}.wait());
  if (code == 77) GTEST_SKIP() << "root has no limit, and cannot become another user here";
  EXPECT_EQ(code, 7);
}

TEST(ReplayCommandTest, CommentIdentifiesBuild) {
  EXPECT_EQ(replay_command("sim --seed 1"), "perfring sim --seed 1  # perfring " PERFRING_VERSION);
  ::setenv("PERFRING_COMMIT", "a1b2c3d", 1);
  EXPECT_EQ(replay_command("sim --seed 1", "saved"),
            "perfring sim --seed 1  # perfring " PERFRING_VERSION " at a1b2c3d, saved");
  ::unsetenv("PERFRING_COMMIT");
}

}  // namespace
}  // namespace perfring
