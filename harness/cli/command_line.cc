#include "harness/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "harness/cli/check_command.h"
#include "harness/number_option.h"
#include "perfring/os/syscalls.h"

namespace perfring::cli {
namespace {

// An option whose text `parse` turns into `target`, or refuses.
template <class T>
void add_option(CLI::App& app, const std::string& name, T& target,
                Parsed<T> (*parse)(std::string_view), const std::string& help,
                const std::string& type) {
  app.add_option_function<std::string>(
         name,
         [&target, parse, name](const std::string& text) {
           Parsed<T> parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(name, parsed.error());
           target = *std::move(parsed);
         },
         help)
      ->type_name(type);
}

void add_live_options(CLI::App& app, LiveOptions& options) {
  add_option(app, "--seconds", options.seconds, parse_seconds, "How long to run [5]", "S");
  add_option(app, "--cpus", options.cpus, parse_cpus,
             "CPUs to generate on, such as 0 or 0-2,5 [every online CPU]", "LIST");
  add_option(app, "--payload", options.payload, parse_payload,
             "Bytes in each record, a size or a range [8-256]", "BYTES");
  add_option(app, "--pages", options.pages, parse_pages,
             "Data pages of each ring, a power of two [256]", "N");
  add_option(app, "--watermark", options.watermark, parse_watermark,
             "Bytes written between wakeups, 0: each record wakes [a quarter of the ring]",
             "BYTES");
  app.add_flag("--simulated", options.simulated,
               "Drain the simulated kernel, as is done without any argument where the live one "
               "cannot be used");
  app.add_flag("--json", options.json, "Print the verdict as JSON");
}

// What the options allow one by one but not together.
std::string conflict(const LiveOptions& options) {
  const std::size_t ring = options.pages * os::page_size();
  if (options.watermark > static_cast<std::int64_t>(ring)) {
    return fmt::format(
        "--watermark: {} exceeds the ring of {} bytes: give at most that, or more "
        "--pages",
        options.watermark, ring);
  }
  // Header, raw size, padding, and the 8 bytes that a ring never uses; a LOST in front.
  constexpr std::size_t kOverhead = 12 + 7 + 8 + 24;
  if (options.payload.max + kOverhead > ring) {
    return fmt::format(
        "--payload: a record of {} bytes does not fit a ring of {}: give at most "
        "{}, or more --pages",
        options.payload.max, ring, ring - kOverhead);
  }
  return {};
}

// The demonstration's options are not a command's: they would be passed over.
std::string misplaced(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty()) return {};
  for (const CLI::Option* const option : app.get_options()) {
    if (option->count() == 0) continue;
    const std::string& command = commands.front()->get_name();
    return fmt::format("{} is given before '{}': give {}'s options after it", option->get_name(),
                       command, command);
  }
  return {};
}

CLI::App& add_sim_command(CLI::App& app, SimOptions& options) {
  CLI::App& sim = *app.add_subcommand(
      "sim",
      "Runs the simulated kernel against the drain, in one thread and in an order that the\n"
      "seed decides, and checks every event. The same seed is the same run, everywhere.");
  sim.add_option("--seed", options.seed, "What decides everything [1]")
      ->type_name("S")
      ->check(number_from(0));
  sim.add_option("--scenario", options.scenario, "Its name, or a file of settings [steady]")
      ->type_name("NAME|FILE");
  sim.add_option("--steps", options.steps, "Accesses to memory after which writers stop [50000000]")
      ->type_name("N")
      ->check(number_from(1));
  sim.add_option("--cpus", options.cpus, "Virtual CPUs, each with a ring [the scenario's]")
      ->type_name("C")
      ->check(CLI::Range(1, 64));
  sim.add_option("--set", options.sets, "A setting beside the scenario's; repeatable")
      ->type_name("NAME=VALUE")
      ->take_all();
  sim.add_option("--canary", options.canary, "A faulty kernel or consumer, to see it found")
      ->type_name("NAME");
  sim.add_flag("--list", options.list, "List scenarios, canaries and settings, and end");
  sim.add_flag("--json", options.json, "Print the verdict as JSON");
  return sim;
}

}  // namespace

std::variant<CommandLine, Answer> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{
      "Drains the perf rings of this machine's kernel, on every CPU, while a BPF program fills\n"
      "them, and checks each record: is it whole, in order, and accounted for?\n"
      "Without any argument, where that is not allowed: those of the simulated kernel.\n"
      "Exit codes: 0 all invariants hold, 1 one is violated, 2 usage or environment.",
      "perfring"};
  CommandLine command;
  add_live_options(app, command.live);
  SimOptions sim_options;
  const CLI::App& sim_command = add_sim_command(app, sim_options);
  CheckOptions check_options;
  const CLI::App& check_command = add_check_command(app, check_options);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return Answer{app.help(), false};
    return Answer{std::string{error.what()} + "\nRun with --help for what is accepted.", true};
  }
  if (std::string message = misplaced(app); !message.empty()) {
    return Answer{std::move(message) + "\nRun with --help for what is accepted.", true};
  }
  if (sim_command.parsed()) {
    command.sim = std::move(sim_options);
  } else if (check_command.parsed()) {
    command.check = std::move(check_options);
  } else if (std::string message = conflict(command.live); !message.empty()) {
    return Answer{std::move(message), true};
  }
  return command;
}

}  // namespace perfring::cli
