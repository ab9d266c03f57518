#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "harness/program/counted.h"

namespace perfring::model {

void compare(const Litmus& litmus, MemoryModel memory_model, LitmusVerdict& verdict) {
  const auto differ = [&](std::string what) { verdict.differences.push_back(std::move(what)); };
  const bool race = verdict.result.violation.has_value();
  const auto found = litmus.expected.find(memory_model);
  const bool of_rc11 = memory_model == MemoryModel::Rc11;  // the others know no races
  verdict.compared = found != litmus.expected.end() || (of_rc11 && litmus.race_given);
  if (!verdict.compared) return;
  if (of_rc11 && race != litmus.race) {
    differ(race ? "a race that should not be" : "no race found");
  }
  if (race || litmus.race || found == litmus.expected.end()) return;
  const Expectation& expected = found->second;
  if (expected.allowed) {
    for (const Outcome& outcome : *expected.allowed) {
      if (verdict.outcomes.contains(outcome)) continue;
      differ("not found: " + nlohmann::json(outcome).dump());
    }
    for (const Outcome& outcome : verdict.outcomes) {
      if (expected.allowed->contains(outcome)) continue;
      differ("not allowed: " + nlohmann::json(outcome).dump());
    }
  }
  verdict.counted = expected.executions.has_value();
  if (verdict.counted && *expected.executions != verdict.result.executions) {
    differ(fmt::format("{}, not {}", counted(verdict.result.executions, "execution"),
                       *expected.executions));
  }
}

LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options) {
  LitmusVerdict verdict;
  options.on_execution = [&](const Execution& x) {
    verdict.outcomes.insert(outcome_of(litmus.text, x));
  };
  verdict.result = explore(litmus.program, options);
  // Where a bound is reached, nothing is known of the rest.
  if (verdict.result.bound.empty()) compare(litmus, MemoryModel::Rc11, verdict);
  return verdict;
}

}  // namespace perfring::model
