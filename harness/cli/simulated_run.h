#ifndef HARNESS_CLI_SIMULATED_RUN_H_
#define HARNESS_CLI_SIMULATED_RUN_H_

#include <atomic>
#include <expected>
#include <functional>
#include <string>

#include "harness/cli/live_options.h"
#include "harness/cli/live_run.h"

namespace perfring::cli {

// run_live() with the simulated kernel in the live one's place: a thread on each CPU writes to a
// ring, as fast as it can, and this one drains them all with lib's Ring. `why` is what the outcome
// says of it. An error is one of the environment.
std::expected<LiveOutcome, std::string> run_simulated(
    const LiveOptions& options, const std::string& why, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIMULATED_RUN_H_
