#include "harness/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
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

}  // namespace

std::variant<Command, Answer> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{
      "Drains the perf rings of this machine's kernel, on every CPU, while a BPF program fills\n"
      "them, and checks that each record is whole, in order, and accounted for.\n"
      "Without arguments, drains the simulated kernel if the live one is not available.",
      "perfring"};
  LiveOptions live{.bare = argc == 1};
  SimOptions sim;
  CheckOptions check;
  StressOptions stress;
  DiffOptions diff;
  DecodeOptions decode;
  EventsOptions events;
  RecordOptions record;
  FaultsOptions faults;
  ConformOptions conform;
  InspectOptions inspect;
  declare(app, live);
  const CLI::App& sim_command = declare_command(app, sim);
  const CLI::App& check_command = declare_command(app, check);
  const CLI::App& stress_command = declare_command(app, stress);
  const CLI::App& diff_command = declare_command(app, diff);
  const CLI::App& decode_command = declare_command(app, decode);
  const CLI::App& events_command = declare_command(app, events);
  const CLI::App& record_command = declare_command(app, record);
  const CLI::App& faults_command = declare_command(app, faults);
  const CLI::App& conform_command = declare_command(app, conform);
  const CLI::App& inspect_command = declare_command(app, inspect);
  app.require_subcommand(0, 1);
  argc = take_program(argc, argv, conform);
  if (auto answer = parse(app, argc, argv)) return *std::move(answer);
  if (auto answer = refuse_misplaced(app)) return *std::move(answer);
  if (sim_command.parsed()) return Command{std::move(sim)};
  if (check_command.parsed()) return Command{std::move(check)};
  if (stress_command.parsed()) return Command{std::move(stress)};
  if (diff_command.parsed()) return Command{std::move(diff)};
  if (decode_command.parsed()) return Command{std::move(decode)};
  if (events_command.parsed()) return Command{std::move(events)};
  if (record_command.parsed()) return Command{std::move(record)};
  if (faults_command.parsed()) return Command{std::move(faults)};
  if (conform_command.parsed()) {
    if (std::string message = conflict(conform); !message.empty()) {
      return Answer{std::move(message), true};
    }
    return Command{std::move(conform)};
  }
  if (inspect_command.parsed()) return Command{std::move(inspect)};
  if (std::string message = conflict(live); !message.empty()) {
    return Answer{std::move(message), true};
  }
  return Command{std::move(live)};
}

}  // namespace perfring::cli
