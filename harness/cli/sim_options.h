#ifndef HARNESS_CLI_SIM_OPTIONS_H_
#define HARNESS_CLI_SIM_OPTIONS_H_

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "harness/simulator/faults.h"
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
  simulator::Plan plan;
  std::string scenario;
  simulator::RunSettings base = {};  // the scenario's own
  const simulator::SimulationFault* fault = nullptr;
};

// An error names what is wrong and what is accepted: an unknown name, a file's line, an impossible
// setting.
std::expected<SimPlan, std::string> plan_of(const SimOptions& options);

// The command that runs this again, with the version that it is for as a comment.
std::string replay_line(const SimPlan& sim, const simulator::Plan& plan);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_OPTIONS_H_
