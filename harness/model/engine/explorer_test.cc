#include "harness/model/engine/explorer.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "harness/model/engine/usage_error.h"

namespace perfring::model {
namespace {

// Returns a program in which each thread may miss the other's store.
Program store_buffering(std::memory_order fence_order) {
  Program program;
  const Var x = program.var("x");
  const Var y = program.var("y");
  program.threads.emplace_back([=] {
    x.store(1, kRelaxed);
    fence(fence_order);
    y.load(kRelaxed);
  });
  program.threads.emplace_back([=] {
    y.store(1, kRelaxed);
    fence(fence_order);
    x.load(kRelaxed);
  });
  return program;
}

Program message_passing(std::memory_order store, std::memory_order load, bool plain) {
  Program program;
  const Var data = program.var("data");
  const Var flag = program.var("flag");
  program.threads.emplace_back([=] {
    plain ? data.write(1) : data.store(1, kRelaxed);
    flag.store(1, store);
  });
  program.threads.emplace_back([=] {
    if (flag.load(load) == 0) return;
    check((plain ? data.read() : data.load(kRelaxed)) == 1, "stale data");
  });
  return program;
}

std::string verdict(const Program& program) {
  const Result result = explore(program);
  return result.proved() ? "holds" : result.not_proved();
}

TEST(ExplorerTest, MessagePassingNeedsBothSides) {
  EXPECT_EQ(verdict(message_passing(kRelease, kAcquire, false)), "holds");
  EXPECT_EQ(verdict(message_passing(kRelaxed, kAcquire, false)), "stale data");
  EXPECT_EQ(verdict(message_passing(kRelease, kRelaxed, false)), "stale data");
  EXPECT_EQ(verdict(message_passing(kRelease, kAcquire, true)), "holds");
  EXPECT_EQ(verdict(message_passing(kRelaxed, kAcquire, true)), "data race");
  EXPECT_EQ(verdict(message_passing(kRelease, kRelaxed, true)), "data race");
}

TEST(ExplorerTest, EachExecutionIsCountedOnce) {
  EXPECT_EQ(explore(store_buffering(std::memory_order_acq_rel)).executions, 4u);
  EXPECT_EQ(explore(store_buffering(std::memory_order_seq_cst)).executions, 3u);
}

TEST(ExplorerTest, AWriteThatRacesWithAReadIsARace) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.write(1); });
  program.threads.emplace_back([=] { x.read(); });
  EXPECT_EQ(verdict(program), "data race");
}

TEST(ExplorerTest, ReadsDoNotRace) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.read(); });
  program.threads.emplace_back([=] { x.read(); });
  EXPECT_EQ(verdict(program), "holds");
  EXPECT_EQ(explore(program).executions, 1u);
}

// smp_wmb() passes on the thread's own stores, but neither its reads nor the stores that it has
// read.
TEST(ExplorerTest, AStoreStoreFenceOrdersStoresOnly) {
  const auto program = [](bool release) {
    Program p;
    const Var x = p.var("x");
    const Var y = p.var("y");
    p.threads.emplace_back([=] {
      x.read();
      release ? fence(kRelease) : fence_store_store();
      y.store(1, kRelaxed);
    });
    p.threads.emplace_back([=] {
      if (y.load(kAcquire) == 1) x.write(1);
    });
    return p;
  };
  EXPECT_EQ(verdict(program(true)), "holds");
  EXPECT_EQ(verdict(program(false)), "data race");
}

TEST(ExplorerTest, OnlyUpdatesContinueAReleaseSequence) {
  const auto program = [](bool update) {
    Program p;
    const Var data = p.var("data");
    const Var flag = p.var("flag");
    p.threads.emplace_back([=] {
      data.write(1);
      flag.store(1, kRelease);
    });
    p.threads.emplace_back([=] {
      if (flag.load(kRelaxed) != 1) return;
      update ? static_cast<void>(flag.exchange(2, kRelaxed)) : flag.store(2, kRelaxed);
    });
    p.threads.emplace_back([=] {
      if (flag.load(kAcquire) == 2) data.read();
    });
    return p;
  };
  EXPECT_EQ(verdict(program(true)), "holds");
  EXPECT_EQ(verdict(program(false)), "data race");
}

