// `perfring`: the demonstration, when called without a command.

#include <variant>

#include "harness/cli/command_line.h"
#include "harness/program/options.h"
#include "harness/program/run_program.h"

namespace perfring::cli {
namespace {

int parse_and_run(int argc, char** argv) {
  const auto parsed = parse_command_line(argc, argv);
  if (const auto* const answer = std::get_if<Answer>(&parsed)) return print_answer(*answer);
  return std::visit([](const auto& options) { return run_command(options); },
                    std::get<Command>(parsed));
}

}  // namespace
}  // namespace perfring::cli

int main(int argc, char** argv) {
  return perfring::run_program("perfring", perfring::cli::parse_and_run, argc, argv);
}
