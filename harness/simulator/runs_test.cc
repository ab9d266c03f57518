// The settings of a run, as text and drawn from its seed, and runs with them. To cover many seeds:
// `bazel test --runs_per_test=100 //harness/simulator:runs_test`. Each run of the test takes its
// own seeds, by Bazel's TEST_RUN_NUMBER.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/script/script.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto parsed = parse_settings(text, "storm.txt");
  EXPECT_FALSE(parsed.has_value()) << text;
  return parsed ? std::string{} : parsed.error();
}

TEST(SettingsTest, LastLineForSettingWins) {
  const auto parsed =
      parse_settings("# a comment\n\n cpus 3 # and another\r\npages\t8\ncpus 4", "x");
  ASSERT_TRUE(parsed.has_value()) << parsed.error();
  EXPECT_EQ(parsed->cpus, 4U) << "the last counts";
  EXPECT_EQ(parsed->ring.pages, 8U);
  EXPECT_EQ(parsed->payload_max, RunSettings{}.payload_max);
}

TEST(SettingsTest, ALineThatDoesNotParseIsNamedWithTheReason) {
  EXPECT_THAT(error_of("cpus 1\n\nbogus 2\n"),
              AllOf(HasSubstr("storm.txt, line 3: 'bogus' is not a setting"), HasSubstr("pages")));
  EXPECT_THAT(error_of("pages"), HasSubstr("storm.txt, line 1: pages has no value"));
  for (const char* value : {"x", "-1", "1.5", "0x10", "1 2", "0", "65", "99999999999999999999"}) {
    EXPECT_THAT(error_of(std::string{"pages 1\ncpus "} + value),
                AllOf(HasSubstr("line 2: cpus: '"), HasSubstr("a number from 1 to 64")))
        << value;
  }
}

TEST(SettingsTest, AnImpossibleValueIsNamedWithItsLine) {
  EXPECT_THAT(error_of("cpus 1\npages 3"),
              HasSubstr("storm.txt, line 2: pages: 3 is not a power of two"));
  EXPECT_THAT(error_of("word 48"), HasSubstr("storm.txt, line 1: word: 48 is neither 32 nor 64"));
  EXPECT_THAT(error_of("\nstart 12"),
              HasSubstr("storm.txt, line 2: start: 12 is not a multiple of 8"));
  EXPECT_THAT(impossible({.ring{.pages = 3}}), HasSubstr("pages: 3"));
  EXPECT_THAT(impossible({.ring{.start = 12}}), HasSubstr("start: 12"));
  EXPECT_THAT(impossible({.ring{.events = 2}}), HasSubstr("the ring: it must have one event"));
}

TEST(SettingsTest, ConflictingSettingsAreNamedWithReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"payload_min 9\npayload_max 8", "payload_min: 9 exceeds payload_max, 8"},
      {"pages 1\npayload_max 4096",
       "payload_max: 4096 bytes do not fit a ring of 1 page, 4096 bytes"},
      {"pages 1\npayload_max 4053", "payload_max: 4053"},
      {"pages 32\npayload_max 200000", "payload_max: 200000"},
      {"pages 1\nwakeup_watermark 4097", "wakeup_watermark: 4097 exceeds"},
      {"wakeup_watermark 8\ntimeout 0", "timeout: 0"},
      {"wakeup_events 2\ntimeout 0", "timeout: 0"},
      {"latency 5", "rings: 0 excludes latency, hotplug and flush_one_in"},
      {"flush_one_in 5", "rings: 0 excludes latency, hotplug and flush_one_in"},
      {"rings 3\npayload_min 16\nflush_one_in 5", "rings: 3 excludes flush_one_in"},
      {"hotplug 5", "rings: 0 excludes latency, hotplug and flush_one_in"},
      {"rings 1\nhostile 1", "rings: 1 excludes hostile"},
      {"rings 3", "rings: 3 excludes a payload_min below 16"},
      {"rings 3\npages 64\npayload_min 16\npayload_max 70000",
       "rings: 3 excludes a payload_max above 65516"},
      {"rings 1\nlatency 5\ntimeout 0", "latency: it needs"},
      {"rings 1\nlatency 5\nwakeup_events 2", "latency: it needs"},
  };
  for (const auto& [text, reason] : cases) {
    const auto parsed = parse_settings(text, "x");
    ASSERT_TRUE(parsed.has_value()) << parsed.error();
    EXPECT_THAT(impossible(*parsed), HasSubstr(reason)) << text;
  }
  EXPECT_EQ(impossible(*parse_settings("pages 1\npayload_max 4052", "x")), "");
}