TEST(ExplorerTest, AFailedCompareExchangeOnlyReads) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] {
    const std::uint64_t read = x.compare_exchange(0, 1, std::memory_order_acq_rel, kRelaxed);
    check(read == 0 || read == 2, "out of thin air");
  });
  program.threads.emplace_back(
      [=] { x.compare_exchange(0, 2, std::memory_order_acq_rel, kRelaxed); });
  program.finally = [=] {
    const std::uint64_t last = x.load(kRelaxed);
    check(last == 1 || last == 2, "both exchanges succeeded, or none");
  };
  const Result result = explore(program);
  EXPECT_TRUE(result.proved());
  EXPECT_EQ(result.executions, 2u);
}

TEST(ExplorerTest, AnAssumptionEndsAnExecution) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, kRelaxed); });
  program.threads.emplace_back([=] {
    assume(x.load(kRelaxed) == 1);
    check(x.load(kRelaxed) == 1, "coherence");
  });
  const Result result = explore(program);
  EXPECT_TRUE(result.proved());
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

// No check was evaluated.
TEST(ExplorerTest, WhereAllExecutionsAreBlockedNothingIsProved) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { assume(x.load(kRelaxed) == 1); });
  program.finally = [=] { check(false, "an execution that is blocked"); };
  const Result result = explore(program);
  EXPECT_FALSE(result.violation.has_value());
  EXPECT_EQ(result.bound, "");
  EXPECT_EQ(result.executions, 0u);
  EXPECT_EQ(result.blocked, 1u);
  EXPECT_FALSE(result.proved());
  EXPECT_EQ(result.not_proved(), kNoExecution);
}

// Only an execution that sequentially consistent fences forbid has the race.
TEST(ExplorerTest, AnExecutionThatFencesForbidIsNoViolation) {
  const auto program = [](std::memory_order order) {
    Program p;
    const Var x = p.var("x");
    const Var y = p.var("y");
    const Var data = p.var("data");
    const auto thread = [=](Var mine, Var other) {
      mine.store(1, kRelaxed);
      fence(order);
      if (other.load(kRelaxed) == 0) data.write(1);
    };
    p.threads.emplace_back([=] { thread(x, y); });
    p.threads.emplace_back([=] { thread(y, x); });
    return p;
  };
  EXPECT_EQ(verdict(program(std::memory_order_seq_cst)), "holds");
  EXPECT_EQ(verdict(program(std::memory_order_acq_rel)), "data race");
}

TEST(ExplorerTest, ReachedBoundIsNoProof) {
  Program program = message_passing(kRelease, kAcquire, false);
  ExploreOptions options;
  options.bounds.executions = 1;
  EXPECT_EQ(explore(program, options).bound, "more than 1 execution");
  EXPECT_FALSE(explore(program, options).proved());
  options = {};
  options.bounds.events = 4;
  const Result result = explore(program, options);
  EXPECT_EQ(result.bound, "more than 4 events in an execution");
  EXPECT_FALSE(result.proved());
  EXPECT_EQ(result.not_proved(), result.bound);
}

TEST(ExplorerTest, ASignalEndsTheSearchWithoutAProof) {
  const std::atomic<bool> stop{true};
  ExploreOptions options;
  options.stop = &stop;
  const Result result = explore(message_passing(kRelease, kAcquire, false), options);
  EXPECT_EQ(result.bound, "interrupted");
  EXPECT_FALSE(result.proved());
}

