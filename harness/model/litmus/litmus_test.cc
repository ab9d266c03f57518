// Tests the engine with programs on which other checkers agree: on their outcomes and races, and on
// most execution counts.

#include "harness/model/litmus/litmus.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "harness/model/engine/usage_error.h"
#include "harness/program/json.h"
#include "harness/program/read_file.h"

namespace perfring::model {
namespace {

TEST(EngineLitmusTest, ProgramsMatchTheirExpectations) {
  std::ifstream file{"harness/model/litmus/litmus.json"};
  const std::vector<Litmus> all = read_litmus(file);
  EXPECT_EQ(all.size(), 64u);
  std::size_t counted = 0;
  for (const Litmus& litmus : all) {
    const LitmusVerdict verdict = run_litmus(litmus);
    EXPECT_TRUE(verdict.compared) << litmus.program.name;
    for (const std::string& difference : verdict.differences) {
      ADD_FAILURE() << litmus.program.name << ": " << difference;
    }
    if (verdict.counted) ++counted;
  }
  const std::string readme = read_file("harness/model/litmus/README.md").value();
  const std::string sentence = "`litmus.json` " + std::to_string(all.size()) +
                               " programs with the outcomes and races, " + std::to_string(counted) +
                               " of them with the execution counts";
  EXPECT_NE(readme.find(sentence), std::string::npos) << "README.md does not say: " << sentence;
}

std::vector<std::string> differences(const std::string& text) {
  std::istringstream file{text};
  const LitmusVerdict verdict = run_litmus(read_litmus(file).at(0));
  EXPECT_TRUE(verdict.compared);
  return verdict.differences;
}

constexpr const char* kStoreBuffering =
    R"([{"name": "SB", "locations": {"x": "atomic", "y": "atomic"}, "observed": ["0:a", "1:b"],
         "ops": [[["W", "x", 1, "rlx"], ["R", "a", "y", "rlx"]],
                 [["W", "y", 1, "rlx"], ["R", "b", "x", "rlx"]]], )";

TEST(EngineLitmusTest, AWrongExpectationIsADifference) {
  const std::string program = kStoreBuffering;
  const std::string all =
      R"({"0:a": 0, "1:b": 0}, {"0:a": 0, "1:b": 1}, {"0:a": 1, "1:b": 0}, {"0:a": 1, "1:b": 1})";
  const auto with = [&](const std::string& rest) { return differences(program + rest + "}]"); };
  EXPECT_TRUE(with(R"("race": false, "allowed": [)" + all + R"(], "genmc_executions": 4)").empty());
  EXPECT_EQ(with(R"("race": false, "allowed": [)" + all + R"(], "genmc_executions": 5)"),
            std::vector<std::string>{"4 executions, not 5"});
  EXPECT_EQ(with(R"("race": false, "allowed": [)" + all + R"(], "genmc_executions": 3)"),
            std::vector<std::string>{"4 executions, not 3"});
  EXPECT_EQ(with(R"("race": true, "allowed": null)"),
            std::vector<std::string>{"the expected race was not found"});
  EXPECT_EQ(with(R"("race": false, "allowed": [{"0:a": 1, "1:b": 2}])").size(), 5u);
}

// RC11 gives the outcomes of a racing program no meaning; the machines' models have no races.
TEST(EngineLitmusTest, ComparesMachineOutcomesDespiteDeclaredRace) {
  std::istringstream file{std::string{kStoreBuffering} +
                          R"("race": true, "allowed_aarch64": [{"0:a": 1, "1:b": 1}]}])"};
  const Litmus litmus = read_litmus(file).at(0);
  EXPECT_FALSE(litmus.expected.contains(MemoryModel::Rc11));
  LitmusVerdict verdict;
  verdict.outcomes = {{{"0:a", 0}, {"1:b", 0}}, {{"0:a", 1}, {"1:b", 1}}};
  compare(litmus, MemoryModel::AArch64, verdict);
  EXPECT_TRUE(verdict.compared);
  EXPECT_EQ(verdict.differences, std::vector<std::string>{R"(not allowed: {"0:a":0,"1:b":0})"});
}

// Numbers have the 64 bits of a location, signed or unsigned.
TEST(ReadLitmusTest, NumbersHave64Bits) {
  for (const char* number : {"-1", "-9223372036854775808", "18446744073709551615", "5000000000"}) {
    const std::string text = std::string{R"([{"name": "X", "race": false, "unset_register": )"} +
                             number + R"(, "observed": ["x", "0:a"], "locations": {"x": 0},
                             "ops": [[["IF", "a", )" +
                             number + R"(, [["W", "x", )" + number +
                             R"(, "rlx"]]]]], "allowed": [{"x": )" + number + R"(, "0:a": )" +
                             number + "}]}]";
    EXPECT_EQ(differences(text), std::vector<std::string>{});
  }
}

std::string error(const std::string& text) {
  std::istringstream file{text};
  try {
    read_litmus(file);
  } catch (const UsageError& usage) {
    return usage.what();
  }
  return "";
}

TEST(ReadLitmusTest, AnOutcomeOfAnUnobservedNameIsRefused) {
  EXPECT_EQ(error(std::string{kStoreBuffering} + R"("race": false, "allowed": [{"0:b": 1}]}])"),
            "program SB: field 'allowed': '0:b' is not among 'observed'");
}

std::string nested_ifs(unsigned depth) {
  std::string list = "[]";
  for (unsigned i = 0; i < depth; ++i) list = R"([["IF", "a", 0, )" + list + "]]";
  return list;
}

TEST(ReadLitmusTest, AFileThatIsNestedTooDeepIsRefused) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(error(R"([{"name": "X", "race": true, "observed": [], "locations": {}, "ops": [[)" +
                  deep + "]]}]"),
            "nested deeper than 256");
}

TEST(ReadLitmusTest, AnObjectWithTooManyFieldsIsRefused) {
  std::string names;
  for (int i = 0; i < 1001; ++i) names += (i == 0 ? "\"" : ", \"") + std::to_string(i) + R"(": "")";
  EXPECT_EQ(error(R"([{"name": "X", "race": true, "observed": [], "ops": [[]], "locations": {)" +
                  names + "}}]"),
            "an object has more than 1000 fields");
}

// A counterexample of proptests/litmus_test can thus be kept in a file.
TEST(ReadLitmusTest, AProgramIsWrittenAsItWasRead) {
  const auto program = Json::parse(
      R"({"name": "X", "locations": {"x": "", "y": ""}, "initial": -5,
          "ops": [[["W", "x", 7, "na"], ["W", "y", -1, "rel"], ["R", "a", "x", "acq"],
                   ["WR", "y", "a"], ["CTRL", "a"], ["F", "ar"], ["F", "wmb"]],
                  [["FA", "a", "y", 2, "ar"], ["XC", "b", "x", 3, "rel"],
                   ["CX", "c", "x", 4, 5, "acq", "rlx"], ["CP", ["a", "c"]],
                   ["IF", "b", 6, [["ASSUME", "c", 8], ["R", "d", "y", "rlx"]]]]],
          "observed": ["x", "1:a"], "unset_register": 99})");
  auto file = program;
  file["race"] = true;
  std::istringstream in{Json::array({file}).dump()};
  EXPECT_EQ(Json::parse(text_json(read_litmus(in).at(0).text)), program);
}

