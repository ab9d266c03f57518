// `perfring diff` as a user meets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/testing.h"
#include "harness/live/require_live_kernel.h"
#include "perfring/version.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Ended diff(const std::string& arguments, const std::string& before = "") {
  return run_line("diff " + arguments, before);
}

// The file of all traces.
std::string traces() {
  const char* const path = std::getenv("TRACES");
  return path == nullptr ? "" : path;
}

class DiffLiveTest : public ::testing::Test {
 protected:
  void SetUp() override { live::require_live_kernel(); }
};

TEST(DiffOptionsTest, WrongOnesAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--scripts 0", "--scripts: '0' is not accepted: give a number from 1 to 1000000000"},
      {"--scripts -1", "--scripts: '-1' is not accepted"},
      {"--scripts many", "--scripts: 'many' is not accepted"},
      {"--seed 18446744073709551616", "--seed: '18446744073709551616' is not accepted"},
      {"--steps 0", "--steps: '0' is not accepted"},
      {"--cpu ''", "--cpu: '' is not accepted"},
      {"--cpu -1", "--cpu: '-1' is not accepted"},
      {"--record ''", "--record: '' is not accepted"},
      {"--record -", "--record: - is for one trace: give --script"},
      {"--replay x --seed 2", "--seed: cannot be given together with --replay"},
      {"--replay x --script y", "--replay: cannot be given together with --script or --record"},
      {"--script x --steps 2", "--steps: cannot be given together with --script"},
      {"--script /nowhere", "--script: '/nowhere' cannot be read: No such file"},
      {"--script /dev/zero", "--script: '/dev/zero' is larger than 4 MiB"},
      {"--script /dev/null", "--script: '/dev/null' is empty"},
      {"--script /", "--script: '/' cannot be read: Is a directory"},
      {"--script " + temporary("binary", std::string{"output 1\0", 9}), "its byte 8 is 0"},
      {"--script " + temporary("comment", "# output 1\n"), "has no step: give at least one"},
      {"--script " + temporary("wrong", "output 1\npages 3\n"),
       "wrong': line 2: a ring of 3 pages"},
      {"--replay " + temporary("no_trace", "output 1\n"), "--replay: '"},
      {"--nonsense", "'--nonsense' is not an option here"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = diff(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("perfring: "), HasSubstr(message))) << arguments;
  }
}

TEST(DiffReplayTest, ATraceNeedsNoLiveKernel) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the traces are little-endian";
  const std::string one =
      temporary("one.trace", "trace full\npoll => 0 head 0 tail 0 lost 0 0 time 0\n");
  const Ended ended = diff("--replay " + traces() + " --replay " + one + " --json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["verdict"], "holds");
  EXPECT_EQ(json["kernel"], "recorded kernel");
  EXPECT_EQ(json["scripts"], 45);
}

TEST(DiffReplayTest, ATraceThatShowsSomethingElseIsAViolation) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the traces are little-endian";
  std::string text = contents(traces());
  const std::size_t at = text.find(" head 2", text.find("trace full\n"));
  ASSERT_NE(at, std::string::npos) << text;
  text[at + 6] = '8';  // another data_head
  const std::string changed = temporary("changed.trace", text);
  const Ended ended = diff("--replay " + changed + " --json");
  EXPECT_EQ(ended.exit_code, 1) << ended.out;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["verdict"], "violated");
  EXPECT_THAT(json["violation"]["message"].get<std::string>(), HasSubstr("data_head 8"));
  EXPECT_THAT(diff("--replay " + changed).out,
              HasSubstr("replay: perfring diff --replay " + changed +
                        "  # perfring " PERFRING_VERSION ", its trace 'full'"));
}

TEST_F(DiffLiveTest, WhatALiveKernelCannotRunIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"# such as\nword 32\noutput 1\n", "line 2: this live kernel has 64 bits"},
      {"start 8\noutput 1\n", "line 1: this live kernel has 64 bits"},
      {"output 1\n> at 1 output 1\n", "line 2: a nested step"},
  };
  for (const auto& [script, message] : cases) {
    const Ended ended = diff("--script " + temporary("script", script));
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.out, HasSubstr(message));
  }
  const Ended cpu = diff("--cpu 4095 --scripts 1");
  EXPECT_EQ(cpu.exit_code, 2);
  EXPECT_THAT(cpu.out, HasSubstr("--cpu: this process may not run on CPU 4095: it may on "));
}

TEST_F(DiffLiveTest, AScriptMayComeFromAFileOrAPipe) {
  const Ended file = diff("--script " + temporary("right", "output 1\n"));
  EXPECT_EQ(file.exit_code, 0) << file.out;
  EXPECT_THAT(file.out, HasSubstr("1 script, 1 step"));
  const Ended pipe = diff("--script - --json", "echo output 1 |");
  EXPECT_EQ(pipe.exit_code, 0) << pipe.out;
  EXPECT_EQ(nlohmann::json::parse(pipe.out)["verdict"], "holds");
}

TEST_F(DiffLiveTest, WhatIsRecordedIsReplayed) {
  const std::string folder = temporary("traces");
  std::filesystem::remove_all(folder);
  const Ended recorded = diff("--scripts 2 --seed 5 --steps 20 --record " + folder);
  EXPECT_EQ(recorded.exit_code, 0) << recorded.out;
  EXPECT_THAT(recorded.out, AllOf(HasSubstr("2 traces recorded in " + folder),
                                  HasSubstr("diff --replay " + folder + "/seed-6.trace")));
  const Ended replayed =
      diff("--replay " + folder + "/seed-5.trace --replay " + folder + "/seed-6.trace");
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out;
  EXPECT_THAT(replayed.out, HasSubstr("equals the recorded kernel"));
  const Ended joined = diff("--replay - --json", "cat " + folder + "/*.trace |");
  EXPECT_EQ(joined.exit_code, 0) << joined.out;
  EXPECT_EQ(nlohmann::json::parse(joined.out)["scripts"], 2);
  const Ended piped = run_line("diff --script '" + temporary("# a one", "output 8\n") + "'" +
                               " --record - | $PERFRING_RUN_UNDER " +
                               std::getenv("PERFRING_BINARY") + " diff --replay -");
  EXPECT_EQ(piped.exit_code, 0) << piped.out;
  EXPECT_THAT(piped.out, HasSubstr("1 script, 1 step"));
}

TEST_F(DiffLiveTest, AFolderThatCannotBeMadeIsRefusedAndNoParentIsMade) {
  const std::string parent = temporary("missing");
  std::filesystem::remove_all(parent);
  const Ended missing = diff("--scripts 1 --record " + parent + "/folder");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.out, AllOf(HasSubstr("cannot be made: No such file"),
                                 HasSubstr("give one whose parent exists")));
  EXPECT_FALSE(std::filesystem::exists(parent));
  const Ended file = diff("--scripts 1 --record " + temporary("file", "x"));
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_THAT(file.out, HasSubstr("cannot be made: Not a directory"));
}

TEST_F(DiffLiveTest, AnInterruptIsNoPass) {
  for (const char* signal : {"INT", "TERM"}) {
    const Ended ended = diff("--scripts 1000000000 --json 2>/dev/null",
                             std::string{"timeout --preserve-status -s "} + signal + " 2");
    EXPECT_EQ(ended.exit_code, 3) << ended.out;
    const auto json = nlohmann::json::parse(ended.out);
    EXPECT_EQ(json["interrupted"], true);
    EXPECT_EQ(json["holds"], false);
  }
}

}  // namespace
}  // namespace perfring::cli
