// Runs whose settings are drawn from their seeds. Spread over many seeds with
// `bazel test --runs_per_test=100 //harness/simulator:runs_test`: each run of the test takes seeds
// of its own, by Bazel's TEST_RUN_NUMBER.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "harness/simulator/runs.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kSeeds = 5000;

TEST(RandomSettingsTest, EachSeedGivesPossibleSettingsWithinTheirRanges) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunSettings settings = random_settings(seed);
    ASSERT_EQ(impossible(settings), "") << to_string(settings);
    for (const SettingName& name : setting_names()) {
      ASSERT_GE(settings.*name.field, name.min) << name.name;
      ASSERT_LE(settings.*name.field, name.max) << name.name;
    }
  }
}

TEST(RandomSettingsTest, EverySettingIsDrawn) {
  for (const SettingName& name : setting_names()) {
    std::set<std::uint64_t> values;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      values.insert(random_settings(seed).*name.field);
    }
    const std::uint64_t possible = name.max - name.min + 1;
    const bool few = possible >= 2 && possible <= 4;  // of which each is drawn
    EXPECT_GE(values.size(), few ? possible : std::uint64_t{2}) << name.name;
    EXPECT_TRUE(values.contains(name.min)) << name.name << " " << name.min;
  }
}

TEST(RandomSettingsTest, TheSameSeedGivesTheSameSettings) {
  EXPECT_EQ(random_settings(7), random_settings(7));
  EXPECT_NE(random_settings(7), random_settings(8));
}

TEST(RandomSettingsTest, OneByteMoreOfPayloadThanARingHoldsIsNotDrawnButOneLessIs) {
  std::uint64_t largest = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunSettings settings = random_settings(seed);
    if (settings.pages == 1) largest = std::max(largest, settings.payload_max);
  }
  EXPECT_EQ(largest, 4052U);
}

constexpr std::uint64_t kRuns = 300;

std::uint64_t first_seed() {
  const char* const number = std::getenv("TEST_RUN_NUMBER");
  return number == nullptr ? 1 : 1 + kRuns * (std::strtoull(number, nullptr, 10) - 1);
}

SimulationOutcome run(const SimulationPlan& plan) {
  return simulate(plan);
}

TEST(SimulateRunsTest, EveryInvariantHoldsWithRandomSettings) {
  const RunsOutcome outcome = simulate_runs({.first_seed = first_seed(), .count = kRuns}, run);
  EXPECT_EQ(outcome.runs, kRuns);
  EXPECT_GT(outcome.delivered, kRuns);
  if (!outcome.found) return;
  ADD_FAILURE() << to_string(outcome.found->violation.invariant) << " at step "
                << outcome.found->step << ": " << outcome.found->violation.message
                << "\n  perfring sim --runs 1 --seed " << outcome.violating->seed << "\n  with "
                << to_string(outcome.violating->settings);
}

// A run in which the second of three seeds violates an invariant.
SimulationOutcome second_fails(const SimulationPlan& plan, std::vector<SimulationPlan>& seen) {
  seen.push_back(plan);
  SimulationOutcome outcome;
  outcome.steps = 10;
  outcome.cpus.push_back({.attempted = {.accepted = 5}, .received = {.delivered = 4}});
  if (plan.seed == 8) outcome.found = Found{{oracle::Invariant::order, "swapped"}, 3, 0};
  return outcome;
}

TEST(SimulateRunsTest, EndsWithTheRunThatViolatesAnInvariant) {
  std::vector<SimulationPlan> seen;
  const RunsOutcome outcome =
      simulate_runs({.first_seed = 7, .count = 3, .steps = 100},
                    [&](const SimulationPlan& plan) { return second_fails(plan, seen); });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].seed, 7U);
  EXPECT_EQ(seen[0].steps, 100U);
  EXPECT_NE(seen[0].settings, seen[1].settings);
  EXPECT_EQ(outcome.runs, 2U);
  EXPECT_EQ(outcome.steps, 20U);
  EXPECT_EQ(outcome.attempted, 10U);
  EXPECT_EQ(outcome.delivered, 8U);
  ASSERT_TRUE(outcome.found.has_value());
  ASSERT_TRUE(outcome.violating.has_value());
  EXPECT_EQ(outcome.violating->seed, 8U);
  EXPECT_EQ(outcome.violating->settings, seen[1].settings);
}

TEST(SimulateRunsTest, EndsWithTheRunThatIsInterrupted) {
  const RunsOutcome outcome =
      simulate_runs({.first_seed = 1, .count = 3}, [](const SimulationPlan&) {
        SimulationOutcome interrupted;
        interrupted.interrupted = true;
        return interrupted;
      });
  EXPECT_EQ(outcome.runs, 1U);
  EXPECT_TRUE(outcome.interrupted);
}

}  // namespace
}  // namespace perfring::simulator
