#include "harness/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace perfring::cli {
namespace {

// Refuses options of the demonstration before a command, which would be ignored.
std::optional<Answer> refuse_misplaced(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty()) return std::nullopt;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->count() == 0) continue;
    const std::string& command = commands.front()->get_name();
    return Answer{fmt::format("{} is given before '{}': give {}'s options after it\n"
                              "Run with --help for the accepted options.",
                              option->get_name(), command, command),
                  true};
  }
  return std::nullopt;
}

// Returns why these options cannot be combined, otherwise "".
template <class Options>
std::string conflict_of(const Options& options) {
  if constexpr (requires { conflict(options); }) return conflict(options);
  return {};
}

// Moves the options of the command that was parsed, if it is this one, into `chosen`.
template <class Options>
void choose(const CLI::App& command, Options& options, std::variant<Command, Answer>& chosen) {
  if (!command.parsed()) return;
  if (std::string message = conflict_of(options); !message.empty()) {
    chosen = Answer{std::move(message), true};
  } else {
    chosen = Command{std::move(options)};
  }
}

}  // namespace

std::variant<Command, Answer> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{
      "Drains the perf rings of this machine's kernel, on every CPU, while a BPF program fills\n"
      "them, and checks that each record is whole, in order, and accounted for.\n"
      "Without arguments, drains the simulated kernel if the live one is not available.",
      "perfring"};
  EachCommand<std::tuple> all;
  std::get<LiveOptions>(all).bare = argc == 1;
  return std::apply(
      [&](LiveOptions& live, auto&... options) -> std::variant<Command, Answer> {
        declare(app, live);
        const std::array<const CLI::App*, sizeof...(options)> commands{
            &declare_command(app, options)...};
        app.require_subcommand(0, 1);
        argc = take_program(argc, argv, std::get<ConformOptions>(all));
        if (auto answer = parse(app, argc, argv)) return *std::move(answer);
        if (auto answer = refuse_misplaced(app)) return *std::move(answer);
        std::variant<Command, Answer> chosen;
        if (app.get_subcommands().empty()) choose(app, live, chosen);
        std::size_t i = 0;
        (choose(*commands[i++], options, chosen), ...);
        return chosen;
      },
      all);
}

}  // namespace perfring::cli
