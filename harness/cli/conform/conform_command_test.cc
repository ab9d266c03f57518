// Runs `perfring conform` as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/sanitizers.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ConformCommandTest : public PerfringTest {
 protected:
  // Checks that an adapter is right in every case.
  void expect_right(const std::string& adapter) {
    const ProcessResult ended = run({"conform", "--json", "--adapter", adapter});
    EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    const Json outcome = parsed(ended.out);
    EXPECT_GE(outcome["counts"]["right"], 120) << outcome["counts"];
    EXPECT_EQ(outcome["counts"].size(), 1U) << outcome["counts"];
  }
};

TEST_F(ConformCommandTest, PerfringIsRight) {
  const ProcessResult ended = run({"conform", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json outcome = parsed(ended.out);
  EXPECT_EQ(outcome["verdict"], "holds");
  EXPECT_EQ(outcome["suite"], 4);
  EXPECT_THAT(outcome["not_looked_for"].get<std::string>(), HasSubstr("a write during a drain"));
  EXPECT_GE(outcome["cases"].size(), 120U);
}

TEST_F(ConformCommandTest, TheAdapterInCIsRight) {
  expect_right(std::filesystem::absolute(environment_variable("ADAPTER_C")).string());
}

TEST_F(ConformCommandTest, TheAdapterInPythonIsRight) {
  expect_right("/usr/bin/python3 -IS " +
               std::filesystem::absolute(file_of("ADAPTERS", ".py")).string());
}

TEST_F(ConformCommandTest, TheAdapterInGoIsRight) {
  if (!is_installed("go")) GTEST_SKIP() << "golang-go is not installed: ci/setup conform";
  const std::string cache = temporary("go_cache");
  expect_right(
      compiled("GOCACHE=" + cache + " GO111MODULE=off go build -o", file_of("ADAPTERS", ".go")));
}

TEST_F(ConformCommandTest, TheAdapterInRustIsRight) {
  std::string rustc = "rustc";
  const passwd* const user = ::getpwuid(::getuid());  // HOME is not set in a test
  const std::string own = std::string{user == nullptr ? "" : user->pw_dir} + "/.cargo/bin/rustc";
  if (!is_installed(rustc)) rustc = own;
  if (!is_installed(rustc)) GTEST_SKIP() << "rustc is not installed";
  expect_right(compiled(rustc + " --edition 2021 -O -o", file_of("ADAPTERS", ".rs")));
}

// A reader of a CI log sees this line last.
TEST_F(ConformCommandTest, TheLastLineNamesWhatIsNotTested) {
  for (const std::string& of : {std::string{"--adapter=true"}, std::string{"--fault=forgets_lost"},
                                std::string{"--only=one-record"}}) {
    const ProcessResult ended = run({"conform", "--only", "one-record", of});
    EXPECT_THAT(lines_of(ended.out).back(),
                AllOf(HasSubstr("Not tested: "), HasSubstr("a write during a drain, which"),
                      HasSubstr("see docs/conformance.md: What it does not show")));
  }
}

TEST_F(ConformCommandTest, AConsumerThatIsWrongIsNamedCaseByCase) {
  const ProcessResult ended =
      run({"conform", "--fault", "forgets_lost", "--only", "lost-one", "one-record"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("lost-one    reachable  loses: not delivered: LOST 1"),
                               HasSubstr("one-record  reachable  right\n"),
                               HasSubstr("2 cases: 1 right, 1 loses")));
}

// Runs each fault as a program, in cases that show it.
TEST_F(ConformCommandTest, FaultyProgramFailsAsCataloguePredicts) {
  if (const std::string why = why_not_supervised(); !why.empty()) GTEST_SKIP() << why;
  const std::string program = compiled("cc -static -o", file_of("ADAPTERS", "misbehaving.c"));
  for (const std::string fault : {"forgets_lost", "drops_last_event", "delivers_twice",
                                  "never_commits", "trusts_record_sizes"}) {
    const Json outcome = parsed(run({"conform", "--json", "--only", "turns", "lost-one", "raw-1mib",
                                     "--", program, fault, "{pages}"})
                                    .out);
    std::string worst = "right";
    for (const char* const each :
         {"loses", "garbage", "floods", "hangs", "crashes", "out of bounds"}) {
      if (outcome["counts"].contains(each)) worst = each;
    }
    const auto expected = by_conformance(*faults::find_fault(fault));
    EXPECT_EQ(worst, std::get<const char*>(expected)) << fault << outcome;
  }
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
  const ProcessResult mended =
      run({"conform", "--only", "lost-one", "--known", temporary("known", "lost-one loses\n")});
  EXPECT_EQ(mended.exit_code, 1) << "the file is to be kept true";
  EXPECT_THAT(mended.out, AllOf(HasSubstr("right, but the known outcome is 'loses'"),
                                HasSubstr("fixed; remove from the known failures: lost-one\n")));
  EXPECT_EQ(run({"conform", "--only", "lost-one", "--known", "/dev/null"}).exit_code, 0);
  EXPECT_EQ(with("lost-one\t loses \r\n\r\n").exit_code, 0) << "blanks of any sort";
  const ProcessResult binary = with(std::string(5000, '\x7f'));
  EXPECT_EQ(binary.exit_code, 2);
  EXPECT_LT(binary.err.size(), 1000U) << binary.err;
  const ProcessResult twice = with("lost-one loses\nlost-one hangs\n");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("line 2: 'lost-one' is listed twice"));
  const ProcessResult refused = with("lost-one right\n");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("line 1: 'lost-one right' is not accepted"));
}

