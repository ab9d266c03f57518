// Each fault that a simulation can see is found by runs with random settings, soon: otherwise they
// are too tame.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "harness/program/sanitizers.h"
#include "harness/simulator/faults.h"
#include "harness/simulator/runs.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kRunsMax = 200;

class RunsFaultTest : public ::testing::TestWithParam<SimulationFault> {};

bool is_found(const SimulationFault& fault, std::uint64_t first_seed) {
  const RunsOutcome outcome =
      simulate_runs({.first_seed = first_seed, .count = kRunsMax},
                    [&](const Plan& plan) { return fault.simulate(plan, {}); });
  return outcome.found.has_value();
}

// Not `believes`, which reads around the Memory policy: while it loops, no step passes, and a run
// ends late. Nor those that show only where several settings meet: ManyRingsTest of proptests has
// such settings, and finds them.
std::vector<SimulationFault> found_faults() {
  std::vector<SimulationFault> found;
  std::ranges::copy_if(
      planted_faults(), std::back_inserter(found), [](const SimulationFault& fault) {
        return is_found(fault.expected()) && fault.name != "believes" &&
               fault.name != "sleeps_after_the_switch" && fault.name != "sleeps_on_the_young" &&
               fault.name != "window_of_one";
      });
  return found;
}

TEST_P(RunsFaultTest, IsFoundWithin200Runs) {
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

INSTANTIATE_TEST_SUITE_P(All, RunsFaultTest, ::testing::ValuesIn(found_faults()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace perfring::simulator
