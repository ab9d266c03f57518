#include "harness/cli/stress/stress.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>

#include <algorithm>
#include <vector>

#include "harness/faults/fault_catalogue.h"
#include "harness/program/json.h"
#include "harness/program/options.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/stress/stress_faults.h"

namespace perfring::cli {
namespace {

constexpr std::uint64_t kRingsMax = 64;
constexpr std::uint64_t kPagesMax = 1024;

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const stress::StressFault& fault : stress::planted_faults()) names.push_back(fault.name);
  return names;
}

const char* found_by(const stress::StressFault& fault) {
  const bool raced = is_found(fault.expected(faults::Harness::ThreadSanitizer));
  const bool violates = is_found(fault.expected(faults::Harness::Stress));
  if (raced && violates) return "ThreadSanitizer, invariants";
  if (!raced && !violates) return "nothing";
  return raced ? "ThreadSanitizer" : "invariants";
}

}  // namespace

CLI::App& declare_command(CLI::App& app, StressOptions& options) {
  CLI::App& stress = *app.add_subcommand(
      "stress",
      "Real threads and processes write to perf rings as the kernel does, interrupted at any\n"
      "step, while the real consumer drains them. Checks that each record is whole, in order,\n"
      "delivered once, and accounted for.");
  stress.add_option("--seconds", options.run.seconds, "How long to run [1]")
      ->type_name("S")
      ->check(seconds());
  stress.add_option("--rings", options.run.rings, "The maximum number of rings in a round [3]")
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
  stress.add_flag("--keep-going", options.run.keep_going, "Do not stop at the first violation");
  const CLI::Option* const json =
      stress.add_flag("--json", options.json, "Print the verdict as JSON");
  const CLI::Option* const fault =
      stress
          .add_option("--fault", options.fault,
                      "Plant this fault, which the run must find; --list says what finds it")
          ->type_name("NAME")
          ->check(one_of_many(fault_names(), "perfring stress --list"));
  const CLI::Option* const list =
      stress.add_flag("--list", options.list, "List the faults, and exit");
  std::vector<const CLI::Option*> with_fault;
  for (const CLI::Option* const option : stress.get_options()) {
    if (std::ranges::find(parts, option) == std::end(parts)) with_fault.push_back(option);
  }
  refuse_other_options(stress, {{list, {json}}, {fault, with_fault}});
  return stress;
}

std::string stress_list() {
  std::size_t longest = 0;
  for (const std::string& name : fault_names()) longest = std::max(longest, name.size());
  std::string list;
  for (const stress::StressFault& fault : stress::planted_faults()) {
    list += fmt::format("{:<{}}  {:<27}  {}\n", fault.name, longest, found_by(fault),
                        faults::what(fault.name));
  }
  return list;
}

std::string stress_list_json() {
  Json json;
  for (const stress::StressFault& fault : stress::planted_faults()) {
    json["faults"].push_back(
        {{"name", fault.name}, {"found_by", found_by(fault)}, {"fault", faults::what(fault.name)}});
  }
  return dump(json);
}

std::string replay_line(const StressOptions& options) {
  std::string line = fmt::format("stress --seed {} --seconds {} --rings {}", options.run.seed,
                                 options.run.seconds, options.run.rings);
  if (options.run.pages != 0) line += fmt::format(" --pages {}", options.run.pages);
  if (options.run.keep_going) line += " --keep-going";
  if (!options.fault.empty()) return replay_command(line + " --fault " + options.fault);
  const bool all = options.every_part();
  if (all || options.threads) line += " --threads";
  if (all || options.sleepers) line += " --sleepers";
  if (all || options.processes) line += " --processes";
  return replay_command(line);
}

}  // namespace perfring::cli
