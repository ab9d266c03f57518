#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/received.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"
#include "harness/simulator/world.h"

namespace perfring::simulator {
namespace {

RunSettings scenario_of(std::string_view name) {
  const Scenario* const scenario = find_scenario(name);
  return *parse_settings(scenario->lines, name);
}

SimulationOutcome run(std::string_view name, std::uint64_t seed, std::uint64_t steps = 300'000) {
  return simulate({.seed = seed, .steps = steps, .settings = scenario_of(name)});
}

struct Sum {
  oracle::Totals attempted;
  oracle::Received received;
};

Sum sum(const SimulationOutcome& outcome) {
  Sum sum;
  for (const CpuTotals& cpu : outcome.cpus) {
    sum.attempted.accepted += cpu.attempted.accepted;
    sum.attempted.invisible += cpu.attempted.invisible;
    sum.attempted.lost += cpu.attempted.lost;
    sum.attempted.failed += cpu.attempted.failed;
    sum.received.delivered += cpu.received.delivered;
    sum.received.lost += cpu.received.lost;
    sum.received.malformed += cpu.received.malformed;
    sum.received.overwritten += cpu.received.overwritten;
    sum.received.bytes += cpu.received.bytes;
  }
  return sum;
}

class ScenarioTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(ScenarioTest, NoSeedFindsAViolation) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const SimulationOutcome outcome = run(GetParam().name, seed);
    EXPECT_FALSE(outcome.found.has_value()) << "seed " << seed << " step " << outcome.found->step
                                            << ": " << to_string(outcome.found->violation);
    EXPECT_GE(outcome.steps, 300'000U);
  }
}

TEST_P(ScenarioTest, ACursorViolatesNothing) {
  RunSettings settings = scenario_of(GetParam().name);
  settings.drain_with = kCursor;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const SimulationOutcome outcome =
        simulate({.seed = seed, .steps = 300'000, .settings = settings});
    EXPECT_FALSE(outcome.found.has_value()) << "seed " << seed << " step " << outcome.found->step
                                            << ": " << to_string(outcome.found->violation);
    EXPECT_GE(outcome.steps, 300'000U);
  }
}

TEST_P(ScenarioTest, TheSameSeedGivesTheSameRun) {
  const SimulationOutcome first = run(GetParam().name, 7);
  const SimulationOutcome second = run(GetParam().name, 7);
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.steps, second.steps);
  EXPECT_NE(first.digest, run(GetParam().name, 8).digest);
}

// On every machine, of every width and byte order, with every compiler.
TEST_P(ScenarioTest, ASeedGivesTheSameRunOnEveryMachine) {
  const std::map<std::string, std::uint64_t> golden{
      {"steady", 0x3148318b36d74c01},       {"bursts", 0xdae886cb376f6fc7},
      {"full_ring", 0xa1e14835409b7c5c},    {"one_byte_short", 0x8aec60d03cd8576a},
      {"huge_records", 0x1a45594de5f01b38}, {"oversize", 0x5f5067bb417afa18},
      {"nested_storm", 0x035004b3e8696097}, {"crossing_4gib", 0xe73a8ffb450622ed},
      {"pause", 0x1f9bb908346fb838},        {"watermark_starvation", 0xe7cdd3b9cce81009},
      {"hostile", 0x0905a713dc98c06a},      {"turns", 0x632dc013bfa15823},
      {"fullest", 0x2a4c16286707f558},      {"merge", 0x2f4ff676bed1645c},
      {"merge_stalls", 0x156a4550b22f5f44}, {"switching", 0x7e537596985d74df},
      {"before_5_2", 0x80344b7dff855191},   {"hotplug", 0xf3e2f0b310cd3214},
      {"flushes", 0x6b13dd509183a7d9},
  };
  EXPECT_EQ(run(GetParam().name, 1).digest, golden.at(GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, ::testing::ValuesIn(scenarios()),
                         [](const auto& named) { return std::string{named.param.name}; });

// Each scenario produces the case for which it exists.
TEST(SimulateTest, EveryRecordIsDeliveredByAConsumerThatKeepsUp) {
  const SimulationOutcome outcome = run("steady", 1);
  EXPECT_GT(sum(outcome).received.delivered, 5000U);
  EXPECT_EQ(sum(outcome).received.delivered, sum(outcome).attempted.accepted);
  EXPECT_EQ(sum(outcome).attempted.lost, 0U);
}

TEST(SimulateTest, AFullRingLosesMost) {
  const Sum counts = sum(run("full_ring", 1));
  EXPECT_GT(counts.attempted.lost, counts.attempted.accepted);
  EXPECT_GT(counts.received.lost, 0U);
}

TEST(SimulateTest, ARingOneByteShortRefusesTheSecondRecord) {
  const SimulationOutcome outcome = run("one_byte_short", 1);
  const Sum counts = sum(outcome);
  EXPECT_GT(counts.attempted.lost, counts.attempted.accepted);
  EXPECT_LE(counts.received.delivered, outcome.drains) << "never two at once";
  EXPECT_GT(counts.received.delivered, 50U);
}

TEST(SimulateTest, OversizePayloadsOverwriteUnreadRecords) {
  const Sum counts = sum(run("oversize", 1, 3'000'000));
  EXPECT_GT(counts.received.malformed, 0U);
  EXPECT_GT(counts.received.overwritten, 0U);
  EXPECT_GT(counts.received.delivered, 0U);
}

TEST(SimulateTest, InterruptStormExceedsKernelNestingLimit) {
  EXPECT_GT(sum(run("nested_storm", 1)).attempted.failed, 0U) << "EBUSY";
}

TEST(SimulateTest, PositionsPass4GiB) {
  EXPECT_EQ(scenario_of("crossing_4gib").ring.start, (std::uint64_t{1} << 32) - 65536);
  const SimulationOutcome outcome = run("crossing_4gib", 1);
  ASSERT_FALSE(outcome.cpus.empty());
  for (const CpuTotals& cpu : outcome.cpus) EXPECT_GT(cpu.received.bytes, 65536U);
}

TEST(SimulateTest, PositionsPassTheEndOf64BitsToo) {
  RunSettings settings = scenario_of("bursts");
  settings.ring.start = ~std::uint64_t{0} - 65535;
  const SimulationOutcome outcome = simulate({.seed = 3, .steps = 300'000, .settings = settings});
  EXPECT_FALSE(outcome.found.has_value()) << outcome.found->violation.message;
  ASSERT_FALSE(outcome.cpus.empty());
  for (const CpuTotals& cpu : outcome.cpus) EXPECT_GT(cpu.received.bytes, 65536U);
}

TEST(SimulateTest, PausedRingReportsLosses) {
  EXPECT_GT(sum(run("pause", 1)).received.lost, 0U);
}

TEST(SimulateTest, AWatermarkLeavesMostToTheTimeout) {
  const SimulationOutcome outcome = run("watermark_starvation", 1);
  EXPECT_LT(outcome.wakeups, outcome.drains / 2);
}

TEST(SimulateTest, HostileRingDeliversNotOnlyMalformedEvents) {
  const SimulationOutcome outcome = run("hostile", 1);
  const Sum counts = sum(outcome);
  EXPECT_LE(counts.received.bytes, outcome.drains * 4096) << "of ring, not of positions";
  EXPECT_GT(counts.received.malformed, 0U);
  EXPECT_GT(counts.received.delivered, 0U);
}

TEST(SimulateTest, AnInterruptedRunDrainsTheRest) {
  const std::atomic<bool> stop{true};
  const SimulationOutcome outcome =
      simulate({.seed = 1, .steps = std::uint64_t{1} << 60, .settings = scenario_of("bursts")},
               {.stop = &stop, .on_progress = {}});
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_FALSE(outcome.found.has_value());
  EXPECT_EQ(sum(outcome).received.delivered, sum(outcome).attempted.accepted);
}

// The kernel's own gap: perf_output_get_handle() counts a writer and then notes rb->wakeup. If an
// interrupt adds a record in between and the writer then finds the ring full, nobody announces that
// record. A consumer that waits without a timeout sleeps until a record is accepted: forever, if
// the ring stays full.
TEST(SimulateTest, KernelGapKeepsConsumerWithoutTimeoutAsleep) {
  RunSettings settings = scenario_of("one_byte_short");
  settings.timeout = 0;
  const SimulationOutcome outcome = simulate({.seed = 1, .steps = 3'000'000, .settings = settings});
  EXPECT_FALSE(outcome.found.has_value()) << outcome.found->violation.message;
  const SimulationOutcome waiting = run("one_byte_short", 1, 3'000'000);
  EXPECT_LT(10 * outcome.drains, waiting.drains);
}

constexpr Phase kPhases[] = {Phase::Writing, Phase::Ending, Phase::Draining, Phase::Stopping};

TEST(WorldTest, OnlyTheTransitionsDrawnAreLegal) {
  const bool legal[4][4] = {
      // Writing, Ending, Draining, Stopping
      {false, true, true, true},
      {false, false, true, true},
      {false, false, false, true},
      {false, false, false, false},
  };
  for (const Phase from : kPhases) {
    for (const Phase to : kPhases) {
      EXPECT_EQ(may_follow(from, to), legal[static_cast<int>(from)][static_cast<int>(to)])
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(WorldTest, AnIllegalTransitionEndsTheProgram) {
  World world{1, RunSettings{}, 1000};
  world.enter(Phase::Draining);
#ifndef NDEBUG
  EXPECT_DEATH(world.enter(Phase::Ending), "may_follow");
#endif
}

TEST(WorldTest, EachTaskEndsInItsPhase) {
  const bool writers_end[] = {false, true, true, true};
  const bool consumers_end[] = {false, false, true, true};
  for (const Phase phase : kPhases) {
    World world{1, RunSettings{}, 1000};
    if (phase != Phase::Writing) world.enter(phase);
    EXPECT_EQ(world.writers_end(), writers_end[static_cast<int>(phase)]);
    EXPECT_EQ(world.consumers_end(), consumers_end[static_cast<int>(phase)]);
  }
}

TEST(WorldTest, WritersEndAfterTheSteps) {
  World world{1, RunSettings{}, 1000};
  while (world.scheduler.now() < 999) world.scheduler.step();
  EXPECT_FALSE(world.writers_end());
  while (world.scheduler.now() < 1000) world.scheduler.step();
  EXPECT_TRUE(world.writers_end());
}

}  // namespace
}  // namespace perfring::simulator
