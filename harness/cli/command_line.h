#ifndef HARNESS_CLI_COMMAND_LINE_H_
#define HARNESS_CLI_COMMAND_LINE_H_

#include <variant>

#include "harness/cli/check_options.h"
#include "harness/cli/decode_options.h"
#include "harness/cli/diff_options.h"
#include "harness/cli/faults_options.h"
#include "harness/cli/live_options.h"
#include "harness/cli/sim_options.h"
#include "harness/cli/stress_options.h"
#include "harness/program/options.h"

namespace perfring::cli {

// The command that `perfring` was given. Without one: LiveOptions.
using Command = std::variant<LiveOptions, SimOptions, CheckOptions, StressOptions, DiffOptions,
                             DecodeOptions, FaultsOptions>;

std::variant<Command, Answer> parse_command_line(int argc, const char* const* argv);

// Runs it; returns the exit code (harness/program/verdict.h).
int run_command(const LiveOptions& options);
int run_command(const SimOptions& options);
int run_command(const CheckOptions& options);
int run_command(const StressOptions& options);
int run_command(const DiffOptions& options);
int run_command(const DecodeOptions& options);
int run_command(const FaultsOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_COMMAND_LINE_H_