// As in `perfring conform -- $EMPTY`: perfring's own pass must not look like the program's.
TEST_F(ConformCommandTest, ProgramsThatAreNotThereAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines{
      {{"conform", "--"}, "no program is given after --"},
      {{"conform", "--live", "--"}, "no program is given after --"},
      {{"conform", "--adapter", "true", "--"}, "no program is given after --"},
      {{"conform", "--reader", "bpftool"}, "--reader needs a program after --"},
      {{"conform", "--reader", "lines", "--adapter", "true"}, "--reader needs a program after --"},
      {{"conform", "--live"}, "--live needs a program after --"},
      {{"conform", "--adapter", ""}, "--adapter"},
  };
  for (const auto& [line, why] : lines) {
    const ProcessResult ended = run(line);
    EXPECT_EQ(ended.exit_code, 2) << ::testing::PrintToString(line) << ended.out;
    EXPECT_THAT(ended.err, HasSubstr(why));
  }
}

TEST_F(ConformCommandTest, SelectsCasesByIdOrKind) {
  const ProcessResult list = run({"conform", "--list", "--only", "w32-*", "type-77"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("w32-lost"), HasSubstr("type-77"), Not(HasSubstr("w64"))));
  const ProcessResult reachable = run({"conform", "--list", "--reachable"});
  EXPECT_THAT(reachable.out, AllOf(HasSubstr("one-record"), Not(HasSubstr("hostile"))));
  const ProcessResult none = run({"conform", "--reachable", "--only", "type-77"});
  EXPECT_EQ(none.exit_code, 3) << "no case was run: that is not a pass";
  EXPECT_THAT(none.out, HasSubstr("0 cases\nNot shown: no case was run"));
  const ProcessResult commas = run({"conform", "--list", "--only", "w32-*,type-77"});
  EXPECT_EQ(commas.out, list.out);
  const ProcessResult wrong = run({"conform", "--only", "lost-on"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--only: 'lost-on' is not accepted: the nearest are lost-one,"));
}

TEST_F(ConformCommandTest, AnAdapterThatCannotBeStartedIsOneError) {
  for (const std::string adapter : {"/nonexistent", "no-such-adapter -v", "/etc/passwd"}) {
    const ProcessResult ended = run({"conform", "--adapter", adapter});
    EXPECT_EQ(ended.exit_code, 2) << adapter;
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, AllOf(HasSubstr("--adapter: '" + adapter + "' cannot be started: "),
                                 AnyOf(HasSubstr("not found"), HasSubstr("ermission denied")),
                                 HasSubstr("give a command that the shell finds")));
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
  }
}

TEST_F(ConformCommandTest, ASignalEndsTheAdapterUnderWay) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string began = temporary("adapter_began");
    const std::string ended_by_itself = temporary("adapter_ended");
    std::filesystem::remove(began);
    const ProcessResult ended = interrupt_when_created(
        {"conform", "--adapter",
         "sh -c 'touch " + began + "; sleep 60; touch " + ended_by_itself + "'"},
        began, signal);
    EXPECT_EQ(ended.exit_code, 3) << signal << ended.err;
    EXPECT_FALSE(std::filesystem::exists(ended_by_itself));
    EXPECT_THAT(ended.out, HasSubstr("0 cases"));
  }
}

TEST_F(ConformCommandTest, AnAdapterEndsWithPerfringEvenIfThatIsKilled) {
  const std::string began = temporary("killed_began");
  ChildProcess child{command(
      {"conform", "--adapter",
       "sh -c 'echo $$ >" + began + ".new; mv " + began + ".new " + began + "; exec sleep 600'"})};
  child.wait([&] { return std::filesystem::exists(began); });
  pid_t adapter = 0;
  ASSERT_TRUE(std::ifstream{began} >> adapter);
  EXPECT_TRUE(has_ended(adapter)) << adapter;
}

TEST_F(ConformCommandTest, WritesJUnitBesideMarkdown) {
  const std::string junit = temporary("junit.xml");
  const ProcessResult ended =
      run({"conform", "--fault", "trusts_record_sizes", "--only", "raw-1mib", "one-record",
           "sample-time", "--markdown", "--junit", junit});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("| raw-1mib | hostile | out of bounds: "));
  EXPECT_THAT(contents(junit),
              AllOf(HasSubstr("tests=\"3\" failures=\"1\" skipped=\"1\""),
                    HasSubstr("name=\"raw-1mib\""), HasSubstr("<failure message=\"out of bounds")));
}

}  // namespace
}  // namespace perfring::cli
