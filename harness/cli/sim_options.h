#ifndef PERFRING_HARNESS_CLI_SIM_OPTIONS_H_
#define PERFRING_HARNESS_CLI_SIM_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "harness/simulator/canaries.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::cli {

// What `perfring sim` is told, as given.
struct SimOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 50'000'000;
  std::string scenario;           // a name, or a file; none: steady, or the canary's own
  std::string canary;             // a name, or none
  std::vector<std::string> sets;  // "name=value"
  std::uint64_t cpus = 0;         // 0: as many as the scenario has
  bool json = false;
  bool list = false;
};

CLI::App& declare_command(CLI::App& app, SimOptions& options);

// What is to be run.
struct SimPlan {
  simulator::Plan plan;
  std::string scenario;
  simulator::Settings base = {};  // the scenario's own
  const simulator::Canary* canary = nullptr;
};

// An error names what is wrong and what is accepted: an unknown name, a file's line, a setting that
// cannot be.
std::expected<SimPlan, std::string> plan_of(const SimOptions& options);

// The command that runs this again.
std::string replay_line(const SimPlan& sim, const simulator::Plan& plan);

}  // namespace perfring::cli

#endif  // PERFRING_HARNESS_CLI_SIM_OPTIONS_H_
