// Runs litmus tests under each memory model, and compares them with the outcomes that herd7 and
// GenMC allow. merging.json has a program for each item of a state's key (engine/state_key.h): if
// the item is left out, the program loses an outcome or a race. (A thread's step and the number of
// stores kept follow from the other items.) The expected outcomes come from the reference, which
// has no states.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/reference/enumerate.h"

namespace perfring::model {
namespace {

std::vector<Litmus> file(const char* name) {
  std::ifstream stream{name};
  return read_litmus(stream);
}

std::vector<Litmus> programs(const std::string& text) {
  std::istringstream stream{text};
  return read_litmus(stream);
}

TEST(RunLitmusTest, EachMemoryModelAllowsTheOutcomesOfTheFiles) {
  std::vector<Litmus> all = file("harness/model/litmus/hardware.json");
  for (Litmus& litmus : file("harness/model/litmus/litmus.json")) all.push_back(std::move(litmus));
  std::map<MemoryModel, std::size_t> compared, counted;
  for (const Litmus& litmus : all) {
    for (const auto& [memory_model, name] : kMemoryModels) {
      const LitmusVerdict verdict = run_litmus(litmus, memory_model);
      EXPECT_EQ(verdict.differences, std::vector<std::string>{}) << litmus.text.name << " " << name;
      if (verdict.compared) ++compared[memory_model];
      if (verdict.counted) ++counted[memory_model];
    }
  }
  EXPECT_EQ(compared, (std::map<MemoryModel, std::size_t>{{MemoryModel::Rc11, 64},
                                                          {MemoryModel::AArch64, 88},
                                                          {MemoryModel::RiscV, 88},
                                                          {MemoryModel::Lkmm, 81}}));
  EXPECT_EQ(counted[MemoryModel::AArch64], 88u);
  EXPECT_EQ(counted[MemoryModel::RiscV], 88u);
}

// Load buffering, with or without the dependency.
std::string load_buffering(const std::string& ctrl, const std::string& expected) {
  return R"([{"name": "LB", "locations": {"x": "atomic", "y": "atomic"}, "observed": ["0:a", "1:b"],
              "ops": [[["R", "a", "x", "rlx"], )" +
         ctrl + R"(["W", "y", 1, "rlx"]],
                      [["R", "b", "y", "rlx"], ["WR", "x", "b"]]], )" +
         expected + "}]";
}
constexpr const char* kControl = R"(["CTRL", "a"], )";
constexpr const char* kNoBuffering = R"([{"0:a": 0, "1:b": 0}, {"0:a": 0, "1:b": 1}])";
constexpr const char* kBuffering =
    R"([{"0:a": 0, "1:b": 0}, {"0:a": 0, "1:b": 1}, {"0:a": 1, "1:b": 1}])";

TEST(RunLitmusTest, OnlyTheChosenModelIsCompared) {
  const Litmus litmus =
      programs(load_buffering("", std::string{R"("allowed_aarch64": )"} + kBuffering +
                                      R"(, "allowed_riscv": )" + kNoBuffering))[0];
  EXPECT_TRUE(run_litmus(litmus, MemoryModel::AArch64).compared);
  EXPECT_TRUE(run_litmus(litmus, MemoryModel::AArch64).differences.empty());
  EXPECT_EQ(run_litmus(litmus, MemoryModel::RiscV).differences,
            std::vector<std::string>{R"(not allowed: {"0:a":1,"1:b":1})"});
  const LitmusVerdict rc11 = run_litmus(litmus, MemoryModel::Rc11);
  EXPECT_FALSE(rc11.compared);
  EXPECT_EQ(rc11.outcomes.size(), 2u);
}

TEST(RunLitmusTest, AControlDependencyEndsLoadBuffering) {
  const Litmus litmus =
      programs(load_buffering(kControl, std::string{R"("allowed_lkmm": )"} + kNoBuffering +
                                            R"(, "executions_lkmm": 4)"))[0];
  EXPECT_EQ(run_litmus(litmus, MemoryModel::Lkmm).differences,
            std::vector<std::string>{"3 executions, not 4"});
  EXPECT_EQ(run_litmus(litmus, MemoryModel::AArch64).outcomes.size(), 2u);
}

// Numbers of executions are compared even if the file has no outcomes.
TEST(RunLitmusTest, ExecutionsAloneAreCompared) {
  const Litmus litmus = programs(load_buffering("", R"("executions_riscv": 7, "race": false)"))[0];
  EXPECT_EQ(run_litmus(litmus, MemoryModel::RiscV).differences,
            std::vector<std::string>{"4 executions, not 7"});
}

TEST(RunLitmusTest, AnOperationThatTheModelDoesNotKnowIsRefused) {
  const auto refused = [](const std::string& op, MemoryModel memory_model) {
    return run_litmus(
               programs(R"([{"name": "X", "race": false, "allowed": [{}], "locations": {"x": 0},
                             "observed": [], "ops": [[)" +
                        op + "]]}]")[0],
               memory_model)
        .refused;
  };
  for (const char* op :
       {R"(["W", "x", 1, "na"])", R"(["R", "a", "x", "na"])", R"(["FA", "a", "x", 1, "rlx"])",
        R"(["XC", "a", "x", 1, "ar"])", R"(["CX", "a", "x", 0, 1, "rel", "rlx"])"}) {
    for (const auto memory_model : {MemoryModel::AArch64, MemoryModel::RiscV, MemoryModel::Lkmm}) {
      EXPECT_EQ(refused(op, memory_model), "only RC11 has plain accesses and updates");
    }
    EXPECT_EQ(refused(op, MemoryModel::Rc11), "");
  }
  for (const char* fence : {R"(["F", "rel"])", R"(["F", "ar"])"}) {
    EXPECT_NE(refused(fence, MemoryModel::Lkmm), "");
    EXPECT_EQ(refused(fence, MemoryModel::AArch64), "");
  }
}

TEST(RunLitmusTest, NullMarksAProgramThatTheModelCannotExpress) {
  const auto read = [](const std::string& expected) {
    return programs(load_buffering("", expected))[0];
  };
  EXPECT_TRUE(read(R"("allowed_lkmm": null)").not_expressible.contains(MemoryModel::Lkmm));
  const Litmus other =
      read(std::string{R"("allowed_lkmm": null, "allowed_lkmm_rmb": )"} + kBuffering);
  EXPECT_FALSE(other.not_expressible.contains(MemoryModel::Lkmm));
  const LitmusVerdict verdict = run_litmus(other, MemoryModel::Lkmm);
  EXPECT_TRUE(verdict.compared);
  EXPECT_EQ(verdict.differences, std::vector<std::string>{});
}

TEST(RunLitmusTest, AReachedBoundIsNoAnswer) {
  const Litmus litmus =
      programs(load_buffering("", std::string{R"("allowed_aarch64": )"} + kNoBuffering))[0];
  const auto bound = [&](const Bounds& bounds) {
    ExploreOptions options;
    options.bounds = bounds;
    const LitmusVerdict verdict = run_litmus(litmus, MemoryModel::AArch64, options);
    EXPECT_FALSE(verdict.compared);
    return verdict.result.bound;
  };
  EXPECT_EQ(bound({.executions = 2}), "more than 2 executions");
  EXPECT_EQ(bound({.executions = 3}), "more than 3 executions");
  EXPECT_EQ(bound({.seconds = 1e-9}), "more than 1e-09 s");
  ExploreOptions options;
  options.bounds.executions = 4;  // the exact number
  EXPECT_EQ(run_litmus(litmus, MemoryModel::AArch64, options).result.bound, "");
  std::atomic<bool> stop{true};
  options.stop = &stop;
  EXPECT_EQ(run_litmus(litmus, MemoryModel::AArch64, options).result.bound, "interrupted");
}

// Holds for any speed: the second call is at least two seconds after the beginning.
TEST(RunLitmusTest, AnEnumerationShowsItsProgressOnceASecond) {
  std::string reads = R"(["W", "x", 1, "rlx"])";
  for (int i = 0; i < 9; ++i) reads += R"(, ["R", "a", "x", "rlx"])";
  const Litmus litmus =
      programs(R"([{"name": "X", "locations": {"x": 0}, "observed": ["x"], "race": false,
                    "allowed_riscv": [], "ops": [[)" +
               reads + "], [" + reads + "], [" + reads + "]]}]")[0];
  std::atomic<bool> stop{false};
  int shown = 0;
  ExploreOptions options;
  options.stop = &stop;
  options.on_progress = [&](const Result&) { stop = ++shown == 2; };
  const Result result = run_litmus(litmus, MemoryModel::RiscV, options).result;
  EXPECT_EQ(result.bound, "interrupted");
  EXPECT_GE(result.seconds, 2);
}

TEST(RunLitmusTest, AReachedBoundIsNoAnswerOfRc11Either) {
  const Litmus litmus =
      programs(load_buffering("", std::string{R"("race": false, "allowed": )"} + kNoBuffering))[0];
  ExploreOptions options;
  options.bounds.executions = 1;
  const LitmusVerdict verdict = run_litmus(litmus, MemoryModel::Rc11, options);
  EXPECT_EQ(verdict.result.bound, "more than 1 execution");
  EXPECT_FALSE(verdict.compared);
  EXPECT_TRUE(verdict.differences.empty());
}

// A file for hardware may leave out the field "race".
TEST(RunLitmusTest, RaceIsDifferenceIfFileOmitsRaceField) {
  const Litmus litmus = programs(R"([{"name": "X", "locations": {"x": 0}, "observed": ["x"],
      "ops": [[["W", "x", 1, "na"]], [["W", "x", 1, "na"]]], "allowed_rc11": [{"x": 1}]}])")[0];
  EXPECT_EQ(run_litmus(litmus, MemoryModel::Rc11).differences,
            std::vector<std::string>{"an unexpected race"});
}

TEST(RunLitmusTest, ARegisterThatIsReadIntoTwiceHasItsLastValue) {
  const Litmus litmus = programs(R"([{"name": "X", "locations": {"x": 0, "y": 0},
      "observed": ["0:a"], "ops": [[["W", "x", 1, "rlx"], ["W", "y", 2, "rlx"],
      ["R", "a", "x", "rlx"], ["R", "a", "y", "rlx"]]], "race": false, "allowed": [{"0:a": 2}]}])")
      [0];
  for (const auto& [memory_model, name] : kMemoryModels) {
    const std::set<LitmusOutcome> last{{{"0:a", 2}}};
    EXPECT_EQ(run_litmus(litmus, memory_model).outcomes, last) << name;
  }
}

