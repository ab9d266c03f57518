#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "harness/program/counted.h"

namespace perfring::model {
LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options) {
  LitmusVerdict verdict;
  options.on_execution = [&](const Execution& x) {
    verdict.outcomes.insert(outcome_of(litmus.text, x));
  };
  verdict.result = explore(litmus.program, options);
  const auto differ = [&](std::string what) { verdict.differences.push_back(std::move(what)); };
  if (!verdict.result.bound.empty()) return verdict;  // nothing is known of the rest
  const bool race = verdict.result.violation.has_value();
  if (race != litmus.race) differ(race ? "a race that should not be" : "no race found");
  if (race || litmus.race) return verdict;
  const Expectation& expected = litmus.expected.at(MemoryModel::Rc11);
  for (const Outcome& outcome : expected.allowed) {
    if (!verdict.outcomes.contains(outcome)) differ("not found: " + nlohmann::json(outcome).dump());
  }
  for (const Outcome& outcome : verdict.outcomes) {
    if (!expected.allowed.contains(outcome))
      differ("not allowed: " + nlohmann::json(outcome).dump());
  }
  verdict.counted = expected.executions.has_value();
  if (verdict.counted && *expected.executions != verdict.result.executions) {
    differ(fmt::format("{}, not {}", counted(verdict.result.executions, "execution"),
                       *expected.executions));
  }
  return verdict;
}

}  // namespace perfring::model
