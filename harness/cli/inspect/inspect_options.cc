#include "harness/cli/inspect/inspect.h"

#include <CLI/CLI.hpp>

#include "harness/program/options.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, InspectOptions& options) {
  CLI::App& inspect = *app.add_subcommand(
      "inspect",
      "Explains the ring in a file, record by record: where each is, what is wrong with it, what\n"
      "perfring delivers, and where it moves data_tail. FILE is a control page and its data "
      "pages,\n"
      "as they are mapped; with --case, an index of vectors (harness/conformance/vectors).");
  inspect.add_option("FILE", options.file, "The file to read; - for stdin")->required();
  CLI::Option* const id =
      inspect.add_option("--case", options.id, "FILE is an index of vectors: explain this case");
  inspect
      .add_option("--turn", options.turn, "Show the ring before the consumer's Nth turn, from 1")
      ->check(number_from(1, 1000))
      ->needs(id)
      ->capture_default_str();
  inspect.add_flag("--fuzz", options.fuzz, "FILE is an input of fuzz/hostile_ring")->excludes(id);
  inspect
      .add_option("--sample-type", options.sample_type,
                  "The event's sample_type, such as TIME|RAW; the ring does not contain it [RAW, "
                  "or the case's]")
      ->excludes(id);
  inspect.add_flag("--json", options.json, "Print the records as JSON");
  inspect.add_option("--svg", options.svg,
                     "Also draw the ring to this file; - draws to stdout and prints nothing else");
  return inspect;
}

}  // namespace perfring::cli
