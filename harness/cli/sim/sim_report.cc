#include "harness/cli/sim/sim.h"

#include <fmt/format.h>

#include <cstddef>
#include <variant>

#include "harness/faults/fault_catalogue.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"

namespace perfring::cli {
namespace {

using simulator::CpuTotals;
using simulator::Found;

constexpr const char* kSimRow = "{:>5} {:>13} {:>13} {:>13} {:>11} {:>9} {:>9} {:>11} {:>15}\n";

double records_per_second(const simulator::SimulationOutcome& outcome) {
  std::uint64_t delivered = 0;
  for (const CpuTotals& cpu : outcome.cpus) delivered += cpu.received.delivered;
  return outcome.seconds > 0 ? static_cast<double>(delivered) / outcome.seconds : 0;
}

bool merges(const SimPlan& sim) {
  return sim.plan.settings.rings == simulator::kMerged;
}

std::string violation_line(const Found& found) {
  return fmt::format("{} on CPU {} at step {}: {}", to_string(found.violation.invariant), found.cpu,
                     found.step, found.violation.message);
}

Json to_json(const Found& found) {
  Json json = violation_object(found.violation);
  json["cpu"] = found.cpu;
  json["step"] = found.step;
  return json;
}

Json to_json(const simulator::RunSettings& settings) {
  Json json;
  for (const auto& name : simulator::setting_names()) {
    if (const auto value = name.get(settings)) json[name.name] = *value;
  }
  return json;
}

// Returns the reason if a run without a violation shows nothing, otherwise "".
std::string nothing_shown(const SimPlan& sim, const simulator::SimulationOutcome& outcome) {
  if (sim.fault != nullptr) {
    const faults::Expected& expected = sim.fault->expected();
    if (const auto* const reason = std::get_if<faults::Reason>(&expected)) {
      return fmt::format("the fault {} was not found, and cannot be found here: {}",
                         sim.fault->name, explanation(*reason));
    }
    return fmt::format(
        "the fault {0} was not found here; with the default settings, `{1} sim --fault {0}` "
        "finds it ({2})",
        sim.fault->name, invocation(), in_words(expected));
  }
  std::uint64_t events = 0;
  for (const CpuTotals& cpu : outcome.cpus) {
    events += cpu.received.delivered + cpu.received.lost + cpu.received.malformed +
              cpu.received.overwritten;
  }
  return events == 0 ? "no event was delivered: give more --steps" : "";
}

// Returns the seed of the last run, which is the violating run if there is one. Precondition: at
// least one run has ended.
std::uint64_t last_seed(const SimRuns& runs) {
  return runs.first.plan.seed + (runs.outcome.runs - 1);
}

}  // namespace

Conclusion conclusion_of(const SimPlan& sim, const SimOutcome& result) {
  const simulator::SimulationOutcome& outcome = result.outcome;
  return conclude(outcome.found.has_value(), outcome.interrupted, nothing_shown(sim, outcome));
}

std::string sim_table(const SimPlan& sim, const SimOutcome& result) {
  const simulator::SimulationOutcome& outcome = result.outcome;
  std::string text = fmt::format(kSimRow, "CPU", "attempted", "accepted", "delivered", "lost",
                                 "failed", "malformed", "overwritten", "bytes");
  for (std::size_t i = 0; i < outcome.cpus.size(); ++i) {
    const CpuTotals& cpu = outcome.cpus[i];
    text +=
        fmt::format(kSimRow, i, grouped(cpu.attempted.attempts()), grouped(cpu.attempted.accepted),
                    grouped(cpu.received.delivered), grouped(cpu.received.lost + cpu.unreported),
                    grouped(cpu.attempted.failed), grouped(cpu.received.malformed),
                    grouped(cpu.received.overwritten), grouped(cpu.received.bytes));
  }
  text += fmt::format("{}, {}, {}; {} records/s of processor time; digest {:016x}\n",
                      counted(outcome.steps, "step"), counted(outcome.drains, "drain"),
                      counted(outcome.wakeups, "wakeup"), grouped(records_per_second(outcome)),
                      outcome.digest);
  if (merges(sim)) {
    text += fmt::format("merged with a slack of {}: {} late; the longest delay was {}\n",
                        counted(sim.plan.settings.slack, "tick"), grouped(outcome.late),
                        counted(outcome.longest_delay, "tick"));
  }
  if (!outcome.found) {
    return text + fmt::format("{}: seed {}, scenario {}\n",
                              sentence(conclusion_of(sim, result), "All invariants hold"),
                              sim.plan.seed, one_line(sim.scenario));
  }
  text += fmt::format("VIOLATED {}\n", violation_line(*outcome.found));
  text += fmt::format("  seed {}; replay: {}\n", sim.plan.seed, replay_line(sim, sim.plan));
  if (result.shrunk) {
    text += fmt::format("Shrunk to {}\n  replay: {}\n", violation_line(result.shrunk->found),
                        replay_line(sim, result.shrunk->plan));
  }
  return text;
}

std::string sim_json(const SimPlan& sim, const SimOutcome& result) {
  return dump(sim_object(sim, result));
}

Json sim_object(const SimPlan& sim, const SimOutcome& result) {
  const simulator::SimulationOutcome& outcome = result.outcome;
  Json json = to_json(conclusion_of(sim, result));
  json["seed"] = sim.plan.seed;
  json["scenario"] = sim.scenario;
  if (sim.fault != nullptr) json["fault"] = sim.fault->name;
  json["steps"] = outcome.steps;
  json["drains"] = outcome.drains;
  json["wakeups"] = outcome.wakeups;
  json["digest"] = fmt::format("{:016x}", outcome.digest);
  json["seconds"] = outcome.seconds;
  json["records_per_second"] = records_per_second(outcome);
  if (merges(sim)) {
    json["late"] = outcome.late;
    json["longest_delay_ticks"] = outcome.longest_delay;
  }
  json["settings"] = to_json(sim.plan.settings);
  json["replay"] = replay_line(sim, sim.plan);
  json["cpus"] = Json::array();
  for (std::size_t i = 0; i < outcome.cpus.size(); ++i) {
    const CpuTotals& cpu = outcome.cpus[i];
    json["cpus"].push_back({{"cpu", i},
                            {"attempted", cpu.attempted.attempts()},
                            {"accepted", cpu.attempted.accepted},
                            {"delivered", cpu.received.delivered},
                            {"lost", cpu.received.lost + cpu.unreported},
                            {"failed", cpu.attempted.failed},
                            {"without_size", cpu.attempted.invisible},
                            {"malformed", cpu.received.malformed},
                            {"overwritten", cpu.received.overwritten},
                            {"bytes", cpu.received.bytes}});
  }
  if (outcome.found) json["violation"] = to_json(*outcome.found);
  if (result.shrunk) {
    json["shrunk"] = to_json(result.shrunk->found);
    json["shrunk"]["replay"] = replay_line(sim, result.shrunk->plan);
  }
  return json;
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
  const std::string seeds = outcome.runs == 1
                                ? fmt::format("seed {}", seed)
                                : fmt::format("seeds {} to {}", seed, last_seed(runs));
  std::string text =
      fmt::format("{}, of {}: {}, {}, {} attempted, {} delivered, {} lost, {} failed\n",
                  counted(outcome.runs, "run"), seeds, counted(outcome.steps, "step"),
                  counted(outcome.drains, "drain"), grouped(outcome.attempted),
                  grouped(outcome.delivered), grouped(outcome.lost), grouped(outcome.failed));
  if (outcome.runs != 0) {
    const std::uint64_t last = last_seed(runs);
    text +=
        fmt::format("Settings of seed {}: {}\n", last, to_string(simulator::random_settings(last)));
  }
  if (!runs.violating) {
    return text + sentence(conclusion_of(runs), "All invariants hold.") + "\n";
  }
  return text + sim_table(runs.violating->first, runs.violating->second);
}

std::string runs_json(const SimRuns& runs) {
  Json json = to_json(conclusion_of(runs));
  json["seed"] = runs.first.plan.seed;
  if (runs.first.fault != nullptr) json["fault"] = runs.first.fault->name;
  json["runs"] = runs.outcome.runs;
  json["steps"] = runs.outcome.steps;
  json["drains"] = runs.outcome.drains;
  json["attempted"] = runs.outcome.attempted;
  json["delivered"] = runs.outcome.delivered;
  json["lost"] = runs.outcome.lost;
  json["failed"] = runs.outcome.failed;
  if (runs.outcome.runs != 0) {
    json["last_settings"] = to_json(simulator::random_settings(last_seed(runs)));
  }
  if (runs.violating) json["run"] = sim_object(runs.violating->first, runs.violating->second);
  return dump(json);
}

Json violation_object(const oracle::Violation& violation) {
  return {{"invariant", to_string(violation.invariant)}, {"message", violation.message}};
}

std::string sim_list() {
  std::string text = "Scenarios (--scenario)\n";
  for (const auto& scenario : simulator::scenarios()) {
    text += fmt::format("  {:22}{}\n", scenario.name, scenario.description);
  }
  text += "Faults, and the invariants that they violate (--fault)\n";
  for (const auto& fault : simulator::planted_faults()) {
    text += fmt::format("  {:26}{}: {}\n", fault.name, faults::what(fault.name),
                        in_words(fault.expected()));
  }
  text += "Settings (--set NAME=VALUE, or lines of NAME VALUE in a file for --scenario)\n";
  const simulator::RunSettings defaults;
  for (const auto& name : simulator::setting_names()) {
    const auto usual = name.get(defaults);
    text += fmt::format("  {:18}{} to {} [{}]\n", name.name, name.min, name.max,
                        usual ? std::to_string(*usual) : "none");
  }
  return text;
}

std::string sim_list_json() {
  Json json;
  for (const auto& scenario : simulator::scenarios()) {
    json["scenarios"].push_back({{"name", scenario.name}, {"description", scenario.description}});
  }
  for (const auto& fault : simulator::planted_faults()) {
    json["faults"].push_back({{"name", fault.name},
                              {"fault", faults::what(fault.name)},
                              {"expected", in_words(fault.expected())},
                              {"scenario", fault.scenario}});
  }
  const simulator::RunSettings defaults;
  for (const auto& name : simulator::setting_names()) {
    json["settings"].push_back({{"name", name.name}, {"min", name.min}, {"max", name.max}});
    if (const auto usual = name.get(defaults)) json["settings"].back()["default"] = *usual;
  }
  return dump(json);
}

}  // namespace perfring::cli
