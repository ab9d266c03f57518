// Tests `perfring check --svg`, which draws a violation with Graphviz.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <regex>
#include <set>
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
using ::testing::Not;

TEST(CheckSvgTest, AViolationIsDrawn) {
  const std::string file = temporary("drawn.svg");
  EXPECT_EQ(run_check("wrong/message_passing_load --svg " + file).exit_code, 1);
  EXPECT_THAT(contents(file), AllOf(HasSubstr("<svg"), HasSubstr("sender"),
                                    HasSubstr(">program wrong/message_passing_load<"),
                                    HasSubstr(">data race: #1 by sender, #4 by receiver<")));
  EXPECT_EQ(run_check("ring/nested --fault publishes_nested --svg " + file).exit_code, 1);
  EXPECT_THAT(contents(file),
              HasSubstr(">program ring/nested, fault publishes_nested, form A, step 7<"));
}

// Returns the titles of the red boxes.
std::set<std::string> red_boxes(const std::string& svg) {
  const std::regex box{R"x(class="node">\n<title>(\w+)</title>\n<polygon [^>]*stroke="red")x"};
  std::set<std::string> titles;
  for (std::sregex_iterator each{svg.begin(), svg.end(), box}, end; each != end; ++each) {
    titles.insert((*each)[1]);
  }
  return titles;
}

// The frame around a thread's events: the thread's number, and the left and right edges.
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

// Checks Graphviz's drawing against the output of `check --json` for the same violation.
void expect_drawn(const Json& checked, const std::string& svg) {
  const auto& violation = checked["violation"];
  std::string subject = "program " + checked["program"].get<std::string>();
  if (checked.contains("fault")) subject += ", fault " + checked["fault"].get<std::string>();
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
  std::set<int> acted;  // only one thread, if the kernel refuses its first record
  for (const auto& event : violation["events"]) acted.insert(event["thread"].get<int>());
  const std::vector<Frame> threads = frames(svg);
  EXPECT_EQ(threads.size(), acted.size());
  for (std::size_t i = 1; i < threads.size(); ++i) {
    EXPECT_GT(threads[i].thread, threads[i - 1].thread);
    EXPECT_GT(threads[i].left, threads[i - 1].right);
  }
}

// Whether a program or a fault, as listed by --list, is violated in any form or on machines.
bool violated(const Json& listed) {
  return listed["violated_in_a"] == true || listed["violated_in_b"] == true ||
         listed.value("violated_on_machines", false);
}

// Draws each fault only in the first program that it violates. //harness/model:model_catalogue_test
// runs all faults in every program, including faults that violate nothing.
TEST(CheckSvgTest, EveryViolationOfTheCatalogueIsDrawn) {
  const std::string file = temporary("each.svg");
  std::set<std::string> drawn;
  const auto list = parsed(run_check("--list --json").out);
  for (const auto& program : list["programs"]) {
    const std::string name = program["name"].get<std::string>();
    std::vector<std::pair<std::string, std::string>> runs;
    if (violated(program)) runs.emplace_back(name, name);
    for (const auto& fault : program["faults"]) {
      const std::string fault_name = fault["name"].get<std::string>();
      if (violated(fault) && !drawn.contains(fault_name)) {
        runs.emplace_back(fault_name, name + " --fault " + fault_name);
      }
    }
    for (const auto& [what, arguments] : runs) {
      SCOPED_TRACE(arguments);
      const auto checked =
          parsed(run_check(arguments + " --json --svg " + file + " 2>/dev/null").out);
      if (!checked.contains("violation")) continue;
      expect_drawn(checked, contents(file));
      drawn.insert(what);
    }
  }
  EXPECT_GE(drawn.size(), 60u);
}

TEST(CheckSvgTest, FailedDrawingTouchesNoFile) {
  const std::string file = temporary("missing.svg");
  const ProcessResult ended =
      run_check("wrong/message_passing_load --svg " + file, "PATH=/nowhere");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("dot is not installed"), HasSubstr("graphviz")));
  EXPECT_FALSE(std::filesystem::exists(file));
  const std::string kept = temporary("kept.svg", "an earlier one");
  EXPECT_EQ(run_check("wrong/message_passing_load --svg " + kept, "PATH=/nowhere").exit_code, 2);
  EXPECT_EQ(contents(kept), "an earlier one");
  const ProcessResult unwritable = run_check("wrong/message_passing_load --svg /nowhere/x.svg");
  EXPECT_EQ(unwritable.exit_code, 2);
  EXPECT_THAT(unwritable.out, HasSubstr("'/nowhere/x.svg' cannot be written: No such file"));
}

// Writes through a link: if the program removed the file, it would not remove the device.
TEST(CheckSvgTest, ADrawingThatDoesNotFitIsAnError) {
  const std::string file = temporary("full.svg");
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/full", file);
  const ProcessResult ended = run_check("wrong/message_passing_load --svg " + file);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, HasSubstr("full.svg' cannot be written: No space left"));
  EXPECT_TRUE(std::filesystem::is_symlink(file));
}

TEST(CheckSvgTest, WithoutAViolationTheFileStaysAsItIs) {
  const std::string kept = temporary("old.svg", "another run's");
  const ProcessResult ended = run_check("correct/dekker --svg " + kept);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, HasSubstr("nothing is violated, so nothing is drawn"));
  EXPECT_EQ(contents(kept), "another run's");
}

TEST(CheckSvgTest, ADrawingMayGoToStdout) {
  const ProcessResult drawn = run_check("wrong/message_passing_load --svg - 2>/dev/null");
  EXPECT_EQ(drawn.exit_code, 1);
  EXPECT_TRUE(drawn.out.starts_with("<?xml")) << drawn.out;
  EXPECT_TRUE(drawn.out.ends_with("</svg>\n")) << drawn.out;
}

}  // namespace
}  // namespace perfring::cli
