#include "harness/cli/decode.h"

#include <CLI/CLI.hpp>

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, DecodeOptions& options) {
  CLI::App& decode = *app.add_subcommand(
      "decode",
      "Prints the records of a file, one a line, by the names of the kernel's uapi. The file is\n"
      "a perf.data, or has a line of JSON for each record: its bytes, the attributes of its\n"
      "event, and what is known of it from elsewhere (harness/record/vectors.jsonl is one).");
  decode.add_option("FILE", options.file, "The file to read; - for stdin")->required();
  decode.add_flag("--check", options.check,
                  "Print no record: compare each with what is known of it, and name every field "
                  "that differs");
  decode.add_flag("--json", options.json,
                  "Print a JSON object for each record; with --check, the outcome as JSON");
  return decode;
}

}  // namespace perfring::cli
