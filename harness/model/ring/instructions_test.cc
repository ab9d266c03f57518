// Compares the table of instructions by which the hardware explorer orders a thread with the
// compiled source that ships: the fences_tests of lib/perfring/ring and harness/kernel match each
// processor's assembly, and this test reads the patterns that they expect. Also tests the checks
// that the model's memory does itself.

#include "harness/model/hardware/order.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/hardware/graph.h"
#include "harness/model/ring/model_memory.h"
#include "harness/model/ring/ring_program.h"
#include "harness/program/child_process.h"
#include "perfring/ring/memory.h"

namespace perfring::model {
namespace {

constexpr MemoryModel kMachines[] = {MemoryModel::AArch64, MemoryModel::RiscV};

constexpr const char* target_of(MemoryModel machine) {
  return machine == MemoryModel::AArch64 ? "aarch64-linux-gnu" : "riscv64-linux-gnu";
}

// Returns the patterns that a processor's assembly must match: the script's arguments after the
// target's name.
std::vector<std::regex> expected_of(const char* script, MemoryModel machine) {
  const std::string target = target_of(machine);
  std::ifstream file{script};
  std::vector<std::regex> all;
  for (std::string line; all.empty() && std::getline(file, line);) {
    if (!line.starts_with("check " + target + " ")) continue;
    const std::regex quoted{"'([^']*)'"};
    for (std::sregex_iterator i{line.begin(), line.end(), quoted}; i != std::sregex_iterator{};
         ++i) {
      all.emplace_back((*i)[1].str());
    }
  }
  return all;
}

// Returns the order of the fence that the code executes.
Order fence_of(const std::function<void()>& code, MemoryModel machine) {
  Program program;
  program.threads = {code};
  std::vector<Order> orders;
  MachineOptions options;
  options.on_execution = [&](const Graph& graph) {
    for (const Fence& fence : graph.fences()) orders.push_back(fence.step->order);
  };
  explore_machine(program, machine, options);
  EXPECT_EQ(orders.size(), 1u);
  return orders.at(0);
}

std::string in_assembly(std::initializer_list<std::string_view> instructions) {
  std::string text;
  for (const std::string_view each : instructions) text += " " + std::string{each} + ";";
  return text;
}
std::string access(std::string_view instruction) {
  return std::string{instruction} + " 0, 1";
}

// Returns a function as clang compiles it: "ld a0,0(a0); fence r,rw; ret;".
std::string compiled(const char* target, const std::string& function) {
  const ProcessResult ended = run_child(
      {"/usr/bin/clang-19", std::string{"--target="} + target, "-O2", "-S", "-xc", "-o-", "-"},
      function);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  std::istringstream assembly{ended.out};
  std::string text;
  const std::regex instruction{"^\\s+([a-z].*)"};
  for (std::string line; std::getline(assembly, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, instruction)) continue;
    line = std::regex_replace(match[1].str(), std::regex{"\\s*,\\s*"}, ",");
    text += std::regex_replace(line, std::regex{"\\s+"}, " ") + "; ";
  }
  return text;
}

TEST(InstructionsTest, FencesOfCAreThoseOfTheCompiler) {
  const std::pair<Order, const char*> orders[] = {
      {Order::Acquire, "__ATOMIC_ACQUIRE"},
      {Order::Release, "__ATOMIC_RELEASE"},
      {Order::AcquireRelease, "__ATOMIC_ACQ_REL"},
      {Order::SequentiallyConsistent, "__ATOMIC_SEQ_CST"}};
  for (const MemoryModel machine : kMachines) {
    for (const auto& [order, name] : orders) {
      const std::string code =
          std::string{"void f(void) { __atomic_thread_fence("} + name + "); }\n";
      EXPECT_EQ(compiled(target_of(machine), code),
                std::string{barrier_of(machine, order).instruction} + "; ret; ");
    }
  }
}

TEST(InstructionsTest, AtomicAccessesMatchCompiler) {
  const auto load = [](MemoryModel machine, const char* order) {
    return compiled(target_of(machine),
                    std::string{"long f(long* p) { return __atomic_load_n(p, "} + order + "); }\n");
  };
  const auto store = [](MemoryModel machine, const char* order) {
    return compiled(
        target_of(machine),
        std::string{"void f(long* p, long v) { __atomic_store_n(p, v, "} + order + "); }\n");
  };
  for (const MemoryModel machine : kMachines) {
    const auto barrier = [&](Order order) {
      return has_ordered_accesses(machine)
                 ? ""
                 : std::string{barrier_of(machine, order).instruction} + "; ";
    };
    const std::string from = machine == MemoryModel::AArch64 ? " x0,[x0]; " : " a0,0(a0); ";
    const std::string to = machine == MemoryModel::AArch64 ? " x1,[x0]; " : " a1,0(a0); ";
    const auto named = [](std::string_view name, const std::string& operands) {
      return std::string{name} + operands;
    };
    EXPECT_EQ(load(machine, "__ATOMIC_RELAXED"),
              named(load_of(machine, Order::Relaxed), from) + "ret; ");
    EXPECT_EQ(load(machine, "__ATOMIC_ACQUIRE"),
              named(load_of(machine, Order::Acquire), from) + barrier(Order::Acquire) + "ret; ");
    EXPECT_EQ(store(machine, "__ATOMIC_RELAXED"),
              named(store_of(machine, Order::Relaxed), to) + "ret; ");
    EXPECT_EQ(store(machine, "__ATOMIC_RELEASE"),
              barrier(Order::Release) + named(store_of(machine, Order::Release), to) + "ret; ");
  }
}

TEST(InstructionsTest, AConsumersFencesAreThoseOfItsAssembly) {
  const SharedPosition field = 0;
  for (const MemoryModel machine : kMachines) {
    const auto expected = expected_of("lib/perfring/ring/fences_test.sh", machine);
    ASSERT_EQ(expected.size(), 3u);
    const std::string load = access(load_of(machine, Order::Relaxed));
    const std::string store = access(store_of(machine, Order::Relaxed));
    const Barrier& after_head =
        barrier_of(machine, fence_of([&] { ModelMemory::fence_after_read_of(field); }, machine));
    const Barrier& before_tail =
        barrier_of(machine, fence_of([&] { ModelMemory::fence_before_write_of(field); }, machine));
    for (const FenceInstructions& each : kFenceInstructions) {
      const std::string_view fence = barrier_of(machine, each.order).instruction;
      EXPECT_EQ(std::regex_search(in_assembly({load, fence}), expected[0]),
                fence == after_head.instruction)
          << fence;
      EXPECT_EQ(std::regex_search(in_assembly({fence, store}), expected[1]),
                fence == before_tail.instruction)
          << fence;
    }
    EXPECT_TRUE(std::regex_search(in_assembly({load, load}), expected[2]));
  }
}

// HardwareCpu's smp_wmb() is the nearest fence that C++ has; the model's smp_wmb() orders no more
// than the kernel's.
TEST(InstructionsTest, TheKernelsFenceOrdersAtLeastWhatTheModelsDoes) {
  const __u64 field = 0;
  for (const MemoryModel machine : kMachines) {
    const auto expected = expected_of("harness/kernel/fences_test.sh", machine);
    ASSERT_EQ(expected.size(), 2u);
    const std::string word = machine == MemoryModel::AArch64 ? "str 0, 1" : "sw 0, 1";
    const std::string store = access(store_of(machine, Order::Relaxed));
    const Barrier& model =
        barrier_of(machine, fence_of([&] { ModelCpu{}.smp_wmb(field); }, machine));
    std::size_t found = 0;
    for (const FenceInstructions& each : kFenceInstructions) {
      const Barrier& barrier = barrier_of(machine, each.order);
      if (!std::regex_search(in_assembly({word, barrier.instruction, store}), expected[0]))
        continue;
      EXPECT_TRUE(barrier.orders_all_of(model)) << barrier.instruction;
      ++found;
    }
    EXPECT_GT(found, 0u);
    EXPECT_EQ(model.instruction, machine == MemoryModel::AArch64 ? "dmb ishst" : "fence w,w");
    EXPECT_FALSE(model.reads_reads || model.reads_writes || model.writes_reads);
  }
}

// Runs the code as one thread, and returns the check of the model's memory that it violates.
std::string violated(const std::function<void(ModelRing&)>& code) {
  Program program;
  const auto ring = std::make_shared<ModelRing>(program, 64, true, 0, 0);
  program.threads = {[=] {
    ModelRing::here = ring.get();
    code(*ring);
  }};
  const Result result = explore(program);
  return result.not_proved();
}

// The kernel uses 56 of the 64 bytes (K12), 24 of them for a LOST (K14).
TEST(ModelMemoryTest, RefusalIsJustifiedOnlyIfRecordDoesNotFit) {
  const auto refused = [](__u64 unread) {
    return violated([=](ModelRing& ring) {
      const ModelEvent kernel{ring, {}};
      ModelCpu cpu;
      cpu.record_bytes = 16;
      cpu.tail_read = kernel.rb.head - unread;
      cpu.on_drop(kernel.rb, kernel.event);
    });
  };
  EXPECT_EQ(refused(16), kRefused.text);
  EXPECT_EQ(refused(24), "");
}

TEST(ModelMemoryTest, AnAccessBetweenWordsOrPastTheLastIsOutside) {
  const auto read_at = [](std::size_t offset) {
    return violated([=](ModelRing& ring) { ring.read_word(ring.begin() + offset, Where::here()); });
  };
  EXPECT_EQ(read_at(60), "");
  EXPECT_EQ(read_at(62), kOutside.text);
  EXPECT_EQ(read_at(64), kOutside.text);
}

}  // namespace
}  // namespace perfring::model