// Merging would ignore the order between the fences of several threads.
TEST(ExplorerTest, NothingMergesWhereTwoThreadsHaveFullFences) {
  ExploreOptions options;
  options.merge = true;
  const Result result = explore(store_buffering(std::memory_order_seq_cst), options);
  EXPECT_EQ(result.merged, 0u);
  EXPECT_EQ(result.executions, 3u);
  EXPECT_LT(explore(store_buffering(std::memory_order_acq_rel), options).executions, 4u);
}

// In C++, a load that releases and a store that acquires are undefined behavior.
TEST(ExplorerTest, AccessesHaveTheOrdersThatAreSupported) {
  constexpr auto kAcquireRelease = std::memory_order_acq_rel;
  constexpr auto kFull = std::memory_order_seq_cst;
  const auto error = [](const std::function<void(Var)>& access) -> std::string {
    Program program;
    const Var x = program.var("x");
    program.threads.emplace_back([=] { access(x); });
    try {
      explore(program);
    } catch (const UsageError& usage) {
      return usage.what();
    }
    return "";
  };
  const std::vector<std::function<void(Var)>> sequentially_consistent{
      [](Var x) { x.load(kFull); },
      [](Var x) { x.store(1, kFull); },
      [](Var x) { x.fetch_add(1, kFull); },
      [](Var x) { x.exchange(1, kFull); },
      [](Var x) { x.compare_exchange(0, 1, kFull, kRelaxed); },
      [](Var x) { x.compare_exchange(0, 1, kAcquireRelease, kFull); },
  };
  for (const auto& access : sequentially_consistent) {
    EXPECT_EQ(error(access).find("a sequentially consistent access is not supported: use"), 0u);
  }
  EXPECT_EQ(error([](Var x) { x.load(kRelease); }), "a load does not release");
  EXPECT_EQ(error([](Var x) { x.store(1, kAcquire); }), "a store does not acquire");
  EXPECT_EQ(error([](Var x) { x.store(1, kAcquireRelease); }), "a store does not acquire");
  EXPECT_EQ(error([](Var x) { x.compare_exchange(0, 1, kAcquireRelease, kRelease); }),
            "a load does not release");
  EXPECT_EQ(error([](Var x) { x.fetch_add(1, kAcquireRelease); }), "");
  EXPECT_EQ(error([](Var) { fence(kFull); }), "");
}

TEST(ExplorerTest, AnEndlessThreadIsAUsageError) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] {
    for (;;) x.store(1, kRelaxed);
  });
  EXPECT_THROW(explore(program), UsageError);
}

TEST(ExplorerTest, TheShortestViolationIsFound) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] {
    for (int i = 0; i < 5; ++i) x.store(7, kRelaxed);
    x.store(8, kRelaxed);
  });
  program.threads.emplace_back([=] {
    for (int i = 0; i < 4; ++i) check(x.load(kRelaxed) != 7, "seven");
  });
  const Result first = explore(program);
  const Result shortest = explore_for_shortest(program);
  ASSERT_TRUE(first.violation && shortest.violation);
  EXPECT_LE(shortest.violation->events.size(), first.violation->events.size());
  EXPECT_EQ(shortest.violation->cause.what, "seven");
}

// The end of a search, where a bound is not a proof, and the end of an execution
// (Program::finally).

// Steps without a choice run at once, including a violation at their end.
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

// The search checks these bounds at every 256th state.
TEST(BoundsTest, TimeOrMemoryLimitEndsSearchWithoutProof) {
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
  EXPECT_EQ(explored({.memory_bytes = 1}).bound, "more than 0 MiB for the visited states");
}

// Program::finally runs after all threads have ended.
TEST(FinallyTest, SeesEveryThreadsWrites) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.fetch_add(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] { x.fetch_add(2, std::memory_order_relaxed); });
  program.finally = [=] { check(x.read() == 3, "an addition is lost"); };
  const Result result = explore(program);
  EXPECT_TRUE(result.proved());
  EXPECT_EQ(result.executions, 2u) << "either addition may come first";
}

// A blocked execution is not complete, so its outcome does not count.
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
