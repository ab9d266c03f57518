#include "harness/cli/stress_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/program/options.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/stress/mutants.h"

namespace perfring::cli {
namespace {

constexpr std::uint64_t kRingsMax = 64;
constexpr std::uint64_t kPagesMax = 1024;

std::vector<std::string> mutant_names() {
  std::vector<std::string> names;
  for (const stress::Mutant& mutant : stress::mutants()) names.push_back(mutant.name);
  return names;
}

const char* found_by(const stress::Mutant& mutant) {
  if (mutant.raced && mutant.violates) return "ThreadSanitizer, invariants";
  return mutant.raced ? "ThreadSanitizer" : "invariants";
}

}  // namespace

CLI::App& declare_command(CLI::App& app, StressOptions& options) {
  CLI::App& stress = *app.add_subcommand(
      "stress",
      "Real threads and processes write to perf rings as the kernel does, interrupted at any\n"
      "step, while the real consumer drains them: is each record whole, in order, once, and\n"
      "accounted for?");
  stress.add_option("--seconds", options.run.seconds, "How long to run [1]")
      ->type_name("S")
      ->check(seconds());
  stress.add_option("--rings", options.run.rings, "Rings in a round, at most [3]")
      ->type_name("N")
      ->check(number_from(1, kRingsMax));
  stress.add_option("--pages", options.run.pages, "Data pages of each ring [1 or 2, at random]")
      ->type_name("N")
      ->check(power_of_two_up_to(kPagesMax));
  stress.add_option("--seed", options.run.seed, "Random seed [1]")
      ->type_name("N")
      ->check(number_from(0));
  const CLI::Option* const parts[] = {
      stress.add_flag("--threads", options.threads, "Only the part in which writers are threads"),
      stress.add_flag("--sleepers", options.sleepers, "Only the part in which consumers sleep"),
      stress.add_flag("--processes", options.processes,
                      "Only the part in which writers are killed")};
  stress.add_flag("--keep-going", options.run.keep_going, "Do not end with the first violation");
  const CLI::Option* const json =
      stress.add_flag("--json", options.json, "Print the verdict as JSON");
  const CLI::Option* const mutant =
      stress
          .add_option("--mutant", options.mutant,
                      "Plant this fault, which must be found; --list says by what")
          ->type_name("NAME")
          ->check(one_of(mutant_names()));
  const CLI::Option* const list =
      stress.add_flag("--list", options.list, "List the mutants, and end");
  std::vector<const CLI::Option*> with_mutant;
  for (const CLI::Option* const option : stress.get_options()) {
    if (std::ranges::find(parts, option) == std::end(parts)) with_mutant.push_back(option);
  }
  refuse_more(stress, {{list, {json}}, {mutant, with_mutant}});
  return stress;
}

std::string stress_list() {
  std::string list;
  for (const stress::Mutant& mutant : stress::mutants()) {
    list += fmt::format("{:<24} {:<27} {}\n", mutant.name, found_by(mutant), mutant.fault);
  }
  return list;
}

std::string stress_list_json() {
  nlohmann::ordered_json json;
  for (const stress::Mutant& mutant : stress::mutants()) {
    json["mutants"].push_back(
        {{"name", mutant.name}, {"found_by", found_by(mutant)}, {"fault", mutant.fault}});
  }
  return dump(json);
}

std::string replay_line(const StressOptions& options) {
  std::string line = fmt::format("{} stress --seed {} --seconds {} --rings {}", invocation(),
                                 options.run.seed, options.run.seconds, options.run.rings);
  if (options.run.pages != 0) line += fmt::format(" --pages {}", options.run.pages);
  if (options.run.keep_going) line += " --keep-going";
  if (!options.mutant.empty()) return line + " --mutant " + options.mutant;
  const bool all = options.every_part();
  if (all || options.threads) line += " --threads";
  if (all || options.sleepers) line += " --sleepers";
  if (all || options.processes) line += " --processes";
  return line;
}

}  // namespace perfring::cli
