#include "harness/model/hardware/explorer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "harness/model/hardware/litmus_machine.h"

namespace perfring::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr MemoryModel kMachines[] = {MemoryModel::AArch64, MemoryModel::RiscV};

TEST(MachineExplorerTest, LitmusTestsHaveTheOutcomesAndExecutionsOfHerd7) {
  std::ifstream file{"harness/model/litmus/hardware.json"};
  std::map<MemoryModel, std::size_t> compared;
  for (const Litmus& litmus : read_litmus(file)) {
    for (const auto& [machine, expected] : litmus.expected) {
      if (machine == MemoryModel::Rc11) continue;
      SCOPED_TRACE(litmus.text.name + " " + std::string{to_string(machine)});
      const MachineAnswer answer = explore_litmus(litmus.text, machine);
      EXPECT_EQ(answer.outcomes, *expected.allowed);
      if (expected.executions) {
        EXPECT_EQ(answer.result.executions, *expected.executions);
      }
      ++compared[machine];
    }
  }
  EXPECT_EQ(compared[MemoryModel::AArch64], 88u);
  EXPECT_EQ(compared[MemoryModel::RiscV], 88u);
  EXPECT_GT(compared[MemoryModel::Lkmm], 60u);
}

TEST(MachineExplorerTest, AFenceThatReleasesIsUnknownToTheKernel) {
  for (const auto order : {std::memory_order_release, std::memory_order_acq_rel}) {
    Program program;
    program.threads = {[=] { fence(order); }};
    EXPECT_EQ(explore_machine(program, MemoryModel::AArch64).executions, 1u);
    EXPECT_THROW(explore_machine(program, MemoryModel::Lkmm), UsageError);
  }
}

// Load buffering, in which each thread checks that it reads 0. Without a dependency both may fail.
Program load_buffering(bool control) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  const auto thread = [control](Var from, Var to) {
    return [=] {
      const bool zero = from.load(kRelaxed) == 0;
      if (control) control_dependency(last_read());
      to.store(1, kRelaxed);
      check(zero, "not 0");
    };
  };
  program.threads = {thread(x, y), thread(y, x)};
  program.thread_names = {"left"};
  return program;
}

TEST(MachineExplorerTest, AReadMayReadFromAStoreThatComesLater) {
  for (const MemoryModel machine : kMachines) {
    MachineOptions options;
    options.all = true;
    const Result result = explore_machine(load_buffering(false), machine, options);
    EXPECT_EQ(result.violations, 3u);  // of one, of the other, of both
    ASSERT_TRUE(result.violation.has_value());
    EXPECT_EQ(result.violation->threads, (std::vector<std::string>{"left", "thread 1"}));
    EXPECT_EQ(explore_machine(load_buffering(true), machine, options).violations, 2u);
  }
}

TEST(MachineExplorerTest, ARelaxedFenceOrdersNothing) {
  for (const MemoryModel machine : kMachines) {
    for (const auto order : {kRelaxed, std::memory_order_acquire}) {
      Program program;
      const Var x = program.var("x"), y = program.var("y");
      const auto thread = [order](Var from, Var to) {
        return [=] {
          const bool zero = from.load(kRelaxed) == 0;
          fence(order);
          to.store(1, kRelaxed);
          check(zero, "not 0");
        };
      };
      program.threads = {thread(x, y), thread(y, x)};
      MachineOptions options;
      options.all = true;
      EXPECT_EQ(explore_machine(program, machine, options).violations, order == kRelaxed ? 3u : 2u);
    }
  }
}

// The value comes from the second store, which depends on nothing.
TEST(MachineExplorerTest, AStoreForwardsItsOwnDependencyOnly) {
  Program program;
  const Var x = program.var("x"), y = program.var("y"), z = program.var("z");
  program.threads.emplace_back([=] {
    const std::uint64_t read = x.load(kRelaxed);
    data_dependency(last_read());
    y.store(read, kRelaxed);
    y.store(2, kRelaxed);
    y.load(std::memory_order_acquire);
    z.store(1, kRelaxed);
    check(read == 0, "load buffering");
  });
  program.threads.emplace_back([=] {
    const bool stored = z.load(kRelaxed) == 1;
    control_dependency(last_read());
    if (stored) x.store(1, kRelaxed);
  });
  EXPECT_TRUE(explore_machine(program, MemoryModel::AArch64).violation.has_value());
}

