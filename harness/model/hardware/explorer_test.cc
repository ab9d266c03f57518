#include "harness/model/hardware/explorer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "harness/model/engine/trace.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/hardware/litmus_machine.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/text.h"
#include "harness/model/reference/enumerate.h"

namespace perfring::model {
namespace {

constexpr MemoryModel kMachines[] = {MemoryModel::AArch64, MemoryModel::RiscV};

TEST(MachineExplorerTest, LitmusTestsMatchHerd7) {
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

// The search and the axioms could both be wrong here. In each program the forbidden outcome closes
// the cycle in the program's name, and only the fence or the relation in the name forbids it.
TEST(MachineExplorerTest, OutcomeForbiddenByOneFenceIsNeverFound) {
  std::istringstream file{R"([
      {"name": "x1 -> y1 -co-> y2 -fence.tso, dmb ish-> x2 -co-> x1", "race": false,
       "locations": {"x": "", "y": ""}, "observed": ["x", "y"],
       "ops": [[["W", "x", 1, "rlx"], ["W", "y", 1, "rel"]],
               [["W", "y", 2, "rlx"], ["F", "ar"], ["W", "x", 2, "rlx"]]],
       "allowed_aarch64": [{"x": 1, "y": 1}, {"x": 2, "y": 1}, {"x": 2, "y": 2}],
       "allowed_riscv": [{"x": 1, "y": 1}, {"x": 2, "y": 1}, {"x": 2, "y": 2}]},
      {"name": "x1 -fence rw,w before z-> y1 -co-> y2 -> x2 -co-> x1", "race": false,
       "locations": {"x": "", "y": "", "z": ""}, "observed": ["x", "y"],
       "ops": [[["W", "x", 1, "rlx"], ["W", "z", 1, "rel"], ["W", "y", 1, "rlx"]],
               [["W", "y", 2, "rlx"], ["W", "x", 2, "rel"]]],
       "allowed_aarch64": [{"x": 1, "y": 1}, {"x": 1, "y": 2}, {"x": 2, "y": 1}, {"x": 2, "y": 2}],
       "allowed_riscv": [{"x": 1, "y": 1}, {"x": 2, "y": 1}, {"x": 2, "y": 2}]},
      {"name": "x1 -> y1 -rf-> a -> x3 -co-> x2 -co-> x1", "race": false,
       "locations": {"x": "", "y": ""}, "observed": ["2:a", "x"],
       "ops": [[["W", "x", 1, "rlx"], ["W", "y", 1, "rel"]], [["W", "x", 2, "rlx"]],
               [["R", "a", "y", "rlx"], ["W", "x", 3, "rel"]]],
       "allowed_lkmm": [{"2:a": 0, "x": 1}, {"2:a": 0, "x": 2}, {"2:a": 0, "x": 3},
                        {"2:a": 1, "x": 2}, {"2:a": 1, "x": 3}]},
      {"name": "y2 -co-> y1 -mb-> x1 -rf-> b -> x2 -rf-> a -> y2, of which all after mb is hb",
       "race": false, "locations": {"x": "", "y": ""}, "observed": ["1:a", "2:b", "y"],
       "ops": [[["W", "y", 1, "rlx"], ["F", "sc"], ["W", "x", 1, "rlx"]],
               [["R", "a", "x", "rlx"], ["W", "y", 2, "rel"]],
               [["R", "b", "x", "rlx"], ["W", "x", 2, "rlx"]]],
       "allowed_lkmm": [{"1:a": 0, "2:b": 0, "y": 1}, {"1:a": 0, "2:b": 0, "y": 2},
                        {"1:a": 0, "2:b": 1, "y": 1}, {"1:a": 0, "2:b": 1, "y": 2},
                        {"1:a": 1, "2:b": 0, "y": 2}, {"1:a": 1, "2:b": 1, "y": 2},
                        {"1:a": 2, "2:b": 0, "y": 1}, {"1:a": 2, "2:b": 0, "y": 2},
                        {"1:a": 2, "2:b": 1, "y": 2}]}])"};
  int explored = 0;
  for (const Litmus& litmus : read_litmus(file)) {
    for (const auto& [machine, expected] : litmus.expected) {
      SCOPED_TRACE(litmus.text.name + " " + std::string{to_string(machine)});
      EXPECT_EQ(explore_litmus(litmus.text, machine).outcomes, *expected.allowed);
      EXPECT_EQ(reference::enumerate(litmus.text, machine).outcomes, *expected.allowed);
      ++explored;
    }
  }
  EXPECT_EQ(explored, 6);
}

TEST(MachineExplorerTest, AFenceThatReleasesIsUnknownToTheKernel) {
  for (const auto order : {std::memory_order_release, std::memory_order_acq_rel}) {
    Program program;
    program.threads = {[=] { fence(order); }};
    EXPECT_EQ(explore_machine(program, MemoryModel::AArch64).executions, 1u);
    EXPECT_THROW(explore_machine(program, MemoryModel::Lkmm), UsageError);
  }
}

// A register that two reads set has the second value, and a dependency on it is one on the second
// read alone: z may be stored before x is read, but not before y is read.
TEST(MachineExplorerTest, ARegisterIsThatOfItsLastRead) {
  for (const char* dependent : {R"(["CTRL", "a"], ["W", "z", 1, "rlx"])", R"(["WR", "z", "a"])"}) {
    std::istringstream file{R"([{"name": "LB", "locations": {"x": "", "y": "", "z": ""},
        "observed": ["0:a", "1:b"], "race": false, "executions_aarch64": 0,
        "ops": [[["R", "a", "x", "rlx"], ["R", "a", "y", "rlx"], ["R", "c", "y", "rlx"], )" +
                            std::string{dependent} + R"(],
                [["R", "b", "z", "rlx"], ["F", "sc"], ["W", "x", 1, "rlx"], ["W", "y", 1, "rlx"]]]
        }])"};
    const LitmusText text = read_litmus(file).at(0).text;
    for (const MemoryModel machine : kMachines) {
      const MachineAnswer answer = explore_litmus(text, machine);
      const auto expected = reference::enumerate(text, machine);
      EXPECT_EQ(answer.outcomes, expected.outcomes) << dependent;
      EXPECT_EQ(answer.result.executions, expected.executions) << dependent;
    }
  }
}