// An unknown or a repeated field, if ignored, would change the checked program.
TEST(ReadLitmusTest, AnUnknownFieldIsRefusedByName) {
  const std::string fields = R"("race": true, "observed": [], "locations": {}, "ops": [[]])";
  EXPECT_EQ(error("[{\"name\": \"X\", " + fields + "}]"), "");
  EXPECT_EQ(error(R"([{"name": "X", "threads": ["source"], )" + fields + "}]"), "");
  EXPECT_EQ(error("[{\"name\": \"X\", " + fields + R"(, "intial": 1}])"),
            "program X: unknown field 'intial'; a program has name, threads, locations, initial, "
            "ops, observed, unset_register, race, allowed, family, bad, genmc_executions, "
            "allowed_rc11, executions_rc11, allowed_aarch64, executions_aarch64, allowed_riscv, "
            "executions_riscv, allowed_lkmm, executions_lkmm, allowed_lkmm_rmb, "
            "executions_lkmm_rmb");
  EXPECT_EQ(error("[{\"Name\": \"X\", " + fields + "}]").find("program number 1: unknown field"),
            0u);
}

TEST(ReadLitmusTest, ARepeatedFieldIsRefusedWithWhereItIs) {
  const std::string fields = R"("observed": [], "locations": {}, "ops": [[]])";
  EXPECT_EQ(error("[{\"name\": \"X\", \"race\": true, " + fields + R"(, "race": false}])"),
            "program X: field 'race' is given twice");
  EXPECT_EQ(error("[{\"race\": true, " + fields + R"(, "name": "A"}, {"race": 1, "race": 1}])"),
            "program number 2: field 'race' is given twice");
  EXPECT_EQ(error(R"([{"name": "X", "locations": {"x": "atomic", "x": "plain"}}])"),
            "program X: field 'locations': field 'x' is given twice");
  EXPECT_EQ(error(R"([{"name": "X", "allowed": [{"0:a": 1}, {"0:a": 1, "0:a": 2}]}])"),
            "program X: field 'allowed': field '0:a' is given twice");
}

