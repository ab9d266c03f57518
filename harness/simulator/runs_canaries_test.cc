// Each canary is found by runs with random settings, soon: otherwise they are too tame.

#include <gtest/gtest.h>

#include <string>

#include "harness/simulator/canaries.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/sanitizers.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kRunsMax = 200;

class RunsCanaryTest : public ::testing::TestWithParam<Canary> {};

TEST_P(RunsCanaryTest, IsFoundWithin200Runs) {
  if (kPoisons && GetParam().poisoned) GTEST_SKIP() << "AddressSanitizer ends the program first";
  for (const std::uint64_t seed :
       {std::uint64_t{1}, std::uint64_t{100'001}, std::uint64_t{200'001}}) {
    const RunsOutcome outcome =
        simulate_runs({.first_seed = seed, .count = kRunsMax},
                      [](const Plan& plan) { return GetParam().simulate(plan, {}); });
    EXPECT_TRUE(outcome.found.has_value()) << "from seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RunsCanaryTest, ::testing::ValuesIn(canaries()),
                         [](const auto& named) { return std::string{named.param.name}; });

}  // namespace
}  // namespace perfring::simulator