// A count or an outcome may be given in either of a model's two fields, but not differently.
TEST(RunLitmusTest, TwoExpectationsOfOneMemoryModelMustAgree) {
  const std::string allowed = std::string{R"("race": false, "allowed": )"} + kNoBuffering;
  const auto refused = [&](const std::string& more) -> std::string {
    try {
      programs(load_buffering("", allowed + more));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused(std::string{R"(, "allowed_rc11": )"} + kBuffering),
              ::testing::HasSubstr("field 'allowed_rc11' contradicts the field before it"));
  EXPECT_THAT(refused(R"(, "genmc_executions": 3, "executions_rc11": 4)"),
              ::testing::HasSubstr("field 'executions_rc11' contradicts the field before it"));
  EXPECT_EQ(refused(std::string{R"(, "allowed_rc11": )"} + kNoBuffering), "");
}

TEST(RunLitmusTest, ACountIsComparedWhicheverFieldHasTheOutcomes) {
  for (const char* count : {"genmc_executions", "executions_rc11"}) {
    for (const char* outcomes : {"allowed", "allowed_rc11"}) {
      const std::string given =
          fmt::format(R"("race": false, "{}": {}, "{}": )", outcomes, kNoBuffering, count);
      const auto differences = [&](const char* executions) {
        const LitmusVerdict verdict =
            run_litmus(programs(load_buffering("", given + executions))[0], MemoryModel::Rc11);
        EXPECT_TRUE(verdict.counted) << given;
        return verdict.differences.size();
      };
      EXPECT_EQ(differences("3"), 0u) << given;
      EXPECT_EQ(differences("4"), 1u) << given;
    }
  }
}

// Cases that are rare in the random programs of proptests.
TEST(RunLitmusTest, TheEngineAgreesWithTheAxiomsOnRarePrograms) {
  for (const char* ops :
       {// A store follows a store that another thread has read, and passed on.
        R"([["W", "x", 1, "rlx"]], [["R", "a", "x", "rlx"], ["W", "y", 1, "rel"]],
              [["R", "b", "y", "acq"], ["W", "x", 2, "rlx"]])",
        // A release sequence continues through the thread's own update.
        R"([["W", "x", 1, "rlx"], ["W", "y", 1, "rel"], ["FA", "a", "y", 1, "rlx"]],
              [["R", "b", "y", "acq"], ["R", "c", "x", "rlx"]], [])",
        // An update that acquires and releases races with a plain store.
        R"([["W", "x", 1, "na"]], [["XC", "a", "x", 2, "ar"]], [])",
        // Both read 0, which the fences forbid: there is no such execution, complete or blocked.
        R"([["W", "x", 1, "rlx"], ["F", "sc"], ["R", "a", "y", "rlx"], ["ASSUME", "a", 1]],
              [["W", "y", 1, "rlx"], ["F", "sc"], ["R", "b", "x", "rlx"]], [])"}) {
    const Litmus litmus = programs(R"([{"name": "X", "locations": {"x": 0, "y": 0}, "race": false,
        "observed": ["x", "y", "0:a", "1:a", "1:b", "1:c", "2:b"], "allowed": [], "ops": [)" +
                                   std::string{ops} + "]}]")[0];
    const LitmusVerdict verdict = run_litmus(litmus, MemoryModel::Rc11);
    const reference::Enumeration answer = reference::enumerate(litmus.text, MemoryModel::Rc11);
    EXPECT_EQ(verdict.result.violation.has_value(), answer.race) << ops;
    if (answer.race) continue;
    EXPECT_EQ(verdict.outcomes, answer.outcomes) << ops;
    EXPECT_EQ(verdict.result.executions, answer.executions) << ops;
    EXPECT_EQ(verdict.result.blocked, answer.blocked) << ops;
  }
}