// Depth, length and number of threads at their maxima; one more of each is refused.
TEST(ReadLitmusTest, AProgramOfTheLargestSizeIsRead) {
  const auto with = [](const std::string& ops) {
    return error(R"([{"name": "X", "race": true, "observed": [], "locations": {}, "ops": [)" + ops +
                 "]}]");
  };
  EXPECT_EQ(with(nested_ifs(32)), "");
  EXPECT_EQ(with(nested_ifs(33)), "program X: field 'ops', thread 0: more than 32 IFs in another");
  EXPECT_EQ(with("[], [], [], []"), "");
  EXPECT_EQ(with("[], [], [], [], []"),
            "program X: field 'ops': 5 threads; from 1 to 4 are supported");
  std::string fences = R"(["F", "sc"])";
  for (int i = 1; i < 10'000; ++i) fences += R"(, ["F", "sc"])";
  EXPECT_EQ(with("[" + fences + "]"), "");
  EXPECT_EQ(with("[" + fences + R"(, ["F", "sc"]])"),
            "program X: field 'ops', thread 0: more than 10000 operations");
}

TEST(ReadLitmusTest, ErrorLocatesOffendingField) {
  const std::string head = R"([{"name": "X", "race": true, "observed": [], "locations": {"x": 0})";
  const auto with = [&](const std::string& rest) { return error(head + rest + "}]"); };
  const std::vector<std::pair<std::string, std::string>> cases{
      {error("{"), "not JSON"},
      {error("{}"), "neither a list of litmus tests nor an object"},
      {error("[1]"), "program number 1: not an object: 1"},
      {error(R"([{"name": "X"}])"), "program X: field 'race' is missing"},
      {error(R"([{"name": "X", "race": 3}])"), "program X: field 'race'"},
      {with(""), "program X: field 'ops' is missing"},
      {with(R"(, "ops": [])"), "field 'ops': 0 threads; from 1 to 4"},
      {with(R"(, "ops": [[["Q", "x"]]])"), "field 'ops', thread 0: unknown operation 'Q'"},
      {with(R"(, "ops": [[], [["W", "y", 1, "rlx"]]])"), "thread 1: unknown location \"y\""},
      {with(R"(, "ops": [[["W", "x", 1, "odd"]]])"), "unknown order 'odd'"},
      {with(R"(, "ops": [[["W", "x", 1, "acq"]]])"), "W has no order 'acq': na rlx rel"},
      {with(R"(, "ops": [[["F", "rlx"]]])"), "F has no order 'rlx'"},
      {with(R"(, "ops": [[["FA", "a", "x", 1, "wmb"]]])"), "FA has no order 'wmb': rlx acq rel ar"},
      {with(R"(, "ops": [[["CX", "a", "x", 0, 1, "ar", "rel"]]])"),
       "CX has no order 'rel': rlx acq"},
      {with(R"(, "ops": [[["W", "x"]]])"), "operation [\"W\",\"x\"]: 1 operand, not 3"},
      {with(R"(, "ops": [[["F", "sc", "sc"]]])"), "2 operands, not 1"},
      {with(R"(, "ops": [[["R", "", "x", "rlx"]]])"), "\"rlx\"]: its register has no name"},
      {with(R"(, "ops": [[["R", 1, "x", "rlx"]]])"), "\"rlx\"]: type must be string"},
      {error(R"([{"name": "X", "race": false, "observed": [], "locations": {}, "ops": [[]],
                  "genmc_executions": -1, "allowed": []}])"),
       "field 'genmc_executions': it is below 0"},
      {with(R"(, "ops": [[["W", "x", 1.5, "rlx"]]])"), "\"rlx\"]: 1.5 is not an integer"},
      {with(R"(, "ops": [[["W", "x", 18446744073709551616, "rlx"]]])"), "is not an integer"},
      {with(R"(, "ops": [[]], "initial": {"x": 1})"), "field 'initial': {\"x\":1} is not an"},
      {with(R"(, "ops": [[]], "unset_register": "a")"), "field 'unset_register': \"a\" is not"},
      {with(", \"ops\": [" + nested_ifs(40) + "]"), "thread 0: more than 32 IFs in another"},
      {with(R"(, "ops": [[["W", "x", 1, "sc"]]])"), "sequentially consistent access"},
      {error(
           R"([{"name": "X", "race": false, "observed": ["5:r0"], "locations": {}, "ops": [[]]}])"),
       "field 'observed': '5:r0'"},
      {error(
           R"([{"name": "X", "race": false, "observed": ["1:r0"], "locations": {}, "ops": [[]]}])"),
       "field 'observed': '1:r0'"},
      {error(R"([{"name": "X", "race": false, "observed": [], "locations": {}, "ops": [[]]}])"),
       "field 'allowed' is missing"},
      {error(R"([{"name": "X", "race": false, "observed": ["x"], "locations": {"x": 0}, "ops": [[]],
                  "allowed": [{"x": 0.5}]}])"),
       "field 'allowed', x: 0.5 is not an integer of 64 bits"},
  };
  for (const auto& [sentence, expected] : cases) {
    EXPECT_NE(sentence.find(expected), std::string::npos) << sentence << "\nand not: " << expected;
  }
}

}  // namespace
}  // namespace perfring::model
