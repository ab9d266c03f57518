#ifndef HARNESS_CLI_SIM_RUNS_H_
#define HARNESS_CLI_SIM_RUNS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "harness/cli/sim_options.h"
#include "harness/cli/sim_report.h"
#include "harness/program/verdict.h"
#include "harness/simulator/runs.h"

namespace perfring::cli {

// How many runs ended, whose settings were drawn from their seeds.
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

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_RUNS_H_
