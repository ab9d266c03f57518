#include "harness/cli/sim/sim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <cstddef>
#include <span>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "harness/program/console.h"
#include "harness/program/options.h"
#include "harness/program/run_program.h"
#include "harness/simulator/runs.h"

namespace perfring::cli {
namespace {

using simulator::RunSettings;

constexpr std::uint64_t kSteps = 50'000'000;

template <class Named>
std::vector<std::string> names(std::span<const Named> all) {
  std::vector<std::string> names;
  for (const Named& named : all) names.emplace_back(named.name);
  return names;
}

std::expected<RunSettings, std::string> read_scenario(const std::string& name) {
  if (const auto* const scenario = simulator::find_scenario(name)) {
    return simulator::parse_settings(scenario->lines, name);
  }
  std::error_code none;  // the name may, for example, be too long for a file
  if (name != "-" && !std::filesystem::exists(name, none)) {
    return std::unexpected(fmt::format("--scenario: {} is not accepted: give a file or one of {}",
                                       in_quotes(name),
                                       fmt::join(names(simulator::scenarios()), ", ")));
  }
  const auto text = read_input("--scenario", name);
  if (!text) return std::unexpected(text.error());
  return simulator::parse_settings(*text, in_quotes(name));
}

// Applies "name=value" by parsing it as a line of a scenario.
std::expected<RunSettings, std::string> with_setting(const std::string& set,
                                                     const RunSettings& settings) {
  const std::size_t equals = set.find('=');
  // Reject anything after the value: the parser would skip '# ...' as a comment.
  if (equals == std::string::npos || equals == 0 ||
      set.find_first_of("# \t\n") != std::string::npos) {
    return std::unexpected("--set: " + not_accepted(set, "NAME=VALUE"));
  }
  std::string line = set;
  line[equals] = ' ';
  auto changed = simulator::parse_settings(line, "", settings);
  if (changed) return changed;
  const std::string& error = changed.error();  // ", line 1: the reason"
  return std::unexpected("--set" + error.substr(error.find(": ")));
}

bool sets_cpus(const std::vector<std::string>& sets) {
  return std::ranges::any_of(sets, [](const std::string& set) { return set.starts_with("cpus="); });
}

}  // namespace

CLI::App& declare_command(CLI::App& app, SimOptions& options) {
  CLI::App& sim = *app.add_subcommand(
      "sim",
      "Runs the simulated kernel against the drain, in one thread and with a schedule that the\n"
      "seed determines, and checks every event. The same seed gives the same run on every "
      "machine.");
  const CLI::Option* const seed =
      sim.add_option("--seed", options.seed,
                     "Determines the schedule and, with --runs, the settings [1]")
          ->type_name("S")
          ->check(number_from(0));
  const CLI::Option* const runs = sim.add_option("--runs", options.runs,
                                                 "Run N consecutive seeds, with settings drawn "
                                                 "from each, until a run violates an invariant")
                                      ->type_name("N")
                                      ->check(number_from(1));
  const CLI::Option* const script = sim.add_option("--script", options.script,
                                                   "Run this script (harness/script), nested steps "
                                                   "included, instead of a scenario; - for stdin")
                                        ->type_name("FILE");
  sim.add_option("--scenario", options.scenario,
                 "The scenario's name, or a settings file; - for stdin [steady, or the fault's]")
      ->type_name("NAME|FILE");
  const CLI::Option* const steps =
      sim.add_option("--steps", options.steps,
                     "Memory accesses after which the writers stop [50000000; with --runs 100000]")
          ->type_name("N")
          ->check(number_from(1));
  sim.add_option("--cpus", options.cpus, "Virtual CPUs, each with a ring [the scenario's]")
      ->type_name("C")
      ->check(number_from(1, 64));
  sim.add_option("--set", options.sets,
                 "Override a setting of the scenario; repeatable, the last value wins")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  const CLI::Option* const fault =
      sim.add_option("--fault", options.fault,
                     "Plant this fault in the kernel or the consumer; the run must find it")
          ->type_name("NAME");
  const CLI::Option* const list =
      sim.add_flag("--list", options.list, "List scenarios, faults and settings, and exit");
  const CLI::Option* const json = sim.add_flag("--json", options.json, "Print the verdict as JSON");
  refuse_other_options(
      sim, {{list, {json}}, {script, {fault, json}}, {runs, {seed, steps, fault, json}}});
  return sim;
}

std::expected<SimPlan, std::string> plan_of(const SimOptions& options) {
  const std::uint64_t steps = options.runs == 0 ? kSteps : simulator::kRandomRunSteps;
  SimPlan sim{.plan = {.seed = options.seed,
                       .steps = options.steps == 0 ? steps : options.steps,
                       .settings = {}},
              .scenario = options.scenario};
  if (!options.fault.empty()) {
    sim.fault = simulator::find_planted(options.fault);
    if (sim.fault == nullptr) {
      return std::unexpected(fmt::format(
          "--fault: {} is not accepted: {}", in_quotes(options.fault),
          nearest_to(options.fault, names(simulator::planted_faults()), "perfring sim --list")));
    }
  }
  if (options.runs != 0) sim.scenario = "steady";  // a replay lists its differences from this
  if (sim.scenario.empty()) sim.scenario = sim.fault != nullptr ? sim.fault->scenario : "steady";
  auto settings = read_scenario(sim.scenario);
  if (settings) sim.base = *settings;
  std::error_code none;
  const bool is_file = simulator::find_scenario(sim.scenario) == nullptr;
  // A replay could not read this file again, for example stdin.
  if (is_file && !std::filesystem::is_regular_file(sim.scenario, none)) {
    sim.scenario = "steady";
    sim.base = *read_scenario(sim.scenario);
  }
  if (settings && sim.fault != nullptr && options.scenario.empty()) {
    settings = simulator::settings_of(*sim.fault);
  }
  if (!settings) return std::unexpected(settings.error());
  for (const std::string& set : options.sets) {
    settings = with_setting(set, *settings);
    if (!settings) return std::unexpected(settings.error());
  }
  if (options.cpus != 0 && sets_cpus(options.sets)) {
    return std::unexpected("--cpus and --set cpus=... are the same setting: give one of them");
  }
  if (options.cpus != 0) settings = with_setting(fmt::format("cpus={}", options.cpus), *settings);
  if (!settings) return std::unexpected("--cpus: " + settings.error());
  if (const std::string why = simulator::impossible(*settings); !why.empty()) {
    return std::unexpected(why);
  }
  sim.plan.settings = *settings;
  return sim;
}

std::string replay_line(const SimPlan& sim, const simulator::SimulationPlan& plan) {
  std::string line = fmt::format("sim --seed {} --scenario {} --steps {}", plan.seed,
                                 shell_word(sim.scenario), plan.steps);
  if (sim.fault != nullptr) line += fmt::format(" --fault {}", sim.fault->name);
  const std::string changed = simulator::difference(plan.settings, sim.base);
  for (std::size_t at = 0; at < changed.size();) {
    const std::size_t end = std::min(changed.find(' ', at), changed.size());
    line += " --set " + changed.substr(at, end - at);
    at = end + 1;
  }
  return replay_command(line);
}

}  // namespace perfring::cli
