#ifndef HARNESS_CLI_SIM_SCRIPT_H_
#define HARNESS_CLI_SIM_SCRIPT_H_

#include "harness/cli/sim_options.h"

namespace perfring::cli {

// `perfring sim --script FILE`: the exit code.
int run_script(const SimOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_SCRIPT_H_
