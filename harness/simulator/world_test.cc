#include "harness/simulator/world.h"

#include <gtest/gtest.h>

namespace perfring::simulator {
namespace {

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

TEST(WorldTest, ThePhaseSaysWhoEnds) {
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
