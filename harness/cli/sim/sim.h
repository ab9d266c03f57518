#ifndef HARNESS_CLI_SIM_SIM_H_
#define HARNESS_CLI_SIM_SIM_H_

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/program/verdict.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"
#include "harness/simulator/simulation_faults.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring sim`, before plan_of() validates them.
struct SimOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 0;        // 0: kSteps; with `runs`, simulator::kRandomRunSteps for each
  std::uint64_t runs = 0;         // runs with random settings; 0: one run of a scenario
  std::string script;             // a file that replaces the scenario
  std::string scenario;           // a name or a file; empty: the fault's own, or steady
  std::string fault;              // a name; empty: no fault
  std::vector<std::string> sets;  // "name=value"
  std::uint64_t cpus = 0;         // 0: the scenario's number
  bool json = false;
  bool list = false;
};

CLI::App& declare_command(CLI::App& app, SimOptions& options);
int run_command(const SimOptions& options);

// The runs that the options request. With random settings, `plan` is the first of them.
struct SimPlan {
  simulator::SimulationPlan plan;
  std::string scenario;
  simulator::RunSettings base = {};  // the scenario's settings, without the overrides
  const simulator::SimulationFault* fault = nullptr;
};

// Validates the options. An error names the unknown name, the line of a file or the impossible
// setting, and what is accepted.
std::expected<SimPlan, std::string> plan_of(const SimOptions& options);

// Returns the command that repeats this run.
std::string replay_line(const SimPlan& sim, const simulator::SimulationPlan& plan);

// The outcome of a run. `shrunk` is set if it violated an invariant.
struct SimOutcome {
  simulator::SimulationOutcome outcome;
  std::optional<simulator::Shrunk> shrunk;
};

// Runs the plan until its steps are done or `stop` is set, and shrinks a violation.
SimOutcome run_sim(const SimPlan& sim, const std::atomic<bool>& stop,
                   const std::function<void(std::uint64_t steps)>& on_progress);

// Concludes from the run. With a fault, the run must have found it.
Conclusion conclusion_of(const SimPlan& sim, const SimOutcome& result);

// The verdict as a table and as JSON, with the same figures.
std::string sim_table(const SimPlan& sim, const SimOutcome& result);
std::string sim_json(const SimPlan& sim, const SimOutcome& result);
// The verdict as a JSON object, for the report of many runs.
nlohmann::ordered_json sim_object(const SimPlan& sim, const SimOutcome& result);

// The violation's invariant and message.
nlohmann::ordered_json violation_object(const oracle::Violation& violation);

// --list: all scenarios, faults and settings.
std::string sim_list();
std::string sim_list_json();

// The outcome of many runs, each with settings drawn from its seed.
struct SimRuns {
  SimPlan first;
  simulator::RunsOutcome outcome;
  // The run that violates an invariant, with its shrunk form.
  std::optional<std::pair<SimPlan, SimOutcome>> violating = {};
};

// Runs `count` seeds in a row, beginning with the seed of `first`, until one violates an invariant
// or `stop` is set.
SimRuns run_many(const SimPlan& first, std::uint64_t count, const std::atomic<bool>& stop,
                 const std::function<void(std::uint64_t run)>& on_run);

Conclusion conclusion_of(const SimRuns& runs);
std::string runs_table(const SimRuns& runs);
std::string runs_json(const SimRuns& runs);

// Runs `perfring sim --script FILE`. Returns the exit code.
int run_script(const SimOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_SIM_H_
