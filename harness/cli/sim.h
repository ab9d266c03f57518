#ifndef HARNESS_CLI_SIM_H_
#define HARNESS_CLI_SIM_H_

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
#include "harness/simulator/faults.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring sim`, as given.
struct SimOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 0;        // 0: kSteps, or of each of many runs simulator::kRandomRunSteps
  std::uint64_t runs = 0;         // with random settings; 0: one run of a scenario
  std::string script;             // a file to be run in place of a scenario
  std::string scenario;           // a name, or a file; none: steady, or the fault's own
  std::string fault;              // a name, or none
  std::vector<std::string> sets;  // "name=value"
  std::uint64_t cpus = 0;         // 0: as many as the scenario has
  bool json = false;
  bool list = false;
};

CLI::App& declare_command(CLI::App& app, SimOptions& options);

// The runs to do. With random settings `plan` is the first of them.
struct SimPlan {
  simulator::SimulationPlan plan;
  std::string scenario;
  simulator::RunSettings base = {};  // the scenario's own
  const simulator::SimulationFault* fault = nullptr;
};

// An error names what is wrong and what is accepted: an unknown name, a file's line, an impossible
// setting.
std::expected<SimPlan, std::string> plan_of(const SimOptions& options);

// The command that runs this again.
std::string replay_line(const SimPlan& sim, const simulator::SimulationPlan& plan);

// The outcome of a run; `shrunk` if it violated an invariant.
struct SimOutcome {
  simulator::SimulationOutcome outcome;
  std::optional<simulator::Shrunk> shrunk;
};

// Runs the plan until its steps are over or `stop` is set, and shrinks what it finds.
SimOutcome run_sim(const SimPlan& sim, const std::atomic<bool>& stop,
                   const std::function<void(std::uint64_t steps)>& on_progress);

// The verdict of the run. With a fault: whether it was found.
Conclusion conclusion_of(const SimPlan& sim, const SimOutcome& result);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
std::string sim_table(const SimPlan& sim, const SimOutcome& result);
std::string sim_json(const SimPlan& sim, const SimOutcome& result);
// The same as an object, for a report of many runs.
nlohmann::ordered_json sim_object(const SimPlan& sim, const SimOutcome& result);

// The invariant and the message.
nlohmann::ordered_json violation_object(const oracle::Violation& violation);

// All scenarios, faults and settings.
std::string sim_list();
std::string sim_list_json();

// The outcome of many runs, whose settings were drawn from their seeds.
struct SimRuns {
  SimPlan first;
  simulator::RunsOutcome outcome;
  // The run that violates an invariant, with what it shrinks to.
  std::optional<std::pair<SimPlan, SimOutcome>> violating = {};
};

// Runs `count` seeds from that of `first` on, until one violates an invariant or `stop` is set.
SimRuns run_many(const SimPlan& first, std::uint64_t count, const std::atomic<bool>& stop,
                 const std::function<void(std::uint64_t run)>& on_run);

Conclusion conclusion_of(const SimRuns& runs);
std::string runs_table(const SimRuns& runs);
std::string runs_json(const SimRuns& runs);

// `perfring sim --script FILE`: the exit code.
int run_script(const SimOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_H_
