#include "harness/cli/conform/conform.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "harness/program/options.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, ConformOptions& options) {
  CLI::App& conform = *app.add_subcommand(
      "conform",
      "Checks a consumer of perf rings against the cases of harness/conformance: rings that real "
      "kernels\n"
      "produce, and hostile ones. Without a consumer, checks perfring itself.\n"
      "  perfring conform --adapter ./adapter     a program that drains a ring in a file\n"
      "  perfring conform -- ./consumer {pages}   an unmodified program, on a simulated kernel\n"
      "                                           or, with --live, on this machine's own\n"
      "{pages} in its arguments is replaced by the number of pages of the case's ring.\n"
      "docs/conformance.md explains how to write an adapter, and what a program must print.");
  const CLI::Option* const adapter = conform.add_option(
      "--adapter", options.adapter, "A shell command, run as COMMAND FILE PAGES SAMPLE_TYPE");
  const CLI::Option* const fault = conform.add_option(
      "--fault", options.fault, "Check a consumer with this fault of harness/faults");
  conform
      .add_option("--only", options.only,
                  "Only these cases: ids, or a prefix and * for all ids that begin with it")
      ->delimiter(',');
  conform.add_flag("--reachable", options.reachable, "Only cases that a real kernel produces");
  conform.add_option("--known", options.known,
                     "A file of known failures, each line an id and its outcome. Any other failure "
                     "is a violation, and so is a known failure that no longer occurs");
  conform
      .add_option("--reader", options.reader,
                  "The format of the program's output: lines, lines-24 (24 bytes of samples), "
                  "bpftool, bpftrace, perf-trace")
      ->check(one_of({"lines", "lines-24", "bpftool", "bpftrace", "perf-trace"}));
  conform.add_flag("--live", options.live,
                   "The program after -- runs on this machine's kernel (as root); cases that a "
                   "live kernel cannot produce are not run");
  const CLI::Option* const list =
      conform.add_flag("--list", options.list, "List the cases, and run none");
  const CLI::Option* const vectors = conform.add_flag(
      "--vectors", options.vectors, "Print the vectors of the cases as JSON, and run none");
  const CLI::Option* const json =
      conform.add_flag("--json", options.json, "Print the outcome as JSON");
  const CLI::Option* const markdown =
      conform.add_flag("--markdown", options.markdown, "Print the outcome as a Markdown table");
  conform.add_option("--junit", options.junit, "Also write the outcome to this file as JUnit XML");
  const CLI::Option* const only = conform.get_option("--only");
  const CLI::Option* const reachable = conform.get_option("--reachable");
  refuse_other_options(conform, {{list, {only, reachable}}, {vectors, {only, reachable}}});
  for (const auto& [one, other] : {std::pair{adapter, fault}, {json, markdown}}) {
    conform.get_option(one->get_name())->excludes(conform.get_option(other->get_name()));
  }
  return conform;
}

// CLI11 must not see the --: after an option with several values, it takes -- for their end.
int take_program(int argc, const char* const* argv, ConformOptions& options) {
  if (argc < 2 || std::string_view{argv[1]} != "conform") return argc;
  const std::span all{argv, static_cast<std::size_t>(argc)};
  const auto dashes =
      std::ranges::find_if(all, [](const char* word) { return std::string_view{word} == "--"; });
  options.has_dashes = dashes != all.end();
  if (options.has_dashes) options.command.assign(dashes + 1, all.end());
  return static_cast<int>(dashes - all.begin());
}

// Refuses an empty command after --. The user meant a consumer, so perfring must not be checked in
// its place (P32).
std::string conflict(const ConformOptions& options) {
  if (options.command.empty()) {
    if (options.has_dashes) {
      return "no program is given after --: give one, or leave out -- to check perfring itself";
    }
    if (!options.reader.empty())
      return "--reader needs a program after --: it reads that program's output";
    return options.live ? "--live needs a program after --: it runs that program on this kernel"
                        : "";
  }
  if (options.adapter.empty() && options.fault.empty()) return {};
  return "a program after -- cannot be combined with --adapter or --fault: give only one of them";
}

}  // namespace perfring::cli
