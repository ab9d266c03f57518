// What a thread knows of the others' accesses, where it decides on a race or on what can be read.

#include <gtest/gtest.h>

#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

// smp_wmb() makes the store known, and not what it releases: the read before it still races.
TEST(ExecutionTest, AReadThatIsNotAtomicFeedsNoAcquireFence) {
  Program program;
  const Var x = program.var("x"), y = program.var("y"), flag = program.var("flag");
  program.threads.emplace_back([=] {
    x.read();
    y.store(1, std::memory_order_release);
    fence_store_store();
    flag.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) != 1) return;
    y.read();
    fence(std::memory_order_acquire);
    x.write(2);
  });
  const Result result = explore(program);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_EQ(result.violation->cause.what, kDataRace);
  EXPECT_EQ(result.violation->events[result.violation->race[0] - 1].location, "x");
}

TEST(ExecutionTest, AStoreThatAStoreStoreFenceMadeKnownIsNoRaceWithALaterOne) {
  Program program;
  const Var x = program.var("x"), flag = program.var("flag");
  program.threads.emplace_back([=] {
    x.write(1);
    fence_store_store();
    flag.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) == 1) x.write(2);
  });
  EXPECT_FALSE(explore(program).violation.has_value());
}

// Though the thread that told of it reads it once more.
TEST(ExecutionTest, WhatAnotherThreadHasReadBindsLaterReads) {
  Program program;
  const Var x = program.var("x"), flag = program.var("flag");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] {
    if (x.load(std::memory_order_relaxed) != 1) return;
    flag.store(1, std::memory_order_release);
    x.load(std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) != 1) return;
    check(x.load(std::memory_order_relaxed) == 1, "coherence");
  });
  EXPECT_FALSE(explore(program).violation.has_value());
}

// From the first fence to the second by a store that a third thread does, and does not release.
TEST(ExecutionTest, FullFencesAreOrderedByAStoreAndItsRead) {
  Program program;
  const Var x = program.var("x"), y = program.var("y"), flag = program.var("flag");
  program.threads.emplace_back([=] {
    x.store(1, std::memory_order_relaxed);
    fence(std::memory_order_seq_cst);
    flag.store(1, std::memory_order_release);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) == 1) y.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (y.load(std::memory_order_relaxed) != 1) return;
    fence(std::memory_order_seq_cst);
    check(x.load(std::memory_order_relaxed) == 1, "a cycle of full fences");
  });
  EXPECT_FALSE(explore(program).violation.has_value());
}

}  // namespace
}  // namespace perfring::model
