// Runs a script, or converts it between text and the fuzzer's bytes: see --help.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/input.h"
#include "fuzz/script_bytes.h"
#include "harness/program/console.h"
#include "harness/program/options.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/rig/script_outcome.h"
#include "harness/rig/script_run.h"
#include "harness/script/script.h"

namespace perfring::fuzz {
namespace {

struct ToolOptions {
  std::string file;
  bool text = false;
  bool bytes = false;
};

std::optional<Answer> parse_tool(int argc, char** argv, ToolOptions& options) {
  CLI::App app{
      "Runs a script on the simulated kernel, with a consumer that drains its ring, and checks\n"
      "every invariant.",
      "script_tool"};
  app.add_option("file", options.file, "The script, - for stdin")->type_name("FILE")->required();
  app.add_flag("--text", options.text,
               "Print the script that kernel_script reads from these bytes");
  app.add_flag("--bytes", options.bytes, "Print the bytes of a script")->excludes("--text");
  return parse(app, argc, argv);
}

int script_tool(int argc, char** argv) {
  ToolOptions options;
  if (const auto answer = parse_tool(argc, argv, options)) return print_answer(*answer);
  const std::string name = in_quotes(options.file);
  if (options.text) {
    const auto file = read_input("FILE", options.file, kMiB, Content::Binary);
    if (!file) return perfring::fail(file.error());
    const Input input{*file};
    return deliver(to_text(decode_script(input, Encoding::ForOracle)), kHolds, "the script");
  }
  constexpr std::size_t kScriptMax = 4 * kMiB;
  const auto file = read_input("FILE", options.file, kScriptMax);
  if (!file) return perfring::fail(file.error());
  const auto script = script::parse_script(*file);
  if (!script) return perfring::fail(name + ": " + script.error());
  if (options.bytes) {
    const auto bytes = encode_script(*script, Encoding::ForOracle);
    if (!bytes) return perfring::fail(name + ": " + bytes.error());
    const std::string_view text{reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    const auto written = write_output("--bytes", "-", text);
    return written ? kHolds : perfring::fail(written.error());
  }
  if (!rig::oracle_can_check(*script)) return perfring::fail(name + ": " + rig::kOracleCanCheck);
  const rig::ScriptOutcome outcome = rig::outcome_of(*script);
  return deliver(to_text(outcome), exit_code(conclusion_of(outcome).verdict));
}

}  // namespace
}  // namespace perfring::fuzz

int main(int argc, char** argv) {
  return perfring::run_program("script_tool", perfring::fuzz::script_tool, argc, argv);
}
