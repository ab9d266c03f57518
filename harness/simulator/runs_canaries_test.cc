// Each canary is found by runs with random settings, soon: otherwise they are too tame.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/simulator/canaries.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/sanitizers.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kRunsMax = 200;

class RunsCanaryTest : public ::testing::TestWithParam<Canary> {};

bool is_found(const Canary& canary, std::uint64_t first_seed) {
  const RunsOutcome outcome =
      simulate_runs({.first_seed = first_seed, .count = kRunsMax},
                    [&](const Plan& plan) { return canary.simulate(plan, {}); });
  return outcome.found.has_value();
}

TEST_P(RunsCanaryTest, IsFoundWithin200Runs) {
  for (const std::uint64_t seed :
       {std::uint64_t{1}, std::uint64_t{100'001}, std::uint64_t{200'001}}) {
    if (!kPoisons) {
      EXPECT_TRUE(is_found(GetParam(), seed)) << "from seed " << seed;
      continue;
    }
    // AddressSanitizer may end the program before any invariant is looked at.
    const auto end = [&] {
      if (!is_found(GetParam(), seed)) std::exit(0);
      std::fputs("found\n", stderr);
      std::exit(1);
    };
    EXPECT_EXIT(end(), ::testing::ExitedWithCode(1), "found|use-after-poison") << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RunsCanaryTest, ::testing::ValuesIn(canaries()),
                         [](const auto& named) { return std::string{named.param.name}; });

}  // namespace
}  // namespace perfring::simulator
