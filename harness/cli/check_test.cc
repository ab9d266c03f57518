// `perfring check` as a user meets it: run as a process, with its exit code and what it prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "harness/cli/testing.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Ended run(const std::string& arguments, const std::string& before = "") {
  return run_line("check " + arguments, before);
}

TEST(Check, ProvesTheSourceThatShipsInBothForms) {
  const Ended ended = run("--json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["verdict"], "holds");
  EXPECT_EQ(json["program"], "ring");
  EXPECT_EQ(json["records"], 6);
  ASSERT_EQ(json["cases"].size(), 2u);
  for (const auto& each : json["cases"]) EXPECT_GT(each["executions"], 100);
}

TEST(Check, CountsWhatGenMcCounts) {
  const Ended ended = run("protocol --records 5 --polls 5 --form A --json");
  EXPECT_EQ(nlohmann::json::parse(ended.out)["cases"][0]["executions"], 2190) << ended.out;
}

TEST(Check, PrintsWhatIsViolatedAndWhere) {
  const Ended ended = run("protocol --mutant no_full_fence");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("kernel"), HasSubstr("user"), HasSubstr("[protocol.cc:"),
                               HasSubstr(" rf #"), HasSubstr(" co after #"),
                               HasSubstr("data race, by kernel"), HasSubstr("VIOLATED in form B")));
  const Ended in_a = run("protocol --mutant no_full_fence --form A");
  EXPECT_EQ(in_a.exit_code, 3);
  EXPECT_THAT(in_a.out, HasSubstr("no_full_fence was not found, which `perfring check protocol "
                                  "--mutant no_full_fence` finds in form B"));
}

TEST(Check, SaysTheSameInJson) {
  const Ended ended = run("wrong/message_passing_load --json");
  EXPECT_EQ(ended.exit_code, 1);
  const auto violation = nlohmann::json::parse(ended.out)["violation"];
  EXPECT_EQ(violation["what"], "data race");
  EXPECT_EQ(violation["threads"], (std::vector<std::string>{"sender", "receiver"}));
  EXPECT_EQ(violation["race"], (std::vector<int>{1, 4}));
  ASSERT_EQ(violation["events"].size(), 4u);
  const auto& flag_read = violation["events"][2];
  EXPECT_EQ(flag_read["location"], "flag");
  EXPECT_EQ(flag_read["thread"], 1);
  EXPECT_EQ(flag_read["reads_from"], 2);
  EXPECT_EQ(violation["events"][1]["coherence_after"], 0);
  EXPECT_THAT(flag_read["where"].get<std::string>(), HasSubstr("publication.cc:"));
}

TEST(Check, DrawsAViolation) {
  const std::string file = temporary("drawn.svg");
  EXPECT_EQ(run("wrong/message_passing_load --svg " + file).exit_code, 1);
  EXPECT_THAT(contents(file), AllOf(HasSubstr("<svg"), HasSubstr("sender"),
                                    HasSubstr(">program wrong/message_passing_load<"),
                                    HasSubstr(">data race: #1 by sender, #4 by receiver<")));
  EXPECT_EQ(run("ring/nested --mutant publishes_nested --svg " + file).exit_code, 1);
  EXPECT_THAT(contents(file),
              HasSubstr(">program ring/nested, mutant publishes_nested, form A, step 3<"));
}

// The titles of the boxes that are red.
std::set<std::string> red_boxes(const std::string& svg) {
  const std::regex box{R"x(class="node">\n<title>(\w+)</title>\n<polygon [^>]*stroke="red")x"};
  std::set<std::string> titles;
  for (std::sregex_iterator each{svg.begin(), svg.end(), box}, end; each != end; ++each) {
    titles.insert((*each)[1]);
  }
  return titles;
}

// Each thread's frame: its number, and where it begins and ends.
struct Frame {
  std::size_t thread;
  double left, right;
};
std::vector<Frame> frames(const std::string& svg) {
  const std::regex frame{
      R"x(<title>cluster_(\d+)</title>\n<polygon [^>]*points="([\d.-]+),\S+ \S+ ([\d.-]+),)x"};
  std::vector<Frame> all;
  for (std::sregex_iterator each{svg.begin(), svg.end(), frame}, end; each != end; ++each) {
    all.push_back({std::stoul((*each)[1]), std::stod((*each)[2]), std::stod((*each)[3])});
  }
  return all;
}

