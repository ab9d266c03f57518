#include "harness/cli/sim.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/command_line.h"
#include "harness/program/console.h"
#include "harness/program/input.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/rig/faults.h"
#include "harness/rig/script_outcome.h"
#include "harness/script/script.h"

namespace perfring::cli {
namespace {

constexpr std::size_t kScriptMax = 4 * kMiB;

std::string json_of(const rig::ScriptOutcome& outcome) {
  nlohmann::ordered_json json = to_json(conclusion_of(outcome));
  json["accepted"] = outcome.totals.accepted;
  json["refused"] = outcome.totals.refused;
  json["delivered"] = outcome.received.delivered;
  json["malformed"] = outcome.received.malformed;
  json["lost"] = outcome.received.lost;
  if (outcome.violation) json["violation"] = violation_object(*outcome.violation);
  return dump(json);
}

// With a fault the script must violate an invariant: that is what shows it.
int with_fault(const script::Script& script, const rig::ScriptFault& fault, bool json) {
  const auto violation = fault.run(script);
  const Conclusion conclusion =
      conclude(violation.has_value(), false,
               violation ? "" : fmt::format("this script does not find '{}'", fault.name));
  std::string text = sentence(conclusion, "All invariants hold.") + "\n";
  if (violation) text = rig::to_text(*violation) + "\n";
  if (json) {
    nlohmann::ordered_json object = to_json(conclusion);
    object["fault"] = fault.name;
    if (violation) object["violation"] = violation_object(*violation);
    text = dump(object);
  }
  return deliver(text, exit_code(conclusion.verdict));
}

}  // namespace

int run_script(const SimOptions& options) {
  const std::string name = "--script: " + in_quotes(options.script) + ": ";
  const auto file = read_input("--script", options.script, kScriptMax);
  if (!file) return fail(file.error());
  const auto script = script::parse_script(*file);
  if (!script) return fail(name + script.error());
  if (!rig::oracle_can_check(*script)) return fail(name + rig::kOracleCanCheck);
  if (options.fault.empty()) {
    const rig::ScriptOutcome outcome = rig::outcome_of(*script);
    return deliver(options.json ? json_of(outcome) : to_text(outcome),
                   exit_code(conclusion_of(outcome).verdict));
  }
  const rig::ScriptFault* const fault = rig::find_planted(options.fault);
  if (fault != nullptr) return with_fault(*script, *fault, options.json);
  return fail(
      fmt::format("--fault: scripts have no fault called {}; see perfring faults "
                  "--harness scripts",
                  in_quotes(options.fault)));
}

}  // namespace perfring::cli
