#ifndef HARNESS_CLI_COMMAND_LINE_H_
#define HARNESS_CLI_COMMAND_LINE_H_

#include <variant>

#include "harness/cli/check.h"
#include "harness/cli/conform.h"
#include "harness/cli/decode.h"
#include "harness/cli/diff.h"
#include "harness/cli/events.h"
#include "harness/cli/faults.h"
#include "harness/cli/inspect.h"
#include "harness/cli/live.h"
#include "harness/cli/sim.h"
#include "harness/cli/stress.h"
#include "harness/program/options.h"

namespace perfring::cli {

// The command that `perfring` was given. Without one: LiveOptions.
using Command =
    std::variant<LiveOptions, SimOptions, CheckOptions, StressOptions, DiffOptions, DecodeOptions,
                 EventsOptions, RecordOptions, FaultsOptions, ConformOptions, InspectOptions>;

std::variant<Command, Answer> parse_command_line(int argc, const char* const* argv);

// Runs it; returns the exit code (harness/program/verdict.h).
int run_command(const LiveOptions& options);
int run_command(const SimOptions& options);
int run_command(const CheckOptions& options);
int run_command(const StressOptions& options);
int run_command(const DiffOptions& options);
int run_command(const DecodeOptions& options);
int run_command(const EventsOptions& options);
int run_command(const RecordOptions& options);
int run_command(const FaultsOptions& options);
int run_command(const ConformOptions& options);
int run_command(const InspectOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_COMMAND_LINE_H_
