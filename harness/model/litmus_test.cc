// 64 programs whose outcomes, races and numbers of executions other checkers agree on.

#include "harness/model/litmus.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace perfring::model {
namespace {

TEST(Litmus, EveryProgramHasItsOutcomesRacesAndExecutions) {
  std::ifstream file{"harness/model/litmus.json"};
  const std::vector<Litmus> all = read_litmus(file);
  EXPECT_EQ(all.size(), 64u);
  std::size_t counted = 0;
  for (const Litmus& litmus : all) {
    const LitmusVerdict verdict = run_litmus(litmus);
    for (const std::string& difference : verdict.differences) {
      ADD_FAILURE() << litmus.program.name << ": " << difference;
    }
    if (litmus.executions) ++counted;
  }
  EXPECT_GE(counted, 60u);
}

std::vector<std::string> differences(const std::string& text) {
  std::istringstream file{text};
  return run_litmus(read_litmus(file).at(0)).differences;
}

constexpr const char* kStoreBuffering =
    R"([{"name": "SB", "locations": {"x": "atomic", "y": "atomic"}, "observed": ["0:a", "1:b"],
         "ops": [[["W", "x", 1, "rlx"], ["R", "a", "y", "rlx"]],
                 [["W", "y", 1, "rlx"], ["R", "b", "x", "rlx"]]], )";

TEST(Litmus, WhatIsExpectedWronglyIsADifference) {
  const std::string program = kStoreBuffering;
  const std::string all =
      R"({"0:a": 0, "1:b": 0}, {"0:a": 0, "1:b": 1}, {"0:a": 1, "1:b": 0}, {"0:a": 1, "1:b": 1})";
  const auto with = [&](const std::string& rest) { return differences(program + rest + "}]"); };
  EXPECT_TRUE(with(R"("race": false, "allowed": [)" + all + R"(], "genmc_executions": 4)").empty());
  EXPECT_EQ(with(R"("race": false, "allowed": [)" + all + R"(], "genmc_executions": 5)"),
            std::vector<std::string>{"4 executions, not 5"});
  EXPECT_EQ(with(R"("race": true, "allowed": null)"), std::vector<std::string>{"no race found"});
  EXPECT_EQ(with(R"("race": false, "allowed": [{"0:a": 1, "1:b": 2}])").size(), 5u);
}

TEST(Litmus, AnErrorNamesTheProgram) {
  const auto error = [](const std::string& text) -> std::string {
    std::istringstream file{text};
    try {
      read_litmus(file);
    } catch (const UsageError& usage) {
      return usage.what();
    }
    return "";
  };
  EXPECT_NE(error("{").find("not a file of litmus tests"), std::string::npos);
  const std::string head = R"([{"name": "X", "race": true, "observed": [], "locations": {"x": 0},)";
  EXPECT_NE(error(head + R"("ops": [[["Q", "x"]]]}])").find("program X: unknown operation 'Q'"),
            std::string::npos);
  EXPECT_NE(error(head + R"("ops": [[["W", "y", 1, "rlx"]]]}])").find("unknown location \"y\""),
            std::string::npos);
  EXPECT_NE(error(head + R"("ops": [[["W", "x", 1, "odd"]]]}])").find("unknown order 'odd'"),
            std::string::npos);
}

TEST(Litmus, ASequentiallyConsistentAccessIsRefused) {
  std::istringstream file{
      R"([{"name": "X", "race": false, "observed": [], "allowed": [], "locations": {"x": "atomic"},
           "ops": [[["W", "x", 1, "sc"]]]}])"};
  const std::vector<Litmus> all = read_litmus(file);
  EXPECT_THROW(run_litmus(all.at(0)), UsageError);
}

}  // namespace
}  // namespace perfring::model