// Found by random programs: a store to x or y happens only if the other one is read as 1, but x is
// also stored unconditionally. If the program does not declare the dependencies of the stores on
// the branches, the axioms alone allow each read to return a value that depends on the other read.
TEST(MachineExplorerTest, NoStoreHappensForItsOwnSake) {
  for (const char* branch : {"", R"(["CTRL", "a"], )"}) {
    const std::string with = branch;
    std::istringstream file{R"([{"name": "X", "locations": {"x": "", "y": ""},
        "observed": ["0:a", "1:a"], "race": false, "allowed_rc11": [],
        "ops": [[["R", "a", "y", "rlx"], )" +
                            with + R"(["IF", "a", 1, [["W", "x", 1, "rlx"]]]],
                [["R", "a", "x", "rlx"], ["W", "x", 1, "rlx"], )" +
                            with + R"(["IF", "a", 1, [["W", "y", 1, "rlx"]]]]]}])"};
    const LitmusText text = read_litmus(file).at(0).text;
    const std::set<LitmusOutcome> zeros{{{"0:a", 0}, {"1:a", 0}}};
    for (const MemoryModel machine :
         {MemoryModel::AArch64, MemoryModel::RiscV, MemoryModel::Lkmm}) {
      EXPECT_EQ(explore_litmus(text, machine).outcomes, zeros);
      EXPECT_EQ(reference::enumerate(text, machine).outcomes == zeros, !with.empty());
    }
  }
}

// Load buffering: each thread checks that it reads 0. Without a dependency both checks may fail.
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
    EXPECT_EQ(result.violations, 3u);  // in one thread, in the other, in both
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

// The value read is that of the second store, which has no dependency.
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

// A dependency does not pass to the thread's next store, whichever value the read between returns.
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

// The other thread needs the store that follows the failed check.
TEST(MachineExplorerTest, AThreadContinuesAfterAFailedCheck) {
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
    std::vector<std::string> lines;
    for (const TraceEvent& event : result.violation->events) lines.push_back(to_string(event));
    EXPECT_EQ(lines, (std::vector<std::string>{"y := 0x1 relaxed", "y = 0x1 relaxed",
                                               "x := 0x1 relaxed", "x = 0x1 relaxed"}));
    const std::vector<TraceEvent>& events = result.violation->events;
    EXPECT_EQ(events[1].reads_from, 1u);
    EXPECT_EQ(events[3].reads_from, 3u);
    EXPECT_EQ(events[0].overtakes, 4u);
    EXPECT_FALSE(events[1].overtakes || events[2].overtakes || events[3].overtakes);
    EXPECT_EQ(result.violation->violated, std::vector<std::size_t>{4});
  }
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
