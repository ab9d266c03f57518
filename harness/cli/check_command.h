#ifndef PERFRING_HARNESS_CLI_CHECK_COMMAND_H_
#define PERFRING_HARNESS_CLI_CHECK_COMMAND_H_

#include <CLI/CLI.hpp>

#include "harness/cli/check_options.h"

namespace perfring::cli {

// `perfring check`: what it accepts, into `options`, which must outlive the parsing.
CLI::App& add_check_command(CLI::App& app, CheckOptions& options);

}  // namespace perfring::cli

#endif  // PERFRING_HARNESS_CLI_CHECK_COMMAND_H_
