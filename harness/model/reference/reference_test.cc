// Tests the reference with programs on which GenMC and herd7 agree.

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <vector>

#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"
#include "harness/model/reference/enumerate.h"

namespace perfring::model::reference {
namespace {

std::vector<Litmus> programs(const char* file) {
  std::ifstream stream{file};
  return read_litmus(stream);
}

TEST(EnumerateTest, Rc11ProgramsMatchTheirExpectations) {
  const std::vector<Litmus> all = programs("harness/model/litmus/litmus.json");
  EXPECT_EQ(all.size(), 64u);
  for (const Litmus& litmus : all) {
    const Enumeration answer = enumerate(litmus.text, MemoryModel::Rc11);
    EXPECT_EQ(answer.race, litmus.race) << litmus.text.name;
    if (litmus.race) continue;
    const Expectation& expected = litmus.expected.at(MemoryModel::Rc11);
    EXPECT_EQ(answer.outcomes, expected.allowed) << litmus.text.name;
    if (expected.executions) {
      EXPECT_EQ(answer.executions, *expected.executions) << litmus.text.name;
    }
  }
}

TEST(EnumerateTest, HardwareProgramsMatchTheirExpectations) {
  std::size_t compared = 0;
  for (const Litmus& litmus : programs("harness/model/litmus/hardware.json")) {
    for (const auto& [memory_model, expected] : litmus.expected) {
      const Enumeration answer = enumerate(litmus.text, memory_model);
      EXPECT_EQ(answer.outcomes, expected.allowed)
          << litmus.text.name << " of " << to_string(memory_model);
      if (expected.executions) {
        EXPECT_EQ(answer.executions, *expected.executions)
            << litmus.text.name << " of " << to_string(memory_model);
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 200u);
}

// smp_wmb() makes the first store known to a thread that acquires the second.
TEST(EnumerateTest, StoreStoreFenceForbidsStaleRead) {
  std::istringstream file{R"([{"name": "MP", "race": false, "locations": {"x": "", "y": ""},
      "observed": ["1:a", "1:b"],
      "ops": [[["W", "x", 1, "rlx"], ["F", "wmb"], ["W", "y", 1, "rlx"]],
              [["R", "a", "y", "acq"], ["R", "b", "x", "rlx"]]],
      "allowed": [{"1:a": 0, "1:b": 0}, {"1:a": 0, "1:b": 1}, {"1:a": 1, "1:b": 1}]}])"};
  const Litmus litmus = read_litmus(file).at(0);
  EXPECT_EQ(enumerate(litmus.text, MemoryModel::Rc11).outcomes,
            litmus.expected.at(MemoryModel::Rc11).allowed);
}

// A read inherits the dependencies of a store only if it reads from this store (lrs). Here it reads
// from the thread's next store, so the branch does not order anything after the first read.
TEST(EnumerateTest, ReadInheritsNoDependencyOfOverwrittenStore) {
  std::istringstream file{R"([{"name": "LB", "race": false,
      "locations": {"x": "", "y": "", "z": ""}, "observed": ["0:a", "0:b", "1:c"],
      "ops": [[["R", "a", "x", "rlx"], ["WR", "y", "a"], ["W", "y", 2, "rlx"],
               ["R", "b", "y", "rlx"], ["CTRL", "b"], ["W", "z", 1, "rlx"]],
              [["R", "c", "z", "rlx"], ["WR", "x", "c"]]],
      "allowed_aarch64": [{"0:a": 0, "0:b": 2, "1:c": 0}, {"0:a": 0, "0:b": 2, "1:c": 1},
                          {"0:a": 1, "0:b": 2, "1:c": 1}]}])"};
  const Litmus litmus = read_litmus(file).at(0);
  EXPECT_EQ(enumerate(litmus.text, MemoryModel::AArch64).outcomes,
            litmus.expected.at(MemoryModel::AArch64).allowed);
}

TEST(EnumerateTest, AnEnumerationThatIsEndedIsNotComplete) {
  const LitmusText text = programs("harness/model/litmus/hardware.json").at(0).text;
  EXPECT_TRUE(enumerate(text, MemoryModel::AArch64).complete);
  const auto stop = [](const Enumeration&) { return false; };
  EXPECT_FALSE(enumerate(text, MemoryModel::AArch64, {.keep_going = stop}).complete);
}

}  // namespace
}  // namespace perfring::model::reference
