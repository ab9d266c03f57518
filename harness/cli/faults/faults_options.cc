#include "harness/cli/faults/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "harness/faults/fault_catalogue.h"
#include "harness/program/options.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, FaultsOptions& options) {
  std::vector<std::string> names;
  for (const faults::Fault& fault : faults::catalogue()) names.emplace_back(fault.name);
  std::vector<std::string> harnesses;
  for (const faults::Harness harness : faults::harnesses()) {
    harnesses.emplace_back(to_string(harness));
  }
  CLI::App& command = *app.add_subcommand(
      "faults",
      "Plants each fault of the catalogue in each harness, and checks that the harness reports\n"
      "the invariant that the catalogue names.");
  command.add_option("faults", options.names, "The faults to plant [all]")
      ->type_name("NAME")
      ->check(one_of_many(names, "perfring faults --list"));
  command
      .add_option(
          "--harness", options.harness,
          fmt::format("Plant the faults in only one harness: {}", fmt::join(harnesses, ", ")))
      ->type_name("HARNESS")
      ->check(one_of(harnesses));
  const CLI::Option* const json =
      command.add_flag("--json", options.json, "Print the table as JSON");
  const CLI::Option* const markdown =
      command.add_flag("--markdown", options.markdown, "Print the table as Markdown");
  const CLI::Option* const list =
      command.add_flag("--list", options.list, "List the faults, and exit");
  std::vector<const CLI::Option*> with_markdown;
  for (const CLI::Option* const option : command.get_options()) {
    if (option != json && option != list) with_markdown.push_back(option);
  }
  refuse_other_options(command, {{list, {json}}, {markdown, with_markdown}});
  return command;
}

}  // namespace perfring::cli
