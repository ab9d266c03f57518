// Tests the conclusions of `perfring check` from explorations that end in rare ways.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/check/check.h"
#include "harness/cli/check/check_litmus.h"
#include "harness/cli/cli_testing.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/hardware/litmus_machine.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"
#include "harness/program/child_process.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Explores a program with one execution: blocked before its check, or complete.
model::Result explored(bool is_blocked) {
  model::Program program;
  const model::Var x = program.var("x");
  program.threads.emplace_back([=] {
    model::assume(x.load(std::memory_order_relaxed) == (is_blocked ? 1 : 0));
    model::check(!is_blocked, "an execution that is blocked");
  });
  return model::explore(program);
}

CheckPlan plan_of_ring() {
  CheckPlan plan;
  plan.entry = model::find_entry("ring");
  return plan;
}

CheckedCase case_of(model::Result result) {
  return {.label = "a case", .result = std::move(result), .differences = {}};
}

TEST(CheckedCaseTest, WithoutAnExecutionItIsNotShown) {
  EXPECT_EQ(case_of(explored(false)).verdict(), Verdict::Holds);
  EXPECT_EQ(case_of(explored(true)).verdict(), Verdict::NotShown);
  const std::string table = check_table(plan_of_ring(), {case_of(explored(true))});
  EXPECT_THAT(table, HasSubstr("not shown\nNot shown: no execution is complete"));
}

TEST(CheckConclusionTest, EachCaseNeedsAnExecutionOfItsOwn) {
  const CheckedCase with = case_of(explored(false)), without = case_of(explored(true));
  EXPECT_EQ(conclusion_of(plan_of_ring(), {with, with}).verdict, Verdict::Holds);
  const std::vector<std::vector<CheckedCase>> not_shown{
      {}, {without}, {with, without}, {without, with}};
  for (const std::vector<CheckedCase>& cases : not_shown) {
    const Conclusion conclusion = conclusion_of(plan_of_ring(), cases);
    EXPECT_EQ(conclusion.verdict, Verdict::NotShown);
    EXPECT_EQ(conclusion.not_shown, "no execution is complete");
  }
}

// A violation may be found before any execution is complete.
TEST(CheckConclusionTest, AViolationNeedsNoExecution) {
  model::Result violated;
  violated.violation.emplace();
  const Conclusion conclusion =
      conclusion_of(plan_of_ring(), {case_of(explored(false)), case_of(std::move(violated))});
  EXPECT_EQ(conclusion.verdict, Verdict::Violated);
}

TEST(ComparedCaseTest, ABoundThatOnlyMergingReachedIsNoProof) {
  model::Comparison comparison{explored(false), explored(false), {}};
  EXPECT_EQ(compared_case("", comparison).verdict(), Verdict::Holds);
  comparison.merged.bound = "more than 1 s";
  EXPECT_EQ(compared_case("", comparison).verdict(), Verdict::NotShown);
  EXPECT_EQ(compared_case("", comparison).result.bound, "more than 1 s");
  comparison.each.bound = "more than 2 s";
  EXPECT_EQ(compared_case("", comparison).result.bound, "more than 2 s");
}

TEST(ComparedCaseTest, WhereMergingLeftNoExecutionNothingIsProved) {
  const model::Comparison comparison{explored(false), explored(true), {}};
  EXPECT_EQ(compared_case("", comparison).verdict(), Verdict::NotShown);
}

model::LitmusVerdict verdict_of_one_execution() {
  model::LitmusVerdict verdict;
  verdict.outcomes = {{{"0:a", 1}}};
  verdict.result = explored(false);
  verdict.compared = true;
  return verdict;
}

CheckedLitmus::Result rc11_result(const model::LitmusVerdict& verdict) {
  return result_of({}, model::MemoryModel::Rc11, verdict);
}

// As if the search on a machine differed in a program, and then a signal arrived.
TEST(LitmusResultTest, ADifferenceOutweighsABound) {
  model::LitmusVerdict verdict = verdict_of_one_execution();
  EXPECT_EQ(rc11_result(verdict), CheckedLitmus::Result::Agrees);
  verdict.result.bound = "interrupted";
  EXPECT_EQ(rc11_result(verdict), CheckedLitmus::Result::NotShown);
  verdict.differences = {"the search finds another outcome"};
  EXPECT_EQ(rc11_result(verdict), CheckedLitmus::Result::Differs);
}

TEST(LitmusResultTest, WithoutAnExecutionNothingAgrees) {
  model::LitmusVerdict verdict = verdict_of_one_execution();
  verdict.result = explored(true);
  EXPECT_EQ(rc11_result(verdict), CheckedLitmus::Result::NotShown);
}

// The executions of another program do not count for a blocked one.
TEST(LitmusResultTest, ABlockedProgramBesideAnotherIsNotShown) {
  const auto program = [](const std::string& name, int wanted, const std::string& allowed) {
    return R"({"name": ")" + name +
           R"(", "race": false, "locations": {"x": ""}, "observed": ["0:a"],
               "ops": [[["R", "a", "x", "rlx"], ["ASSUME", "a", )" +
           std::to_string(wanted) + R"(]]], "allowed": )" + allowed + "}";
  };
  const std::string good = program("GOOD", 0, R"([{"0:a": 0}])"), blocked = program("B", 1, "[]");
  EXPECT_EQ(run_check("--litmus " + temporary("good.json", "[" + good + "]")).exit_code, 0);
  for (const std::string& both : {good + "," + blocked, blocked + "," + good}) {
    const ProcessResult ended = run_check("--litmus " + temporary("both.json", "[" + both + "]"));
    EXPECT_EQ(ended.exit_code, 3);
    EXPECT_THAT(ended.out, AllOf(HasSubstr("GOOD: agrees: 1 outcome"), HasSubstr("B: not shown"),
                                 HasSubstr("Not shown: no execution is complete")));
  }
}

std::vector<std::string> differences(const std::set<model::LitmusOutcome>& found,
                                     std::uint64_t executions, bool has_branch) {
  model::LitmusVerdict verdict = verdict_of_one_execution();
  verdict.outcomes.insert({{"0:a", 2}});
  model::MachineAnswer answer;
  answer.outcomes = found;
  answer.result.executions = executions;
  verdict.result.executions = 2;
  compare_search(answer, has_branch, verdict);
  return verdict.differences;
}

TEST(LitmusSearchTest, EqualCountsOfOtherOutcomesDiffer) {
  const model::LitmusOutcome one{{"0:a", 1}}, two{{"0:a", 2}}, three{{"0:a", 3}};
  EXPECT_THAT(differences({one, two}, 2, false), SizeIs(0));
  EXPECT_THAT(differences({one, three}, 2, false), SizeIs(1));
  EXPECT_THAT(differences({one, two}, 3, false), SizeIs(1));
  EXPECT_THAT(differences({one}, 2, false), SizeIs(1));
}

TEST(LitmusSearchTest, WithBranchSearchMayOnlyFindLess) {
  const model::LitmusOutcome one{{"0:a", 1}}, two{{"0:a", 2}}, three{{"0:a", 3}};
  EXPECT_THAT(differences({one}, 1, true), SizeIs(0));
  EXPECT_THAT(differences({three}, 1, true), SizeIs(1));
  EXPECT_THAT(differences({one, two, three}, 3, true), SizeIs(1));
}

}  // namespace
}  // namespace perfring::cli
