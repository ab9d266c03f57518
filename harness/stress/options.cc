#include "harness/stress/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>

#include "harness/number_option.h"
#include "harness/stress/mutants.h"

namespace perfring::stress {
namespace {

constexpr std::size_t kPagesMax = 1024;

CLI::Validator power_of_two() {
  return CLI::Validator(
      [](const std::string& text) {
        std::size_t pages = 0;
        const bool is = CLI::detail::lexical_cast(text, pages) && std::has_single_bit(pages) &&
                        pages <= kPagesMax;
        return is ? std::string{}
                  : fmt::format("'{}' is not accepted: give a power of two from 1 to {}", text,
                                kPagesMax);
      },
      "N");
}

CLI::Validator seconds() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const bool is = CLI::detail::lexical_cast(text, value) && value > 0 && value <= 86400;
        return is ? std::string{}
                  : fmt::format(
                        "'{}' is not accepted: give a number of seconds above 0, up to "
                        "86400",
                        text);
      },
      "S");
}

CLI::Validator mutant() {
  return CLI::Validator(
      [](const std::string& text) {
        return find_mutant(text) != nullptr
                   ? std::string{}
                   : fmt::format("there is no mutant '{}': --list names them", text);
      },
      "NAME");
}

}  // namespace

std::variant<Options, Answer> parse(int argc, const char* const* argv) {
  Options options;
  CLI::App app{
      "Real threads and processes write to perf rings as the kernel does, interrupted at any\n"
      "step, while the real consumer drains them: is each record whole, in order, once, and\n"
      "accounted for?\n"
      "Exit codes: 0 all invariants hold, 1 one is violated, 2 usage or environment.",
      "stress"};
  app.add_option("--seconds", options.run.seconds, "How long to run [1]")
      ->check(seconds())
      ->option_text("S");
  app.add_option("--rings", options.run.rings, "Rings in a round, at most [3]")
      ->check(CLI::Range(1U, 64U).description("N"))
      ->option_text("N");
  app.add_option("--pages", options.run.pages, "Data pages of each ring [1 or 2, by chance]")
      ->check(power_of_two())
      ->option_text("N");
  app.add_option("--seed", options.run.seed, "Of what is left to chance [1]")
      ->check(number_from(0))
      ->option_text("N");
  app.add_flag("--threads", options.threads, "Only the part in which writers are threads");
  app.add_flag("--sleepers", options.sleepers, "Only the part in which consumers sleep");
  app.add_flag("--processes", options.processes, "Only the part in which writers are killed");
  app.add_flag("--keep-going", options.run.keep_going, "Do not end with the first violation");
  app.add_flag("--json", options.json, "Print the verdict as JSON");
  app.add_option("--mutant", options.mutant, "Run this one, which is to be found out")
      ->check(mutant())
      ->option_text("NAME");
  app.add_flag("--list", options.list, "Name the mutants");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return Answer{kHolds, app.help()};
    return Answer{kUsageOrEnvironment,
                  fmt::format("stress: {}\nRun with --help for what is accepted.\n", error.what())};
  }
  if (!options.threads && !options.sleepers && !options.processes) {
    options.threads = options.sleepers = options.processes = true;
  }
  return options;
}

std::string mutant_list() {
  std::string list;
  for (const Mutant& mutant : mutants()) {
    list += fmt::format("{:<24} {:<27} {}\n", mutant.name,
                        mutant.raced && mutant.violates ? "ThreadSanitizer, invariants"
                        : mutant.raced                  ? "ThreadSanitizer"
                                                        : "invariants",
                        mutant.fault);
  }
  return list;
}

std::string replay_line(const Options& options) {
  std::string line = fmt::format("stress --seed {} --seconds {} --rings {}", options.run.seed,
                                 options.run.seconds, options.run.rings);
  if (options.run.pages != 0) line += fmt::format(" --pages {}", options.run.pages);
  if (options.run.keep_going) line += " --keep-going";
  if (!options.mutant.empty()) return line + " --mutant " + options.mutant;
  if (options.threads) line += " --threads";
  if (options.sleepers) line += " --sleepers";
  if (options.processes) line += " --processes";
  return line;
}

}  // namespace perfring::stress