TEST(SettingsTest, EveryScenarioIsPossible) {
  EXPECT_EQ(scenarios().size(), 19U);
  for (const Scenario& scenario : scenarios()) {
    const auto parsed = parse_settings(scenario.lines, scenario.name);
    ASSERT_TRUE(parsed.has_value()) << parsed.error();
    EXPECT_NE(*parsed, RunSettings{}) << scenario.name;
    EXPECT_EQ(impossible(*parsed), "") << scenario.name;
    EXPECT_EQ(find_scenario(scenario.name), &scenario);
  }
  EXPECT_EQ(find_scenario("none"), nullptr);
}

TEST(SettingsTest, DifferenceNamesWhatDiffers) {
  const RunSettings base;
  RunSettings other;
  other.cpus = 5;
  other.hostile = 1;
  EXPECT_EQ(difference(other, base), "cpus=5 hostile=1");
  EXPECT_EQ(difference(base, base), "");
}

// The setting named last applies, so that each can override the other.
TEST(SettingsTest, ARingHasWakeupEventsOrAWatermark) {
  const RunSettings marked = *parse_settings("wakeup_events 7\nwakeup_watermark 64", "x");
  EXPECT_EQ(marked.ring, (script::Settings{.pages = 16, .watermark = true, .wakeup = 64}));
  const RunSettings counted = *parse_settings("wakeup_events 5", "x", marked);
  EXPECT_EQ(counted.ring, (script::Settings{.pages = 16, .wakeup = 5}));
  EXPECT_EQ(difference(counted, marked), "wakeup_events=5");
  EXPECT_EQ(difference(marked, counted), "wakeup_watermark=64");
}

constexpr std::uint64_t kSeeds = 5000;

TEST(RandomSettingsTest, EachSeedGivesPossibleSettings) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunSettings settings = random_settings(seed);
    ASSERT_EQ(impossible(settings), "") << to_string(settings);
    for (const SettingName& name : setting_names()) {
      const auto value = name.get(settings);
      ASSERT_GE(value.value_or(name.min), name.min) << name.name;
      ASSERT_LE(value.value_or(name.min), name.max) << name.name;
    }
  }
}

TEST(RandomSettingsTest, EverySettingIsDrawn) {
  for (const SettingName& name : setting_names()) {
    std::set<std::uint64_t> values;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      if (const auto value = name.get(random_settings(seed))) values.insert(*value);
    }
    const std::uint64_t possible = name.max - name.min + 1;
    const bool few = possible >= 2 && possible <= 4;  // all of them are drawn
    EXPECT_GE(values.size(), few ? possible : std::uint64_t{2}) << name.name;
    EXPECT_TRUE(values.contains(name.min)) << name.name << " " << name.min;
  }
}

TEST(RandomSettingsTest, TheSameSeedGivesTheSameSettings) {
  EXPECT_EQ(random_settings(7), random_settings(7));
  EXPECT_NE(random_settings(7), random_settings(8));
}

TEST(RandomSettingsTest, LargestDrawnPayloadJustFitsRing) {
  std::uint64_t largest = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunSettings settings = random_settings(seed);
    if (settings.ring.pages == 1) largest = std::max(largest, settings.payload_max);
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
SimulationOutcome second_fails(const SimulationPlan& plan, std::vector<SimulationPlan>& plans) {
  plans.push_back(plan);
  SimulationOutcome outcome;
  outcome.steps = 10;
  outcome.cpus.push_back({.attempted = {.accepted = 5}, .received = {.delivered = 4}});
  if (plan.seed == 8) outcome.found = Found{{oracle::Invariant::order, "swapped"}, 3, 0};
  return outcome;
}

TEST(SimulateRunsTest, EndsWithTheRunThatViolatesAnInvariant) {
  std::vector<SimulationPlan> plans;
  const RunsOutcome outcome =
      simulate_runs({.first_seed = 7, .count = 3, .steps = 100},
                    [&](const SimulationPlan& plan) { return second_fails(plan, plans); });
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0].seed, 7U);
  EXPECT_EQ(plans[0].steps, 100U);
  EXPECT_NE(plans[0].settings, plans[1].settings);
  EXPECT_EQ(outcome.runs, 2U);
  EXPECT_EQ(outcome.steps, 20U);
  EXPECT_EQ(outcome.attempted, 10U);
  EXPECT_EQ(outcome.delivered, 8U);
  ASSERT_TRUE(outcome.found.has_value());
  ASSERT_TRUE(outcome.violating.has_value());
  EXPECT_EQ(outcome.violating->seed, 8U);
  EXPECT_EQ(outcome.violating->settings, plans[1].settings);
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
