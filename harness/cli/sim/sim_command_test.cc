// Runs `perfring sim` as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/sanitizers.h"
#include "perfring/version.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using SimCommandTest = PerfringTest;

TEST_F(SimCommandTest, ASimulationIsTheSameForTheSameSeed) {
  const std::vector<std::string> arguments{"sim",    "--seed",  "5",      "--scenario",
                                           "bursts", "--steps", "200000", "--json"};
  const ProcessResult first = run(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.err << first.out;
  const auto json = parsed(first.out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["digest"], parsed(run(arguments).out)["digest"]);
  EXPECT_GT(json["cpus"].at(0)["delivered"], 0);
  for (const auto& cpu : json["cpus"]) {
    EXPECT_EQ(cpu["attempted"].get<std::uint64_t>(), cpu["delivered"].get<std::uint64_t>() +
                                                         cpu["lost"].get<std::uint64_t>() +
                                                         cpu["failed"].get<std::uint64_t>());
    EXPECT_EQ(cpu["accepted"], cpu["delivered"]);
  }
}

TEST_F(SimCommandTest, MergeExplainsLateRecords) {
  const auto merged = [](const char* scenario) {
    return std::vector<std::string>{"sim", "--scenario", scenario, "--steps", "300000"};
  };
  for (const bool stalls : {false, true}) {
    std::vector<std::string> arguments = merged(stalls ? "merge_stalls" : "merge");
    EXPECT_THAT(run(arguments).out, HasSubstr(stalls ? "merged with a slack of 100 ticks: "
                                                     : "merged with a slack of 100,000 ticks: 0 "
                                                       "late; the longest delay was "));
    arguments.emplace_back("--json");
    const auto json = parsed(run(arguments).out);
    EXPECT_EQ(json["late"] > 0, stalls) << json["late"];
    EXPECT_EQ(json["longest_delay_ticks"] > json["settings"]["slack"], stalls);
  }
  EXPECT_FALSE(parsed(run({"sim", "--steps", "10000", "--json"}).out).contains("late"));
}

// A property prints scripts in this format, and `perfring diff --script` reads it.
TEST_F(SimCommandTest, AScriptIsRunUnderEveryInvariant) {
  const std::string sound = temporary("sound.script", "30 times output 125\ndrain 30\n");
  const ProcessResult ended = run({"sim", "--script", sound});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("delivered, 0 malformed"), HasSubstr("All invariants hold.")));
  const auto json = parsed(run({"sim", "--script", sound, "--json"}).out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["accepted"], json["delivered"]);
  const ProcessResult found = run({"sim", "--script", sound, "--fault", "drops_last_event"});
  EXPECT_EQ(found.exit_code, 1) << found.err << found.out;
  EXPECT_THAT(found.out, HasSubstr("violated: "));
  const ProcessResult unseen = run({"sim", "--script", sound, "--fault", "wakes_nobody"});
  EXPECT_EQ(unseen.exit_code, 3) << unseen.err << unseen.out;
  EXPECT_THAT(unseen.out, HasSubstr("this script does not find 'wakes_nobody'"));
}

TEST_F(SimCommandTest, AScriptThatCannotBeRunIsNamedWithTheReason) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {temporary("tail.script", "tail 8\n"), "without 'tail' can be run here"},
      {temporary("none.script", "nonsense\n"), "not a step or a setting"},
      {"/nowhere", "cannot be read"},
  };
  for (const auto& [file, message] : cases) {
    const ProcessResult ended = run({"sim", "--script", file});
    EXPECT_EQ(ended.exit_code, 2) << ended.err << ended.out;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("--script: "), HasSubstr(message)));
  }
  const std::string sound = temporary("sound.script", "output 8\ndrain 1\n");
  EXPECT_THAT(run({"sim", "--script", sound, "--fault", "none"}).err, HasSubstr("no fault called"));
  EXPECT_EQ(run({"sim", "--script", sound, "--seed", "1"}).exit_code, 2);
}

TEST_F(SimCommandTest, AViolationReplays) {
  const ProcessResult found = run({"sim", "--fault", "commits_each", "--json"});
  EXPECT_EQ(found.exit_code, 1) << found.err << found.out;
  const auto json = parsed(found.out);
  EXPECT_EQ(json["violation"]["invariant"], "tail_honest");
  const std::string replay = json["shrunk"]["replay"];
  ASSERT_TRUE(replay.starts_with("perfring ")) << replay;
  EXPECT_THAT(replay, HasSubstr("  # perfring " PERFRING_VERSION));
  const ProcessResult again = shell("\"$PERFRING\" " + replay.substr(9));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.out, HasSubstr(json["shrunk"]["message"].get<std::string>()));
}

