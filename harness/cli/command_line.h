#ifndef PERFRING_HARNESS_CLI_COMMAND_LINE_H_
#define PERFRING_HARNESS_CLI_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <variant>

#include "harness/cli/check_options.h"
#include "harness/cli/live_options.h"
#include "harness/cli/sim_options.h"

namespace perfring::cli {

// What `perfring` is asked for: `sim` or `check`, if that is the command, else a run on the live
// kernel.
struct CommandLine {
  LiveOptions live;
  std::optional<SimOptions> sim;
  std::optional<CheckOptions> check;
};

// What to print, where there is nothing to run: the answer to --help, or what is not accepted.
struct Answer {
  std::string text;
  bool refused;
};

std::variant<CommandLine, Answer> parse_command_line(int argc, const char* const* argv);

}  // namespace perfring::cli

#endif  // PERFRING_HARNESS_CLI_COMMAND_LINE_H_
