#ifndef HARNESS_RIG_SCRIPT_OUTCOME_H_
#define HARNESS_RIG_SCRIPT_OUTCOME_H_

// A script's whole run, for programs that print it: `perfring sim --script` and fuzz/script_tool.

#include <optional>
#include <string>

#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/received.h"
#include "harness/program/verdict.h"
#include "harness/script/script.h"

namespace perfring::rig {

// Whether the oracle can judge the records of the script.
bool oracle_can_check(const script::Script& script);
inline constexpr const char* kOracleCanCheck =
    "only scripts with RAW samples, forward, not overwriting, and without 'tail' can be run here";

struct ScriptOutcome {
  oracle::Totals totals;
  oracle::Received received;
  std::optional<oracle::Violation> violation;
};

// Precondition: oracle_can_check(script).
ScriptOutcome outcome_of(const script::Script& script);

Conclusion conclusion_of(const ScriptOutcome& outcome);
// Returns text: "violated: once: an event was delivered twice".
std::string to_text(const oracle::Violation& violation);
// Returns text: "4 attempted, 3 accepted, 1 lost, 0 failed; 2 delivered, 0 malformed", and the
// verdict.
std::string to_text(const ScriptOutcome& outcome);

}  // namespace perfring::rig

#endif  // HARNESS_RIG_SCRIPT_OUTCOME_H_