// The replay line is quoted for a shell, so that a file's odd name survives.
TEST_F(SimCommandTest, AViolationReplaysInAShell) {
  const std::filesystem::path folder = temporary("it's of $HOME");
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "two words"} << "cpus 1\nbreak_one_in 40\n";
  ::setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), 1);  // as bazel run does
  for (const std::string& file : {std::string{"two words"}, (folder / "two words").string()}) {
    const ProcessResult found =
        run({"sim", "--fault", "commits_each", "--json", "--scenario", file});
    ASSERT_EQ(found.exit_code, 1) << found.err << found.out;
    const auto json = parsed(found.out);
    // The command that a user of `bazel run` types.
    const std::string command = json["shrunk"]["replay"];
    const std::string typed = "bazel run --config=opt //:perfring -- ";
    ASSERT_TRUE(command.starts_with(typed)) << command;
    const ProcessResult again = shell("\"$PERFRING\" " + command.substr(typed.size()));
    EXPECT_EQ(again.exit_code, 1) << again.err;
    EXPECT_THAT(again.out, HasSubstr(json["shrunk"]["message"].get<std::string>()));
  }
  ::unsetenv("BUILD_WORKING_DIRECTORY");
}

TEST_F(SimCommandTest, RandomRunsRepeatForSameSeeds) {
  const ProcessResult first = run({"sim", "--runs", "20", "--seed", "3", "--json"});
  EXPECT_EQ(first.exit_code, 0) << first.err << first.out;
  EXPECT_EQ(first.out, run({"sim", "--runs", "20", "--seed", "3", "--json"}).out);
  const auto json = parsed(first.out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["seed"], 3);
  EXPECT_EQ(json["runs"], 20);
  EXPECT_GT(json["delivered"], 0);
  const ProcessResult table = run({"sim", "--runs", "20", "--seed", "3"});
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("20 runs, of seeds 3 to 22: "), HasSubstr("All invariants hold.\n")));
  // The last run has the settings that a single run draws from the same seed.
  const ProcessResult last = run({"sim", "--runs", "1", "--seed", "22", "--json"});
  EXPECT_EQ(json["last_settings"], parsed(last.out)["last_settings"]);
  EXPECT_NE(json["last_settings"],
            parsed(run({"sim", "--runs", "1", "--seed", "3", "--json"}).out)["last_settings"]);
  const std::uint64_t pages = json["last_settings"]["pages"];
  EXPECT_THAT(table.out, HasSubstr("Settings of seed 22: cpus="));
  EXPECT_THAT(table.out, HasSubstr(" pages=" + std::to_string(pages) + " "));
}

TEST_F(SimCommandTest, ViolationAmongRunsReplays) {
  const ProcessResult found = run({"sim", "--runs", "60", "--fault", "commits_each", "--json"});
  ASSERT_EQ(found.exit_code, 1) << found.err << found.out;
  const auto json = parsed(found.out);
  const std::uint64_t runs = json["runs"];
  EXPECT_EQ(json["run"]["seed"], runs);  // the first has seed 1
  const std::string message = json["run"]["violation"]["message"];
  const ProcessResult table = run({"sim", "--runs", "60", "--fault", "commits_each"});
  EXPECT_EQ(table.exit_code, 1);
  for (const auto& [name, value] : json["run"]["settings"].items()) {
    EXPECT_THAT(table.out,
                HasSubstr(" " + name + "=" + std::to_string(value.get<std::uint64_t>())));
  }
  for (const char* const line : {"run", "shrunk"}) {
    const auto& that = line == std::string{"run"} ? json["run"] : json["run"]["shrunk"];
    const std::string replay = that["replay"];
    EXPECT_THAT(replay, AllOf(HasSubstr(" --seed "), HasSubstr("  # perfring " PERFRING_VERSION)));
    const ProcessResult again = shell("\"$PERFRING\" " + replay.substr(9));
    EXPECT_EQ(again.exit_code, 1) << again.err;
    EXPECT_THAT(
        again.out,
        HasSubstr(line == std::string{"run"} ? message : that["message"].get<std::string>()));
  }
}

TEST_F(SimCommandTest, RunsThatDoNotFindAFaultShowNothing) {
  const ProcessResult ended =
      run({"sim", "--runs", "2", "--steps", "1", "--fault", "wakes_nobody"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("Not shown: the fault wakes_nobody was not found"));
}

TEST_F(SimCommandTest, AScenarioMayComeThroughAPipe) {
  const ProcessResult ended =
      shell("echo 'pages 3' | \"$PERFRING\" sim --steps 1000 --scenario /dev/stdin");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("'/dev/stdin', line 1: pages: 3"));
}

