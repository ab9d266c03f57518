// How a search ends: at a bound, which is no proof; an execution: with Program::finally.

#include <gtest/gtest.h>

#include <cstdint>

#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

// Steps without a choice are run at once, a violation at their end included.
TEST(BoundsTest, AViolationBeyondABoundIsNoProof) {
  const auto program = [](bool race) {
    Program p;
    const Var x = p.var("x");
    p.threads.emplace_back([=] {
      for (int i = 0; i < 5; ++i) x.store(1, std::memory_order_relaxed);
      race ? x.write(2) : check(false, "always");
    });
    p.threads.emplace_back([=] {
      if (race) x.read();
    });
    return p;
  };
  for (const bool race : {false, true}) {
    ExploreOptions options;
    EXPECT_TRUE(explore(program(race), options).violation);
    options.bounds.events = 4;
    const Result result = explore(program(race), options);
    EXPECT_EQ(result.bound, "more than 4 events in an execution");
    EXPECT_FALSE(result.proved());
  }
}

// They are looked at now and then: at each 256th state.
TEST(BoundsTest, TimeAndMemoryEndTheSearchWithoutAProof) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  const auto thread = [](Var from, Var to) {
    return [=] {
      for (std::uint64_t i = 1; i < 5; ++i) {
        to.store(i, std::memory_order_relaxed);
        from.load(std::memory_order_relaxed);
      }
    };
  };
  program.threads = {thread(x, y), thread(y, x)};
  const auto explored = [&](const Bounds& bounds) {
    ExploreOptions options;
    options.bounds = bounds;
    return explore(program, options);
  };
  const Result whole = explored({});
  EXPECT_TRUE(whole.proved());
  EXPECT_GT(whole.states, 256u);
  EXPECT_EQ(explored({.seconds = 1e-9}).bound, "more than 1e-09 s");
  EXPECT_EQ(explored({.memory_bytes = 1}).bound, "more than 0 MiB for the states seen");
}

// Program::finally runs when all threads have ended.
TEST(FinallyTest, SeesEveryThreadsWrites) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.fetch_add(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] { x.fetch_add(2, std::memory_order_relaxed); });
  program.finally = [=] { check(x.read() == 3, "an addition is lost"); };
  EXPECT_TRUE(explore(program).proved());
}

// A blocked execution is not complete, so that nothing that it ends with counts.
TEST(FinallyTest, AnAssumptionThatFailsBlocksTheExecution) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] { x.store(2, std::memory_order_relaxed); });
  program.finally = [=] {
    const std::uint64_t last = x.read();
    assume(last == 1);
    check(last == 1, "an execution that is blocked");
  };
  const Result result = explore(program);
  EXPECT_FALSE(result.violation.has_value());
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

}  // namespace
}  // namespace perfring::model
