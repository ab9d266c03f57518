#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/engine/trace_dot_testing.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"

namespace perfring::model {
namespace {

TEST(CatalogueTest, EveryProgramHasTheSameOutcomesIfMerged) {
  for (const Entry& entry : catalogue()) {
    Size size = entry.size.value_or(Size{});
    size.records = std::min(size.records, 4u);
    size.drains = std::min(size.drains, 2u);
    for (const Form form : {Form::A, Form::B}) {
      if (!entry.has_forms && form == Form::B) continue;
      for (const Case& one : entry.cases(size, form, "")) {
        SCOPED_TRACE(entry.name + " " + one.label);
        const Comparison comparison = compare_merged(one.program);
        EXPECT_EQ(comparison.differences, std::vector<std::string>{});
        EXPECT_EQ(comparison.each.bound + comparison.merged.bound, "");
        EXPECT_NE(comparison.each.not_proved(), kNoExecution);
        EXPECT_LE(comparison.merged.executions, comparison.each.executions);
      }
    }
  }
}

// A fault has one meaning: it breaks the source that ships if and only if it breaks the
// word-by-word protocol, in one of the forms or on a machine.
TEST(CatalogueTest, AFaultFailsInEveryProgramThatHasItOrInNone) {
  std::map<std::string, bool> known;
  for (const Entry& entry : catalogue()) {
    for (const ProgramFault& fault : entry.faults) {
      const bool fails =
          fault.fails_in_a || fault.fails_in_b || fault.fails_on(MemoryModel::AArch64);
      const auto found = known.try_emplace(fault.name, fails).first;
      EXPECT_EQ(found->second, fails) << fault.name << " in " << entry.name;
    }
  }
}

// Calls `each` for every violation in the catalogue, in both forms.
void for_each_violation(const std::function<void(const std::string&, const Trace&)>& each) {
  for (const Entry& entry : catalogue()) {
    std::vector<ProgramFault> faults{{"", "", entry.fails_in_a, entry.fails_in_b}};
    std::ranges::copy_if(entry.faults, std::back_inserter(faults),
                         [](const ProgramFault& fault) { return !fault.in_any_order; });
    for (const ProgramFault& fault : faults) {
      const Size size = (fault.name.empty() ? entry.size : entry.fault_size).value_or(Size{});
      for (const Form form : {Form::A, Form::B}) {
        if (!entry.has_forms && form == Form::B) continue;
        if (!(form == Form::A ? fault.fails_in_a : fault.fails_in_b)) continue;
        for (const Case& one : entry.cases(size, form, fault.name)) {
          const Result result = explore(one.program);
          if (!result.violation) continue;
          each(entry.name + " " + fault.name + " " + one.label, *result.violation);
        }
      }
    }
  }
}

TEST(CatalogueTest, EveryViolationIsDrawnCompletely) {
  std::set<std::string> causes;
  for_each_violation([&](const std::string& subject, const Trace& trace) {
    SCOPED_TRACE(subject);
    causes.insert(!trace.race.empty() ? "race" : trace.at_end ? "at the end" : "check");
    const std::string dot = trace_dot(trace, subject);
    EXPECT_THAT(dot, testing::HasSubstr("\"black\">" + subject + "<"));
    expect_complete(trace, dot);
  });
  EXPECT_EQ(causes, (std::set<std::string>{"race", "at the end", "check"}));
}

// The tests below check the source that ships, and the word-by-word protocol, in every execution
// that AArch64 and RISC-V allow. The expected outcome of each fault is from herd7, run on the
// part of the protocol that the fault breaks.

// Returns the violation of the first case that has one, or why nothing is proved: a search that was
// cut short is not a proof, and neither is a search without an execution.
std::string violated_in(const std::vector<Case>& cases, MemoryModel machine) {
  std::string not_proved = cases.empty() ? "no case" : "";
  for (const Case& each : cases) {
    const Result result = explore_machine(each.program, machine);
    if (result.violation) return result.violation->cause.what;
    not_proved += result.not_proved();
  }
  return not_proved;
}

class MachineProgramTest : public testing::TestWithParam<MemoryModel> {
 protected:
  static std::string violated(const Entry& entry, const Size& size, const std::string& fault) {
    return violated_in(entry.cases(size, Form::A, fault), GetParam());
  }
};

TEST_P(MachineProgramTest, ThereIsNoViolationInAnyUseOfTheRing) {
  std::size_t programs = 0;
  for (const Entry& entry : catalogue()) {
    if (!entry.machine_size) continue;
    EXPECT_EQ(violated(entry, *entry.machine_size, ""), "") << entry.name;
    ++programs;
  }
  EXPECT_EQ(programs, 12u);
}

TEST_P(MachineProgramTest, TheProtocolHoldsWhenRecordsAreOneWord) {
  EXPECT_EQ(violated(*find_entry("protocol"), {4, 4, {1}}, ""), "");
}

TEST_P(MachineProgramTest, EachFaultIsFoundIfItCanBe) {
  for (const Entry& entry : catalogue()) {
    if (!entry.machine_size) continue;
    for (const ProgramFault& fault : entry.faults) {
      // Faults shared with "ring" are checked in "ring". The faults of "ring/cursor" are built for
      // a Cursor, and are checked here.
      if (fault.shared && entry.name != "ring/cursor") continue;
      EXPECT_EQ(violated(entry, *entry.machine_size, fault.name) != "", fault.fails_on(GetParam()))
          << entry.name << " " << fault.name;
    }
  }
}

// Each fault leaves the rest of the protocol correct. The verdicts are from herd7 7.58, with
// aarch64.cat and riscv.cat.
TEST_P(MachineProgramTest, EachOrderHasTheVerdictOfHerd7) {
  const std::set<std::string> forbidden{"", "release_for_wmb", "release_for_full",
                                        "acquire_for_full"};
  const std::set<std::string> allowed{
      "no_smp_wmb",    "no_acquire_fence",     "acquire_fence_first",  "head_read_again",
      "no_full_fence", "store_store_for_full", "no_control_dependency"};
  const Entry& ring = *find_entry("ring");
  for (const std::string& order : forbidden) {
    EXPECT_EQ(violated(ring, *ring.machine_size, order), "") << order;
  }
  for (const std::string& order : allowed) {
    EXPECT_NE(violated(ring, *ring.machine_size, order), "") << order;
  }
}

TEST_P(MachineProgramTest, EachViolationIsDrawnAsMemorySeesIt) {
  const Entry& ring = *find_entry("ring");
  bool overtakes = false;
  for (const ProgramFault& fault : ring.faults) {
    if (fault.in_any_order) continue;
    for (const Case& each : ring.cases({3, 1, {5}}, Form::A, fault.name)) {
      const Result result = explore_machine(each.program, GetParam());
      if (!result.violation) continue;
      SCOPED_TRACE(fault.name);
      expect_complete(*result.violation, trace_dot(*result.violation, fault.name));
      overtakes = overtakes || result.violation->overtakes();
    }
  }
  EXPECT_TRUE(overtakes);
}

// The kernel's memory model has neither a release fence nor an acquire fence that orders stores.
TEST(KernelProtocolTest, FailsOnlyWithFaultDetectableInLkmm) {
  const Entry& protocol = *find_entry("protocol");
  const auto violated = [&](const std::string& fault) {
    const Size& size = *protocol.machine_size;
    return violated_in(protocol.cases(size, Form::Kernel, fault), MemoryModel::Lkmm);
  };
  EXPECT_EQ(violated(""), "");
  for (const ProgramFault& fault : protocol.faults) {
    if (!fault.can_run_on(MemoryModel::Lkmm)) {
      EXPECT_EQ(fault.name, "release_for_full");
      EXPECT_THROW(violated(fault.name), UsageError);
      continue;
    }
    EXPECT_EQ(violated(fault.name) != "", fault.fails_on(MemoryModel::Lkmm)) << fault.name;
  }
}

std::string name_of(const testing::TestParamInfo<MemoryModel>& machine) {
  return std::string{title(machine.param)}.substr(0, 4);
}

INSTANTIATE_TEST_SUITE_P(Machines, MachineProgramTest,
                         testing::Values(MemoryModel::AArch64, MemoryModel::RiscV), name_of);

}  // namespace
}  // namespace perfring::model
