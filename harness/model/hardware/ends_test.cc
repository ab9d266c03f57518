// Tests the end of an execution on a machine (at a check that fails, blocked, or with
// Program::finally), and the end of a search at a bound, which is not a proof.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/trace.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/hardware/order.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {
namespace {

TEST(MachineEndsTest, ATraceNamesTheStoreBeforeEachStore) {
  Program program;
  const Var x = program.var("x");
  program.threads = {[=] {
    for (const std::uint64_t value : {1u, 2u, 3u}) x.store(value, kRelaxed);
    check(false, "always");
  }};
  const Trace trace = explore_machine(program, MemoryModel::AArch64).violation.value();
  ASSERT_EQ(trace.events.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(trace.events[i].after, i);
}

TEST(MachineEndsTest, FinallySeesEveryThreadsStores) {
  Program program;
  const Var x = program.var("x", 5), y = program.var("y");
  program.threads = {[=] { y.store(1, kRelaxed); }, [=] { y.store(2, kRelaxed); }};
  program.finally = [=] {
    check(x.load(kRelaxed) == 5, "the initial value");
    check(y.load(kRelaxed) != 1, "the last store");
    x.store(6, kRelaxed);
    check(x.load(kRelaxed) == 6, "its own store");
  };
  MachineOptions options;
  options.all = true;
  const Result result = explore_machine(program, MemoryModel::AArch64, options);
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.violations, 1u);
  EXPECT_EQ(result.violation->cause.what, "the last store");
  EXPECT_TRUE(result.violation->at_end);
  EXPECT_EQ(result.violation->events.size(), 2u);
}

TEST(MachineEndsTest, AnAssumptionThatDoesNotHoldBlocksTheExecution) {
  Program program;
  const Var x = program.var("x");
  program.threads = {[=] { x.store(1, kRelaxed); }, [=] { assume(x.load(kRelaxed) == 1); }};
  const Result result = explore_machine(program, MemoryModel::RiscV);
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

// Any of the threads may be the blocked one. The final state of such an execution is not checked.
TEST(MachineEndsTest, FinallyDoesNotRunAfterABlockedExecution) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  program.threads = {[=] {
                       assume(x.load(kRelaxed) == 1);
                       y.store(1, kRelaxed);
                     },
                     [=] { x.store(1, kRelaxed); }};
  program.finally = [=] { check(y.load(kRelaxed) == 1, "an execution that is blocked"); };
  const Result result = explore_machine(program, MemoryModel::RiscV);
  EXPECT_FALSE(result.violation.has_value());
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

// A thread's checks count although another thread's assumption does not hold, before or after them.
TEST(MachineEndsTest, FailedCheckInBlockedExecutionIsViolation) {
  for (const bool blocks_first : {false, true}) {
    Program program;
    const Var x = program.var("x"), y = program.var("y");
    program.threads = {[=] { check(x.load(kRelaxed) == 0, "x"); },
                       [=] {
                         x.store(1, kRelaxed);
                         assume(y.load(kRelaxed) == 1);
                       }};
    if (blocks_first) std::swap(program.threads[0], program.threads[1]);
    const Result result = explore_machine(program, MemoryModel::AArch64);
    ASSERT_TRUE(result.violation.has_value()) << blocks_first;
    EXPECT_EQ(result.violation->cause.what, "x");
    EXPECT_EQ(result.executions, 0u);
  }
}

// The thread continues after the first check, because the store that it has read is still to come.
TEST(MachineEndsTest, TheFirstOfTwoChecksThatFailIsShown) {
  Program program;
  const Var x = program.var("x");
  program.threads = {[=] {
                       const bool zero = x.load(kRelaxed) == 0;
                       check(zero, "the first");
                       check(zero, "the second");
                     },
                     [=] { x.store(1, kRelaxed); }};
  EXPECT_EQ(explore_machine(program, MemoryModel::AArch64).violation->cause.what, "the first");
}

TEST(MachineEndsTest, FailedAssumptionInFinallyBlocksExecution) {
  Program program;
  const Var x = program.var("x");
  program.threads = {[=] { x.store(1, kRelaxed); }, [=] { x.store(2, kRelaxed); }};
  program.finally = [=] {
    const bool first = x.load(kRelaxed) == 1;
    assume(first);
    check(first, "an execution that is blocked");
  };
  const Result result = explore_machine(program, MemoryModel::AArch64);
  EXPECT_FALSE(result.violation.has_value());
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

TEST(MachineEndsTest, MoreAccessesThanAGraphHoldsAreNoProof) {
  const auto bound = [](std::size_t stores) {
    Program program;
    const Var x = program.var("x");
    program.threads = {[=] {
      for (std::size_t i = 0; i < stores; ++i) x.store(1, kRelaxed);
    }};
    const Result result = explore_machine(program, MemoryModel::AArch64);
    EXPECT_EQ(result.proved(), result.bound.empty());
    return result.bound;
  };
  EXPECT_EQ(bound(kMachineEventsMax), "");
  EXPECT_EQ(bound(kMachineEventsMax + 1), "more than 256 events in an execution");
}

// The search checks these bounds at every 256th state.
TEST(MachineEndsTest, TimeOrMemoryLimitEndsSearchWithoutProof) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  const auto thread = [](Var from, Var to) {
    return [=] {
      for (std::uint64_t i = 1; i < 4; ++i) {
        to.store(i, kRelaxed);
        from.load(kRelaxed);
      }
    };
  };
  program.threads = {thread(x, y), thread(y, x)};
  const auto explored = [&](const Bounds& bounds) {
    MachineOptions options;
    options.bounds = bounds;
    return explore_machine(program, MemoryModel::AArch64, options);
  };
  const Result whole = explored({});
  EXPECT_TRUE(whole.proved());
  EXPECT_GT(whole.states, 256u);
  EXPECT_EQ(explored({.seconds = 1e-9}).bound, "more than 1e-09 s");
  EXPECT_EQ(explored({.memory_bytes = 1}).bound, "more than 0 MiB for the threads' steps");
}

// Returns a program with one execution in which no check fails, and two in which one fails.
Program without_load_buffering() {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  const auto thread = [](Var from, Var to) {
    return [=] {
      const bool zero = from.load(kRelaxed) == 0;
      control_dependency(last_read());
      to.store(1, kRelaxed);
      check(zero, "not 0");
    };
  };
  program.threads = {thread(x, y), thread(y, x)};
  return program;
}

TEST(MachineEndsTest, BoundsEndTheSearchWithoutAProof) {
  const auto bound = [](const Bounds& bounds) {
    MachineOptions options;
    options.bounds = bounds;
    options.all = true;
    return explore_machine(without_load_buffering(), MemoryModel::AArch64, options).bound;
  };
  EXPECT_EQ(bound({}), "");
  EXPECT_EQ(bound({.events = 3}), "more than 3 events in an execution");
  EXPECT_EQ(bound({.executions = 0}), "more than 0 executions");
  EXPECT_EQ(bound({.executions = 1}), "");  // the exact number
  std::atomic<bool> stop{true};
  MachineOptions options;
  options.stop = &stop;
  EXPECT_EQ(explore_machine(without_load_buffering(), MemoryModel::RiscV, options).bound,
            "interrupted");
}

}  // namespace
}  // namespace perfring::model