// Nor does it pass the dependency on to the thread's next store, whatever the read between returns.
TEST(MachineExplorerTest, ADependencyEndsWithItsStore) {
  for (const std::uint64_t between : {0u, 1u}) {
    Program program;
    const Var x = program.var("x"), y = program.var("y"), z = program.var("z"),
              w = program.var("w");
    program.threads.emplace_back([=] {
      const std::uint64_t read = x.load(kRelaxed);
      data_dependency(last_read());
      y.store(read, kRelaxed);
      const bool reached = w.load(kRelaxed) == between;
      z.store(1, kRelaxed);
      check(read == 0 || !reached, "load buffering");
    });
    program.threads.emplace_back([=] {
      const bool stored = z.load(kRelaxed) == 1;
      control_dependency(last_read());
      if (stored) x.store(1, kRelaxed);
    });
    program.threads.emplace_back([=] { w.store(1, kRelaxed); });
    EXPECT_TRUE(explore_machine(program, MemoryModel::AArch64).violation.has_value()) << between;
  }
}

// The store that the check's thread does later is what the other one needs.
TEST(MachineExplorerTest, AThreadGoesOnAfterACheckThatFails) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  program.threads.emplace_back([=] {
    const bool stored = y.load(kRelaxed) == 1;
    control_dependency(last_read());
    if (stored) x.store(1, kRelaxed);
  });
  program.threads.emplace_back([=] {
    check(x.load(kRelaxed) == 0, "x");
    y.store(1, kRelaxed);
  });
  for (const MemoryModel machine : kMachines) {
    const Result result = explore_machine(program, machine);
    ASSERT_TRUE(result.violation.has_value());
    EXPECT_EQ(result.violation->cause.what, "x");
    // Memory may see: y := 1, read of y, x := 1, read of x.
    std::vector<std::string> seen;
    for (const TraceEvent& event : result.violation->events) seen.push_back(to_string(event));
    EXPECT_EQ(seen, (std::vector<std::string>{"y := 0x1 relaxed", "y = 0x1 relaxed",
                                              "x := 0x1 relaxed", "x = 0x1 relaxed"}));
    const std::vector<TraceEvent>& events = result.violation->events;
    EXPECT_EQ(events[1].reads_from, 1u);
    EXPECT_EQ(events[3].reads_from, 3u);
    EXPECT_EQ(events[0].overtakes, 4u);
    EXPECT_FALSE(events[1].overtakes || events[2].overtakes || events[3].overtakes);
    EXPECT_EQ(result.violation->violated, std::vector<std::size_t>{4});
  }
}

TEST(MachineExplorerTest, FinallySeesEveryThreadsStores) {
  Program program;
  const Var x = program.var("x", 5), y = program.var("y");
  program.threads = {[=] { y.store(1, kRelaxed); }, [=] { y.store(2, kRelaxed); }};
  program.finally = [=] {
    check(x.load(kRelaxed) == 5, "the initial value");
    check(y.load(kRelaxed) != 1, "the last store");
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

TEST(MachineExplorerTest, AnAssumptionThatDoesNotHoldBlocksTheExecution) {
  Program program;
  const Var x = program.var("x");
  program.threads = {[=] { x.store(1, kRelaxed); }, [=] { assume(x.load(kRelaxed) == 1); }};
  const Result result = explore_machine(program, MemoryModel::RiscV);
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

TEST(MachineExplorerTest, AnAssumptionOfFinallyThatDoesNotHoldBlocksTheExecution) {
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

TEST(MachineExplorerTest, MoreAccessesThanAGraphHoldsAreNoProof) {
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

// They are looked at now and then: at each 256th state.
TEST(MachineExplorerTest, TimeAndMemoryEndTheSearchWithoutAProof) {
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

TEST(MachineExplorerTest, BoundsEndTheSearchWithoutAProof) {
  const auto bound = [](const Bounds& bounds) {
    MachineOptions options;
    options.bounds = bounds;
    options.all = true;
    return explore_machine(load_buffering(true), MemoryModel::AArch64, options).bound;
  };
  EXPECT_EQ(bound({}), "");
  EXPECT_EQ(bound({.events = 3}), "more than 3 events in an execution");
  EXPECT_EQ(bound({.executions = 0}), "more than 0 executions");
  std::atomic<bool> stop{true};
  MachineOptions options;
  options.stop = &stop;
  EXPECT_EQ(explore_machine(load_buffering(true), MemoryModel::RiscV, options).bound,
            "interrupted");
}

TEST(MachineExplorerTest, AnUpdateIsRefused) {
  Program program;
  const Var x = program.var("x");
  program.threads = {[=] { x.fetch_add(1, kRelaxed); }};
  EXPECT_THROW(explore_machine(program, MemoryModel::AArch64), UsageError);
  Program at_end;
  const Var y = at_end.var("y");
  at_end.threads = {[] {}};
  at_end.finally = [=] { y.exchange(1, kRelaxed); };
  EXPECT_THROW(explore_machine(at_end, MemoryModel::AArch64), UsageError);
}

}  // namespace
}  // namespace perfring::model