std::vector<Litmus> programs() {
  std::ifstream file{"harness/model/litmus/merging.json"};
  return read_litmus(file);
}

TEST(FutureKeyTest, StatesThatDifferInOneThingAreNotMerged) {
  std::set<std::string> names;
  for (const Litmus& litmus : programs()) {
    SCOPED_TRACE(litmus.text.name);
    names.insert(litmus.text.name);
    for (const bool merge : {true, false}) {
      ExploreOptions options;
      options.merge = merge;
      const LitmusVerdict verdict = run_litmus(litmus, options);
      EXPECT_TRUE(verdict.compared);
      for (const std::string& difference : verdict.differences) ADD_FAILURE() << difference;
    }
  }
  EXPECT_EQ(names.size(), 18u);
}

TEST(FutureKeyTest, TheFileAgreesWithTheAxioms) {
  EXPECT_EQ(programs().size(), 18u);
  for (const Litmus& litmus : programs()) {
    SCOPED_TRACE(litmus.text.name);
    const reference::Enumeration answer = reference::enumerate(litmus.text, MemoryModel::Rc11);
    EXPECT_EQ(answer.race, litmus.race);
    if (!litmus.race) {
      EXPECT_EQ(answer.outcomes, litmus.expected.at(MemoryModel::Rc11).allowed);
    }
  }
}

}  // namespace
}  // namespace perfring::model
