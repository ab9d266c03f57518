#include "harness/cli/sim_runs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/sim_run.h"
#include "harness/program/counted.h"

namespace perfring::cli {

SimRuns run_many(const SimPlan& first, std::uint64_t count, const std::atomic<bool>& stop,
                 const std::function<void(std::uint64_t run)>& on_run) {
  SimRuns all{.first = first, .outcome = {}};
  const simulator::Observer observer{.stop = &stop, .on_progress = {}};
  std::uint64_t run = 0;
  all.outcome = simulator::simulate_runs(
      {.first_seed = first.plan.seed, .count = count, .steps = first.plan.steps},
      [&](const simulator::Plan& plan) {
        if (++run % 16 == 0) on_run(run);
        return first.fault != nullptr ? first.fault->simulate(plan, observer)
                                      : simulator::simulate(plan, observer);
      });
  if (all.outcome.violating) {
    SimPlan violating = first;
    violating.plan = *all.outcome.violating;
    const SimOutcome again = run_sim(violating, stop, [](std::uint64_t) {});
    all.violating.emplace(std::move(violating), again);
  }
  return all;
}

Conclusion conclusion_of(const SimRuns& runs) {
  std::string nothing;
  if (runs.first.fault != nullptr) {
    nothing = fmt::format("the fault {} was not found", runs.first.fault->name);
  } else if (runs.outcome.delivered == 0) {
    nothing = "no record was delivered: give more --steps, or more --runs";
  }
  return conclude(runs.outcome.found.has_value(), runs.outcome.interrupted, nothing);
}

std::string runs_table(const SimRuns& runs) {
  const simulator::RunsOutcome& outcome = runs.outcome;
  const std::uint64_t seed = runs.first.plan.seed;
  std::string text =
      fmt::format("{} runs, of seeds {} to {}: {} steps, {} drains, {} attempted, {} delivered\n",
                  grouped(outcome.runs), seed, seed + (outcome.runs - 1), grouped(outcome.steps),
                  grouped(outcome.drains), grouped(outcome.attempted), grouped(outcome.delivered));
  if (!runs.violating) {
    return text + sentence(conclusion_of(runs), "All invariants hold") + "\n";
  }
  const auto& [plan, result] = *runs.violating;
  text += fmt::format("Settings of seed {}: {}\n", plan.plan.seed, to_string(plan.plan.settings));
  return text + sim_table(plan, result);
}

std::string runs_json(const SimRuns& runs) {
  nlohmann::ordered_json json = to_json(conclusion_of(runs));
  json["seed"] = runs.first.plan.seed;
  if (runs.first.fault != nullptr) json["fault"] = runs.first.fault->name;
  json["runs"] = runs.outcome.runs;
  json["steps"] = runs.outcome.steps;
  json["drains"] = runs.outcome.drains;
  json["attempted"] = runs.outcome.attempted;
  json["delivered"] = runs.outcome.delivered;
  if (runs.violating) json["run"] = sim_object(runs.violating->first, runs.violating->second);
  return dump(json);
}

}  // namespace perfring::cli
