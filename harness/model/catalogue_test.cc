#include "harness/model/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/model/engine/compare.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/engine/trace_dot_testing.h"

namespace perfring::model {
namespace {

TEST(CatalogueTest, EveryProgramHasTheSameOutcomesIfMerged) {
  for (const Entry& entry : catalogue()) {
    Size size = entry.size.value_or(Size{});
    size.records = std::min(size.records, 4u);
    size.polls = std::min(size.polls, 2u);
    for (const Form form : {Form::A, Form::B}) {
      if (!entry.has_forms && form == Form::B) continue;
      for (const Case& one : entry.cases(size, form, "")) {
        SCOPED_TRACE(entry.name + " " + one.label);
        const Comparison comparison = compare_merged(one.program);
        EXPECT_EQ(comparison.differences, std::vector<std::string>{});
        EXPECT_EQ(comparison.each.bound + comparison.merged.bound, "");
        EXPECT_LE(comparison.merged.executions, comparison.each.executions);
      }
    }
  }
}

// One fault is one thing: it breaks the source that ships as it breaks the word-by-word protocol,
// in one form or on a machine.
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

// Calls `each` for every violation of the catalogue, in both forms.
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

}  // namespace
}  // namespace perfring::model
