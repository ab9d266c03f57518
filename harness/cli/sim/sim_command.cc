// `perfring sim`.

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "harness/cli/sim/sim.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/rig/script_faults.h"
#include "harness/rig/script_outcome.h"
#include "harness/script/script.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/simulation.h"

namespace perfring::cli {

SimOutcome run_sim(const SimPlan& sim, const std::atomic<bool>& stop,
                   const std::function<void(std::uint64_t steps)>& on_progress) {
  const auto simulate = [&](const simulator::SimulationPlan& plan) {
    const simulator::Observer observer{.stop = &stop, .on_progress = on_progress};
    return sim.fault != nullptr ? sim.fault->simulate(plan, observer)
                                : simulator::simulate(plan, observer);
  };
  SimOutcome result{.outcome = simulate(sim.plan), .shrunk = {}};
  if (result.outcome.found && !stop.load()) {
    result.shrunk = simulator::shrink(sim.plan, *result.outcome.found, simulate,
                                      [&stop] { return stop.load(); });
  }
  return result;
}

SimRuns run_many(const SimPlan& first, std::uint64_t count, const std::atomic<bool>& stop,
                 const std::function<void(std::uint64_t run)>& on_run) {
  SimRuns all{.first = first, .outcome = {}};
  const simulator::Observer observer{.stop = &stop, .on_progress = {}};
  std::uint64_t run = 0;
  all.outcome = simulator::simulate_runs(
      {.first_seed = first.plan.seed, .count = count, .steps = first.plan.steps},
      [&](const simulator::SimulationPlan& plan) {
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

namespace {

std::string json_of(const rig::ScriptOutcome& outcome) {
  Json json = to_json(conclusion_of(outcome));
  json["attempted"] = outcome.totals.attempts();
  json["accepted"] = outcome.totals.accepted;
  json["lost"] = outcome.totals.lost;
  json["failed"] = outcome.totals.failed;
  json["delivered"] = outcome.received.delivered;
  json["malformed"] = outcome.received.malformed;
  if (outcome.violation) json["violation"] = violation_object(*outcome.violation);
  return dump(json);
}

// Runs a script with a fault. A violation of an invariant means that the script finds the fault.
int with_fault(const script::Script& script, const rig::ScriptFault& fault, bool json) {
  const auto violation = fault.run(script);
  const Conclusion conclusion =
      conclude(violation.has_value(), false,
               violation ? "" : fmt::format("this script does not find '{}'", fault.name));
  std::string text = sentence(conclusion, "All invariants hold.") + "\n";
  if (violation) text = rig::to_text(*violation) + "\n";
  if (json) {
    Json object = to_json(conclusion);
    object["fault"] = fault.name;
    if (violation) object["violation"] = violation_object(*violation);
    text = dump(object);
  }
  return deliver(text, exit_code(conclusion.verdict));
}

}  // namespace

int run_script(const SimOptions& options) {
  const std::string name = "--script: " + in_quotes(options.script) + ": ";
  const auto file = read_input("--script", options.script, script::kFileMax);
  if (!file) return fail(file.error());
  const auto script = script::parse_script(*file);
  if (!script) return fail(name + script.error());
  if (!rig::oracle_can_check(*script)) return fail(name + rig::kOracleCanCheck);
  if (options.fault.empty()) {
    const rig::ScriptOutcome outcome = rig::outcome_of(*script);
    return deliver(options.json ? json_of(outcome) : to_text(outcome),
                   exit_code(conclusion_of(outcome).verdict));
  }
  const rig::ScriptFault* const fault = rig::find_planted(options.fault);
  if (fault != nullptr) return with_fault(*script, *fault, options.json);
  return fail(
      fmt::format("--fault: scripts have no fault called {}; see perfring faults "
                  "--harness scripts",
                  in_quotes(options.fault)));
}

int run_command(const SimOptions& options) {
  if (options.list) {
    return deliver(options.json ? sim_list_json() : sim_list(), kHolds, "the list");
  }
  if (!options.script.empty()) return run_script(options);
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  const StopOnSignals stop;
  const ProgressLine line;
  if (options.runs != 0) {
    const SimRuns runs = run_many(*plan, options.runs, stop.requested(), [&](std::uint64_t run) {
      line.show(fmt::format("{} of {} runs", grouped(run), grouped(options.runs)));
    });
    line.clear();
    return deliver(options.json ? runs_json(runs) : runs_table(runs),
                   exit_code(conclusion_of(runs).verdict));
  }
  const SimOutcome outcome = run_sim(*plan, stop.requested(), [&](std::uint64_t steps) {
    line.show(fmt::format("{} of {} steps", grouped(steps), grouped(plan->plan.steps)));
  });
  line.clear();
  return deliver(options.json ? sim_json(*plan, outcome) : sim_table(*plan, outcome),
                 exit_code(conclusion_of(*plan, outcome).verdict));
}

}  // namespace perfring::cli
