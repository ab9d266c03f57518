#include "harness/cli/diff/diff.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "harness/program/options.h"
#include "harness/script/script.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, DiffOptions& options) {
  constexpr std::uint64_t kScriptsMax = 1'000'000'000;
  constexpr std::uint64_t kCpusMax = 65535;
  CLI::App& diff = *app.add_subcommand(
      "diff",
      "Runs random scripts (outputs, drains, polls, pauses...) on this machine's kernel and on\n"
      "the simulated one, and compares everything visible after every step. A script with a\n"
      "difference is shrunk. --replay compares the simulated kernel with recorded traces instead.");
  diff.add_option("--scripts", options.campaign.scripts, "The number of random scripts [10000]")
      ->type_name("N")
      ->check(number_from(1, kScriptsMax));
  diff.add_option("--seed", options.campaign.seed,
                  "The first script's seed; each further script's is one higher [1]")
      ->type_name("S")
      ->check(number_from(0));
  diff.add_option("--steps", options.campaign.steps_max,
                  "The maximum number of steps in a script [80]")
      ->type_name("N")
      ->check(number_from(1, script::kStepsMax));
  diff.add_option("--cpu", options.cpu,
                  "The CPU to run on [the first that this process may run on]")
      ->type_name("C")
      ->check(number_from(0, kCpusMax));
  CLI::Option* const script = diff.add_option("--script", options.script,
                                              "Run the script in this file instead; - for stdin")
                                  ->type_name("FILE");
  CLI::Option* const record =
      diff.add_option("--record", options.record,
                      "Compare nothing: record the live kernel in this folder, one trace for each "
                      "script; - for stdout, with --script")
          ->type_name("FOLDER");
  CLI::Option* const replay =
      diff.add_option(
              "--replay", options.traces,
              "Compare with the traces in this file instead, without privileges; repeatable")
          ->type_name("FILE")
          ->expected(1)
          ->take_all();
  diff.add_flag("--json", options.json, "Print the outcome as JSON");
  diff.parse_complete_callback([replay, script, record, &diff, &options] {
    for (const char* const name : {"--scripts", "--seed", "--steps", "--cpu"}) {
      if (replay->count() != 0 && diff.count(name) != 0) {
        throw CLI::ValidationError(name, "cannot be given together with --replay");
      }
      if (script->count() != 0 && std::string{name} != "--cpu" && diff.count(name) != 0) {
        throw CLI::ValidationError(name, "cannot be given together with --script");
      }
    }
    if (replay->count() != 0 && script->count() + record->count() != 0) {
      throw CLI::ValidationError("--replay", "cannot be given together with --script or --record");
    }
    if (record->count() != 0 && diff.count("--json") != 0) {
      throw CLI::ValidationError("--json", "cannot be given together with --record");
    }
    if (options.record == "-" && script->count() == 0) {
      throw CLI::ValidationError("--record", "- takes only one trace: give --script");
    }
  });
  return diff;
}

}  // namespace perfring::cli
