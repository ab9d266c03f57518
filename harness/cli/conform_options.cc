#include "harness/cli/conform.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <string_view>

#include "harness/program/options.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, ConformOptions& options) {
  CLI::App& conform = *app.add_subcommand(
      "conform",
      "Holds a consumer of perf rings to the cases of harness/conformance: rings that real "
      "kernels\n"
      "produce, and hostile ones. Without a consumer, perfring itself is held to them.\n"
      "  perfring conform --adapter ./adapter     a program that drains a ring in a file\n"
      "  perfring conform -- ./consumer {pages}   a program as it is, on a simulated kernel\n"
      "{pages} in its words is replaced by the pages of the case's ring.\n"
      "harness/conformance/README.md says how to write an adapter, and what a program must print.");
  const CLI::Option* const adapter = conform.add_option(
      "--adapter", options.adapter, "A shell's command, run as COMMAND FILE PAGES SAMPLE_TYPE");
  const CLI::Option* const fault = conform.add_option(
      "--fault", options.fault, "A consumer with this fault of harness/faults: is it found?");
  conform.add_option("--only", options.only,
                     "Only these cases: ids, or a beginning and * for all ids that begin so");
  conform.add_flag("--reachable", options.reachable, "Only cases that a real kernel produces");
  conform.add_option("--known", options.known,
                     "A file of known failures: lines of an id and its outcome. Others than these "
                     "are violations, and so is one of these that is right");
  conform.add_option("--reader", options.reader, "How COMMAND's output is read: lines, bpftool")
      ->check(one_of({"lines", "bpftool"}));
  const CLI::Option* const list =
      conform.add_flag("--list", options.list, "Print the cases, and run none");
  const CLI::Option* const vectors = conform.add_flag(
      "--vectors", options.vectors, "Print the vectors of the cases as JSON, and run none");
  const CLI::Option* const json =
      conform.add_flag("--json", options.json, "Print the outcome as JSON");
  const CLI::Option* const markdown =
      conform.add_flag("--markdown", options.markdown, "Print the outcome as a Markdown table");
  conform.add_option("--junit", options.junit, "Write the outcome to this file as JUnit XML, too");
  const CLI::Option* const only = conform.get_option("--only");
  const CLI::Option* const reachable = conform.get_option("--reachable");
  refuse_more(conform, {{list, {only, reachable}}, {vectors, {only, reachable}}});
  for (const auto& [one, other] : {std::pair{adapter, fault}, {json, markdown}}) {
    conform.get_option(one->get_name())->excludes(conform.get_option(other->get_name()));
  }
  return conform;
}

// CLI11 takes a -- behind an option of several values for the end of those values.
int take_program(int argc, const char* const* argv, ConformOptions& options) {
  if (argc < 2 || std::string_view{argv[1]} != "conform") return argc;
  const std::span all{argv, static_cast<std::size_t>(argc)};
  const auto dashes =
      std::ranges::find_if(all, [](const char* word) { return std::string_view{word} == "--"; });
  if (dashes != all.end()) options.command.assign(dashes + 1, all.end());
  return static_cast<int>(dashes - all.begin());
}

std::string conflict(const ConformOptions& options) {
  if (options.command.empty()) return {};
  if (options.adapter.empty() && options.fault.empty()) return {};
  return "a program after -- is not run with --adapter or --fault: give one of them";
}

}  // namespace perfring::cli