// As drawn by Graphviz, from what `check --json` says of the same violation.
void expect_drawn(const nlohmann::json& checked, const std::string& svg) {
  const auto& violation = checked["violation"];
  std::string subject = "program " + checked["program"].get<std::string>();
  if (checked.contains("mutant")) subject += ", mutant " + checked["mutant"].get<std::string>();
  const auto label = checked["cases"].back()["label"].get<std::string>();
  if (label != checked["program"].get<std::string>()) subject += ", " + label;
  EXPECT_THAT(svg, AllOf(HasSubstr(">" + subject + "<"), HasSubstr(">rf: reads from<"),
                         HasSubstr(">co: modification order<"), Not(HasSubstr("initial&#45;"))));
  std::set<std::string> red;
  for (const int number : violation["race"]) red.insert("e" + std::to_string(number));
  if (red.empty()) {
    std::size_t last = 0;
    for (const auto& event : violation["events"]) {
      if (event["thread"] == violation["thread"]) last = event["number"];
    }
    red = {"e" + std::to_string(last), "check"};
  }
  EXPECT_EQ(red_boxes(svg), red);
  const std::vector<Frame> threads = frames(svg);
  EXPECT_GE(threads.size(), 2u);
  for (std::size_t i = 1; i < threads.size(); ++i) {
    EXPECT_GT(threads[i].thread, threads[i - 1].thread);
    EXPECT_GT(threads[i].left, threads[i - 1].right);
  }
}

// The mutants of ring once: //harness/model:catalogue_test has them in the programs that share
// them.
TEST(Check, DrawsEachViolationOfEveryProgramAndMutant) {
  const std::string file = temporary("each.svg");
  std::size_t drawn = 0;
  const auto list = nlohmann::json::parse(run("--list --json").out);
  for (const auto& program : list["programs"]) {
    std::vector<std::string> mutants{""};
    const bool ring_again = drawn != 0 && program["mutants"] == list["programs"][0]["mutants"];
    for (const auto& mutant : ring_again ? nlohmann::json::array() : program["mutants"]) {
      mutants.push_back(" --mutant " + mutant["name"].get<std::string>());
    }
    for (const std::string& mutant : mutants) {
      const std::string arguments = program["name"].get<std::string>() + mutant;
      SCOPED_TRACE(arguments);
      const auto checked =
          nlohmann::json::parse(run(arguments + " --json --svg " + file + " 2>/dev/null").out);
      if (!checked.contains("violation")) continue;
      expect_drawn(checked, contents(file));
      ++drawn;
    }
  }
  EXPECT_GE(drawn, 42u);
}

TEST(Check, SaysWhatIsMissingForADrawing) {
  const std::string file = temporary("missing.svg");
  const Ended ended = run("wrong/message_passing_load --svg " + file, "PATH=/nowhere");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("dot is not installed"), HasSubstr("graphviz")));
  EXPECT_FALSE(std::filesystem::exists(file));
  const std::string kept = temporary("kept.svg", "an earlier one");
  EXPECT_EQ(run("wrong/message_passing_load --svg " + kept, "PATH=/nowhere").exit_code, 2);
  EXPECT_EQ(contents(kept), "an earlier one");
  const Ended unwritable = run("wrong/message_passing_load --svg /nowhere/x.svg");
  EXPECT_EQ(unwritable.exit_code, 2);
  EXPECT_THAT(unwritable.out, HasSubstr("'/nowhere/x.svg' cannot be written: No such file"));
}

// A link to the device, which would be what is taken away.
TEST(Check, ADrawingThatDoesNotFitIsAnError) {
  const std::string file = temporary("full.svg");
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/full", file);
  const Ended ended = run("wrong/message_passing_load --svg " + file);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, HasSubstr("full.svg' cannot be written: No space left"));
  EXPECT_TRUE(std::filesystem::is_symlink(file));
}

TEST(Check, IsNotProvedIfABoundIsReached) {
  for (const char* bound : {"--executions 10", "--events 20", "--seconds 0.0001"}) {
    const Ended ended = run(std::string{"protocol --records 8 --polls 8 "} + bound);
    EXPECT_EQ(ended.exit_code, 3) << bound;
    EXPECT_THAT(ended.out, HasSubstr("Not shown: bound reached: more than")) << bound;
  }
}

TEST(Check, ReadsLitmusTestsWithinItsBounds) {
  std::string ops;
  for (int i = 0; i < 300; ++i) ops += R"(["R", "a", "x", "rlx"],)";
  const std::string file = temporary(
      "bounded.json",
      R"([{"name": "X", "race": false, "locations": {"x": "atomic"}, "observed": [], "ops": [
          [["W", "x", 1, "rlx"]], [)" +
          ops + R"(["F", "sc"]]], "allowed": [{}]}])");
  EXPECT_EQ(run("--litmus " + file).exit_code, 0);
  for (const char* bound : {"--executions 10", "--events 20", "--memory 1"}) {
    const Ended ended = run("--litmus " + file + " " + bound);
    EXPECT_EQ(ended.exit_code, 3) << bound;
    EXPECT_THAT(ended.out, HasSubstr("X: not shown: more than")) << bound;
  }
}

TEST(Check, AnInterruptEndsItWithWhatIsKnown) {
  const Ended ended = run("protocol --records 30 --polls 30", "timeout --preserve-status -s INT 1");
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("form A"), HasSubstr("Not shown: interrupted")));
}

