// Each planted fault is found: by the invariants where they can see it, by ThreadSanitizer in
// builds with it. Without a fault nothing is found: stress_command_test.cc.

#include "harness/stress/mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "harness/cli/testing.h"

namespace perfring::cli {
namespace {

using stress::find_mutant;
using stress::Mutant;
using stress::mutants;
using ::testing::HasSubstr;

// Under ThreadSanitizer the first race ends the program, with exit code 66.
Ended run_stress(const std::string& arguments) {
  return run_line("stress " + arguments,
                  "TSAN_OPTIONS=\"$TSAN_OPTIONS halt_on_error=1 exitcode=66\"");
}

std::vector<std::string> names(bool Mutant::* by) {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants()) {
    if (mutant.*by) names.push_back(mutant.name);
  }
  return names;
}

std::string name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

TEST(StressMutantsTest, EachHasANameOfItsOwnAndSomethingThatFindsIt) {
  std::set<std::string> seen;
  for (const Mutant& mutant : mutants()) {
    EXPECT_TRUE(seen.insert(mutant.name).second) << mutant.name;
    EXPECT_TRUE(mutant.raced || mutant.violates) << mutant.name;
    EXPECT_EQ(find_mutant(mutant.name), &mutant);
  }
  EXPECT_EQ(find_mutant("none"), nullptr);
}

#ifdef STRESS_TEST_UNDER_TSAN

class StressRacedMutantTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StressRacedMutantTest, IsReportedByThreadSanitizer) {
  const Ended ended = run_stress("--seconds 20 --keep-going --mutant " + GetParam());
  EXPECT_EQ(ended.exit_code, 66) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("WARNING: ThreadSanitizer: data race"));
}
INSTANTIATE_TEST_SUITE_P(Each, StressRacedMutantTest, ::testing::ValuesIn(names(&Mutant::raced)),
                         name);

std::vector<std::string> violating() {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants()) {
    if (!mutant.raced) names.push_back(mutant.name);
  }
  return names;
}

#else

std::vector<std::string> violating() {
  return names(&Mutant::violates);
}

#endif

class StressMutantTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StressMutantTest, IsFoundByTheInvariants) {
  const Ended ended = run_stress("--seconds 20 --rings 1 --mutant " + GetParam());
  EXPECT_EQ(ended.exit_code, 1) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("VIOLATED "));
  EXPECT_THAT(ended.out,
              HasSubstr("replay: perfring stress --seed 1 --seconds 20 --rings 1 --mutant " +
                        GetParam() + "\n"));
}
INSTANTIATE_TEST_SUITE_P(Each, StressMutantTest, ::testing::ValuesIn(violating()), name);

}  // namespace
}  // namespace perfring::cli
