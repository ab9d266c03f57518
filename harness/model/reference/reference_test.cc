// The reference against programs whose verdicts GenMC and herd7 agree on.

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "harness/model/litmus/litmus.h"
#include "harness/model/reference/enumerate.h"

namespace perfring::model::reference {
namespace {

std::vector<Litmus> programs(const char* file) {
  std::ifstream stream{file};
  return read_litmus(stream);
}

TEST(EnumerateTest, ProgramsOfRc11HaveTheirOutcomesRacesAndExecutions) {
  for (const Litmus& litmus : programs("harness/model/litmus/litmus.json")) {
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

TEST(EnumerateTest, ProgramsOfProcessorsHaveTheirOutcomesAndExecutions) {
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

}  // namespace
}  // namespace perfring::model::reference
