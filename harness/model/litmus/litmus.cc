#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "harness/program/counted.h"

namespace perfring::model {
namespace {

Outcome outcome_of(const Litmus& litmus, const Execution& x) {
  Outcome all;
  for (std::size_t i = 0; i < litmus.program.locations.size(); ++i) {
    all[litmus.program.locations[i].name] =
        static_cast<std::int64_t>(x.events[x.latest[i]].written);
  }
  for (const Event& event : x.events) {
    if (event.reads_from == kNone) continue;
    const std::string& name = litmus.registers[event.thread].at(event.step->where.line);
    all[fmt::format("{}:{}", event.thread, name)] = static_cast<std::int64_t>(event.read);
  }
  Outcome observed;
  for (const std::string& name : litmus.observed) {
    const auto found = all.find(name);
    observed[name] = found == all.end() ? litmus.unset_register : found->second;
  }
  return observed;
}

}  // namespace

LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options) {
  LitmusVerdict verdict;
  options.on_execution = [&](const Execution& x) {
    verdict.outcomes.insert(outcome_of(litmus, x));
  };
  verdict.result = explore(litmus.program, options);
  const auto differ = [&](std::string what) { verdict.differences.push_back(std::move(what)); };
  if (!verdict.result.bound.empty()) return verdict;  // nothing is known of the rest
  const bool race = verdict.result.violation.has_value();
  if (race != litmus.race) differ(race ? "a race that should not be" : "no race found");
  if (race || litmus.race) return verdict;
  for (const Outcome& outcome : litmus.allowed) {
    if (!verdict.outcomes.contains(outcome)) differ("not found: " + nlohmann::json(outcome).dump());
  }
  for (const Outcome& outcome : verdict.outcomes) {
    if (!litmus.allowed.contains(outcome)) differ("not allowed: " + nlohmann::json(outcome).dump());
  }
  verdict.counted = litmus.executions.has_value();
  if (verdict.counted && *litmus.executions != verdict.result.executions) {
    differ(fmt::format("{}, not {}", counted(verdict.result.executions, "execution"),
                       *litmus.executions));
  }
  return verdict;
}

}  // namespace perfring::model