TEST(Check, ComparesMergingWithNotMerging) {
  const Ended ended = run("ring --records 4 --compare --json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  for (const auto& each : nlohmann::json::parse(ended.out)["cases"]) {
    EXPECT_GT(each["merged"], 0);
    EXPECT_TRUE(each["differences"].empty());
  }
}

TEST(Check, ListsEveryProgramAndMutant) {
  EXPECT_THAT(run("--list").out, AllOf(HasSubstr("ring/nested"), HasSubstr("wrong/peterson"),
                                       HasSubstr("aya_until_2026"), HasSubstr("in form B")));
  EXPECT_GT(nlohmann::json::parse(run("--list --json").out)["programs"].size(), 20u);
}

TEST(Check, WhatCannotBeCheckedIsNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"none", "no program is called 'none'; there are ring, ring/fold"},
      {"--mutant none", "ring has no mutant called 'none'; there are no_acquire_fence"},
      {"wrong/seqlock_reader --mutant x", "there are none"},
      {"--records 0", "--records: '0' is not accepted: give a number from 1 to 64"},
      {"--lengths 2,x", "--lengths: 'x' is not accepted"},
      {"--lengths ,", "--lengths: '' is not accepted"},
      {"--lengths 3,", "--lengths: '' is not accepted"},
      {"--lengths 2,9", "--lengths: '9' is not accepted: give 2 to 7"},
      {"--form C", "--form: 'C' is not accepted: give one of A, B"},
      {"correct/dekker --records 2", "correct/dekker has no size"},
      {"correct/dekker --form A", "one form only"},
      {"--seconds 0", "--seconds: '0' is not accepted: give a number of seconds"},
      {"--seconds nan", "--seconds: 'nan' is not accepted"},
      {"--executions 0", "--executions: '0' is not accepted: give a number from 1 to"},
      {"--events 5001", "--events: '5001' is not accepted: give a number from 1 to 5000"},
      {"ring --list", "program: cannot be given together with --list"},
      {"--fences --mutant no_wmb", "--mutant: cannot be given together with --fences"},
      {"--fences --json", "--json: cannot be given together with --fences"},
      {"--list --seconds 1", "--seconds: cannot be given together with --list"},
      {"--litmus /nowhere", "'/nowhere' cannot be read: No such file"},
      {"--litmus x --merge", "--merge: cannot be given together with --litmus"},
      {"--litmus " + temporary("bad.json", "[{\"name\": \"X\"}]"),
       "bad.json': program X: field 'race' is missing"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
  }
}

TEST(Check, OptionsMayStandBeforeOrAfterTheProgram) {
  for (const char* line : {"--lengths 3,2,4 ring", "ring --lengths 3,2,4", "--lengths=3,2,4 ring",
                           "--json --lengths 3,2,4 ring", "--form A ring --lengths 3,2,4"}) {
    EXPECT_EQ(run(std::string{line} + " --records 3").exit_code, 0) << line;
  }
}

TEST(Check, NothingIsShownByNoProgramAtAll) {
  const Ended ended = run("--litmus " + temporary("none.json", "[]"));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, HasSubstr("none.json' has no program"));
}

TEST(Check, APictureThatIsNotDrawnIsSaidAndLeavesTheFileAsItIs) {
  const std::string kept = temporary("old.svg", "another run's");
  const Ended ended = run("correct/dekker --svg " + kept);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, HasSubstr("nothing is violated, so nothing is drawn"));
  EXPECT_EQ(contents(kept), "another run's");
}

TEST(Check, APictureMayGoToStdout) {
  const Ended drawn = run("wrong/message_passing_load --svg - 2>/dev/null");
  EXPECT_EQ(drawn.exit_code, 1);
  EXPECT_TRUE(drawn.out.starts_with("<?xml")) << drawn.out;
  EXPECT_TRUE(drawn.out.ends_with("</svg>\n")) << drawn.out;
}

TEST(Check, PrintsEachDifferenceOfALitmusFile) {
  const std::string program =
      R"({"name": "X", "race": false, "locations": {"x": "atomic"}, "observed": ["1:a"],
          "ops": [[["W", "x", 1, "rlx"]], [["R", "a", "x", "rlx"]]], "genmc_executions": 2,
          "allowed": [)";
  const std::string good = temporary("good.json", "[" + program + R"({"1:a": 0}, {"1:a": 1}]}])");
  const std::string wrong = temporary("wrong.json", "[" + program + R"({"1:a": 0}, {"1:a": 2}]}])");
  const Ended agrees = run("--litmus " + good);
  EXPECT_EQ(agrees.exit_code, 0);
  EXPECT_THAT(agrees.out, HasSubstr("1 program, 2 executions; 0 differences"));
  const Ended differs = run("--litmus " + wrong);
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_THAT(differs.out, AllOf(HasSubstr(R"(X: not found: {"1:a":2})"),
                                 HasSubstr(R"(X: not allowed: {"1:a":1})")));
}

}  // namespace
}  // namespace perfring::cli
