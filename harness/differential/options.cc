#include "harness/differential/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>
#include <string>

#include "harness/number_option.h"
#include "harness/script/script.h"

namespace perfring::differential {

std::variant<Options, Answer> parse(int argc, const char* const* argv,
                                    const std::vector<std::uint32_t>& cpus) {
  CLI::App app{
      "Runs random scripts (outputs, drains, polls, pauses...) on this machine's kernel and on "
      "the\n"
      "simulated one, and compares all that can be seen after every step. A difference is shrunk.\n"
      "Exit codes: 0 no difference, 1 a difference, 2 usage or environment.",
      "differential"};
  Options options;
  // As text: CLI11's IsMember lets an empty one pass for a number.
  std::set<std::string> cpu_names;
  for (const std::uint32_t cpu : cpus) cpu_names.insert(std::to_string(cpu));
  if (!cpus.empty()) options.campaign.cpu = static_cast<int>(cpus.front());
  app.add_option("--scripts", options.campaign.scripts, "How many random scripts")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--seed", options.campaign.seed, "The first script's seed; the next is one more")
      ->check(number_from(0))
      ->capture_default_str();
  app.add_option("--steps", options.campaign.steps_max, "The most steps that a script may have")
      ->check(CLI::Range(std::size_t{1}, script::kStepsMax))
      ->capture_default_str();
  app.add_option("--cpu", options.campaign.cpu, "The CPU to run on")
      ->check(CLI::IsMember(cpu_names))
      ->capture_default_str();
  app.add_option("--script", options.script, "Run the script in this file instead")
      ->check(CLI::ExistingFile);
  app.add_option("--record", options.record,
                 "Compare nothing: write what the live kernel shows to this folder, a trace for "
                 "each script");
  app.add_flag("--json", options.json, "Print the outcome as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return Answer{kEqual, app.help()};
    return Answer{
        kUsageOrEnvironment,
        fmt::format("differential: {}\nRun with --help for what is accepted.\n", error.what())};
  }
  return options;
}

}  // namespace perfring::differential
