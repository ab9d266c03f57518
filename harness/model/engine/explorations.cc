#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/engine/execution.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/trace.h"

namespace perfring::model {

std::string Result::not_proved() const {
  if (violation) return violation->cause.what;
  if (!bound.empty()) return bound;
  return executions == 0 ? kNoExecution : "";
}

Result explore_for_shortest(const Program& program, const ExploreOptions& options) {
  Result result = explore(program, options);
  constexpr double kSecondsToShorten = 10;
  ExploreOptions shorter = options;
  shorter.bounds.seconds = std::min(options.bounds.seconds, kSecondsToShorten);
  std::optional<Trace> shortest = result.violation;
  for (std::optional<Trace> found = shortest; found;) {
    shorter.bounds.events = found->execution_events - 1;
    found = explore(program, shorter).violation;
    if (found && found->events.size() < shortest->events.size()) shortest = found;
  }
  result.violation = std::move(shortest);
  return result;
}

namespace {

struct Explored {
  Result result;
  std::set<std::string> outcomes;
};

Explored explored(const Program& program, ExploreOptions options, bool merge) {
  Explored found;
  options.merge = merge;
  options.all = true;
  options.on_violation = [&](const Trace& trace) { found.outcomes.insert(trace.cause.what); };
  options.on_execution = [&](const Execution& x) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < x.latest.size(); ++i) {
      values.push_back(
          fmt::format("{} = {:#x}", program.locations[i].name, x.events[x.latest[i]].written));
    }
    found.outcomes.insert(fmt::format("ends with {}", fmt::join(values, ", ")));
  };
  found.result = explore(program, options);
  return found;
}

}  // namespace

Comparison compare_merged(const Program& program, const ExploreOptions& options) {
  Explored each = explored(program, options, false);
  Explored merged = explored(program, options, true);
  Comparison comparison{std::move(each.result), std::move(merged.result), {}};
  // Explorations that were cut short at different places cannot be compared.
  if (!comparison.each.bound.empty() || !comparison.merged.bound.empty()) return comparison;
  for (const std::string& outcome : each.outcomes) {
    if (merged.outcomes.contains(outcome)) continue;
    comparison.differences.push_back("only without merging: " + outcome);
  }
  for (const std::string& outcome : merged.outcomes) {
    if (each.outcomes.contains(outcome)) continue;
    comparison.differences.push_back("only with merging: " + outcome);
  }
  return comparison;
}

}  // namespace perfring::model