TEST_F(SimCommandTest, ImpossibleScenarioOrSettingIsExplained) {
  const std::string file = temporary("scenario.txt", "cpus 1\npages 4\nbogus 1\n");
  const std::string odd = temporary("odd.txt", "# of a ring\npages 3\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"sim", "--scenario", "none"},
       "--scenario: 'none' is not accepted: give a file or one of steady"},
      {{"sim", "--scenario", std::string(300, 'x')}, "is not accepted: give a file or one of "},
      {{"sim", "--scenario", file}, "scenario.txt', line 3: 'bogus'"},
      {{"sim", "--scenario", odd}, "odd.txt', line 2: pages: 3 is not a power of two"},
      {{"sim", "--scenario", ::testing::TempDir()}, "cannot be read: Is a directory"},
      {{"sim", "--set", "pages=3"}, "pages: 3 is not a power of two"},
      {{"sim", "--set", "nope=3"}, "--set: 'nope' is not a setting; the settings are cpus"},
      {{"sim", "--set", " cpus=3"}, "--set: ' cpus=3' is not accepted: give NAME=VALUE"},
      {{"sim", "--list", "--fault", "none"}, "--fault: cannot be given together with --list"},
      {{"sim", "--runs", "2", "--scenario", "bursts"},
       "--scenario: cannot be given together with --runs"},
      {{"sim", "--runs", "2", "--set", "cpus=2"}, "--set: cannot be given together with --runs"},
      {{"sim", "--runs", "0"}, "--runs: '0' is not accepted: give a number from 1"},
      {{"sim", "--set", "=3"}, "--set: '=3' is not accepted: give NAME=VALUE"},
      {{"sim", "--set", "pages"}, "NAME=VALUE"},
      {{"sim", "--set", "#pages=4"}, "NAME=VALUE"},
      {{"sim", "--set", "pages=4#"}, "NAME=VALUE"},
      {{"sim", "--set", "pages=4\ncpus=3"}, "NAME=VALUE"},
      {{"--json", "sim"}, "--json is given before 'sim'"},
      {{"--seconds", "2", "sim", "--json"}, "--seconds is given before 'sim'"},
      {{"sim", "--list", "check"}, "check"},
      {{"sim", "--set", "payload_max=2000000"}, "payload_max: '2000000'"},
      {{"sim", "--set", "pages=1", "--set", "payload_max=5000"}, "do not fit a ring of 1 page,"},
      {{"sim", "--cpus", "65"}, "--cpus: '65' is not accepted: give a number from 1 to 64"},
      {{"sim", "--cpus", "4", "--set", "cpus=2"}, "--cpus and --set cpus=... are the same"},
      {{"sim", "--fault", ""}, "--fault: '' is not accepted"},
      {{"sim", "--scenario", ""}, "--scenario: '' is not accepted"},
      {{"sim", "--scenario="}, "'--scenario=' has no value"},
      {{"sim", "--seed", "1", "--seed", "2"}, "--seed is given 2 times: give it once"},
      {{"sim", "1", "2"}, "'1' is not expected here"},
      {{"sim", "--sed", "2"}, "'--sed' is not an option here"},
      {{"sim", "--seed"}, "--seed: its value is missing"},
      {{"sim", "--steps", "0"}, "--steps: '0' is not accepted: give a number from 1 to 1844674407"},
      {{"sim", "--steps", "-1"}, "--steps: '-1' is not accepted"},
      {{"sim", "--seed", "x"}, "--seed: 'x' is not accepted"},
      {{"sim", "--seed", "-1"}, "--seed: '-1' is not accepted: give a number from 0"},
      {{"sim", "--fault", "no_smp_wmp"},
       "--fault: 'no_smp_wmp' is not accepted: the nearest are no_smp_wmb, "},
      {{"sim", "--fault", "none"}, "; 'perfring sim --list' prints all"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << message;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(SimCommandTest, SystemRefusalNamesFailedCall) {
  if (kSanitized) GTEST_SKIP() << kTooFewForASanitizer;
  const ProcessResult ended = run_with_files(20, {"sim", "--cpus", "64", "--steps", "1000"});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("perfring: the system refused: memfd_create: "));
}

TEST_F(SimCommandTest, UndetectedFaultSaysWhatFindsIt) {
  const ProcessResult ended =
      run({"sim", "--fault", "wakes_nobody", "--scenario", "hostile", "--steps", "20000"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("Not shown: the fault wakes_nobody was not found here; with the "
                                   "default settings, `perfring sim --fault wakes_nobody` finds it "
                                   "(awake)"));
}

TEST_F(SimCommandTest, ASimulationThatDeliversNothingShowsNothing) {
  const ProcessResult ended = run({"sim", "--set", "hostile=1", "--steps", "1", "--json"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["verdict"], "not shown");
  EXPECT_EQ(json["not_shown"], "no event was delivered: give more --steps");
}

TEST_F(SimCommandTest, AScenarioFromStdinReplaysWithoutIt) {
  const ProcessResult found = shell(
      "printf 'cpus 1\\nbreak_one_in 40\\n' | \"$PERFRING\" sim --fault "
      "commits_each --scenario - --json");
  ASSERT_EQ(found.exit_code, 1) << found.err;
  const auto json = parsed(found.out);
  const std::string command = json["shrunk"]["replay"];
  const ProcessResult again = shell("\"$PERFRING\" " + command.substr(9));
  EXPECT_EQ(again.exit_code, 1) << again.err;
  EXPECT_THAT(again.out, HasSubstr(json["shrunk"]["message"].get<std::string>()));
}

TEST_F(SimCommandTest, AnInterruptEndsASimulationWithTheVerdictSoFar) {
  const ProcessResult ended = run_line_until("INT", "sim --steps 1000000000000");
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Not shown: interrupted before the end; nothing was violated"));
}

}  // namespace
}  // namespace perfring::cli
