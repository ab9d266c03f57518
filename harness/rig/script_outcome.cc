#include "harness/rig/script_outcome.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>

#include "harness/rig/script_run.h"

namespace perfring::rig {

bool oracle_can_check(const script::Script& script) {
  const script::Settings& settings = script.settings;
  return settings.sample_type == PERF_SAMPLE_RAW && !settings.write_backward &&
         !settings.overwrite && std::ranges::none_of(script.steps, [](const script::Step& step) {
           return step.action == script::Action::Tail;
         });
}

ScriptOutcome outcome_of(const script::Script& script) {
  ScriptRunner<> runner{script.settings};
  runner.run(script.steps);
  runner.settle();
  return {runner.ledger().totals(), runner.received(), runner.violation()};
}

Conclusion conclusion_of(const ScriptOutcome& outcome) {
  const bool nothing = outcome.received.delivered + outcome.received.malformed == 0;
  return conclude(outcome.violation.has_value(), false, nothing ? "nothing was delivered" : "");
}

std::string to_text(const oracle::Violation& violation) {
  return "violated: " + to_string(violation);
}

std::string to_text(const ScriptOutcome& outcome) {
  const auto& [totals, received, violation] = outcome;
  return fmt::format(
      "{} attempted, {} accepted, {} lost, {} failed; {} delivered, {} "
      "malformed\n{}\n",
      totals.attempts(), totals.accepted, totals.lost, totals.failed, received.delivered,
      received.malformed,
      violation ? to_text(*violation) : sentence(conclusion_of(outcome), "All invariants hold."));
}

}  // namespace perfring::rig
