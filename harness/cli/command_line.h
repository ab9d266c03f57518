#ifndef HARNESS_CLI_COMMAND_LINE_H_
#define HARNESS_CLI_COMMAND_LINE_H_

// The commands of `perfring`. Each has a folder, and there a type with its options, and for it
//
//   CLI::App& declare_command(CLI::App& app, Options& options);  adds the command to the program
//   int run_command(const Options& options);                     returns the exit code (verdict.h)

#include <tuple>
#include <variant>

#include "harness/cli/check/check.h"
#include "harness/cli/conform/conform.h"
#include "harness/cli/demo/live.h"
#include "harness/cli/diff/diff.h"
#include "harness/cli/faults/faults.h"
#include "harness/cli/inspect/inspect.h"
#include "harness/cli/record/record.h"
#include "harness/cli/sim/sim.h"
#include "harness/cli/stress/stress.h"
#include "harness/program/options.h"

namespace perfring::cli {

// In the order of --help. The demonstration, which runs without a command, is the first.
template <template <class...> class Of>
using EachCommand =
    Of<LiveOptions, SimOptions, CheckOptions, StressOptions, DiffOptions, DecodeOptions,
       EventsOptions, RecordOptions, FaultsOptions, ConformOptions, InspectOptions>;

// The parsed options of the given command.
using Command = EachCommand<std::variant>;

std::variant<Command, Answer> parse_command_line(int argc, const char* const* argv);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_COMMAND_LINE_H_
