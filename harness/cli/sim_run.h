#ifndef HARNESS_CLI_SIM_RUN_H_
#define HARNESS_CLI_SIM_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "harness/cli/sim_options.h"
#include "harness/cli/sim_report.h"

namespace perfring::cli {

// Runs the plan until its steps are over or `stop` is set, and shrinks what it finds.
SimOutcome run_sim(const SimPlan& sim, const std::atomic<bool>& stop,
                   const std::function<void(std::uint64_t steps)>& on_progress);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_RUN_H_
