// Compares the model checker's engine with the axioms (harness/model/reference) on random programs.
// For a long run: RC_PARAMS="max_success=1000000" bazel run --config=opt //proptests:litmus_test

#include "proptests/litmus.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/model/engine/execution.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/hardware/litmus_machine.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/reference/enumerate.h"
#include "harness/program/sanitizers.h"
#include "proptests/property.h"

namespace perfring::proptests {
namespace {

using model::LitmusOutcome;
using model::LitmusText;
using model::MemoryModel;
using model::reference::Enumeration;

struct Explored {
  model::Result result;
  std::set<LitmusOutcome> outcomes;
};

Explored explored(const LitmusText& text, bool merge) {
  Explored explored;
  model::ExploreOptions options;
  options.merge = merge;
  options.on_execution = [&](const model::Execution& x) {
    explored.outcomes.insert(outcome_of(text, x));
  };
  explored.result = explore(program_of(text), options);
  RC_ASSERT(explored.result.bound == "");
  return explored;
}

// Returns only the final values of memory: where the explorer merges states, it does not keep the
// registers of threads that have ended.
std::set<LitmusOutcome> memory_of(const std::set<LitmusOutcome>& outcomes) {
  std::set<LitmusOutcome> memory;
  for (LitmusOutcome outcome : outcomes) {
    std::erase_if(outcome, [](const auto& each) { return each.first.contains(':'); });
    memory.insert(outcome);
  }
  return memory;
}

// Returns nullopt if the program is too large for the reference.
std::optional<Enumeration> enumerated(const LitmusText& text, MemoryModel model) {
  try {
    return model::reference::enumerate(text, model);
  } catch (const model::UsageError&) {
    return std::nullopt;
  }
}

void expect_agreement(const LitmusText& text) {
  const std::optional<Enumeration> enumerated_answer = enumerated(text, MemoryModel::Rc11);
  RC_PRE(enumerated_answer.has_value());
  const Enumeration& answer = *enumerated_answer;
  const Explored each = explored(text, false);
  const Explored merged = explored(text, true);
  RC_ASSERT(each.result.violation.has_value() == answer.race);
  RC_ASSERT(merged.result.violation.has_value() == answer.race);
  if (answer.race) return;
  RC_ASSERT(each.outcomes == answer.outcomes);
  RC_ASSERT(each.result.executions == answer.executions);
  RC_ASSERT(each.result.blocked == answer.blocked);
  RC_ASSERT(memory_of(merged.outcomes) == memory_of(answer.outcomes));
  RC_ASSERT((merged.result.blocked != 0) == (answer.blocked != 0));
}

// Under ThreadSanitizer, creating fibers is so slow and takes so much memory that 5000 programs
// need an hour and 8 GiB. All of them run in one thread, where ThreadSanitizer has nothing to find.
#ifdef PERFRING_TSAN
constexpr int kPrograms = 250;
#else
constexpr int kPrograms = 5000;
#endif

TEST(ExplorerPropertyTest, ExploresTheExecutionsThatTheAxiomsAllow) {
  always([] { expect_agreement(*litmus_programs()); }, kPrograms);
}

// Replaces release fences with full fences, because LKMM has no release fence.
void make_fences_full(std::vector<model::Op>& ops) {
  for (model::Op& op : ops) {
    using Order = model::Op::Order;
    const bool releases = op.order == Order::Release || op.order == Order::AcquireRelease;
    if (op.kind == model::Op::Kind::Fence && releases) op.order = Order::SequentiallyConsistent;
    make_fences_full(op.body);
  }
}

class MachineExplorerPropertyTest : public ::testing::TestWithParam<MemoryModel> {};

void expect_machine_agreement(LitmusText text, MemoryModel machine) {
  if (machine == MemoryModel::Lkmm) {
    for (auto& thread : text.threads) make_fences_full(thread);
  }
  const std::optional<Enumeration> answer = enumerated(text, machine);
  RC_PRE(answer.has_value());
  const model::MachineAnswer explored = model::explore_litmus(text, machine);
  RC_ASSERT(explored.result.bound == "");
  RC_ASSERT(explored.outcomes == answer->outcomes);
  RC_ASSERT(explored.result.executions == answer->executions);
  RC_ASSERT(explored.result.blocked == answer->blocked);
}

TEST_P(MachineExplorerPropertyTest, ExploresExecutionsThatAxiomsAllow) {
  always([] { expect_machine_agreement(*hardware_programs(), GetParam()); }, kPrograms);
}

INSTANTIATE_TEST_SUITE_P(Machines, MachineExplorerPropertyTest,
                         ::testing::Values(MemoryModel::AArch64, MemoryModel::RiscV,
                                           MemoryModel::Lkmm),
                         [](const auto& machine) { return std::string{to_string(machine.param)}; });

}  // namespace
}  // namespace perfring::proptests
