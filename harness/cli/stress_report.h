#ifndef HARNESS_CLI_STRESS_REPORT_H_
#define HARNESS_CLI_STRESS_REPORT_H_

#include <span>
#include <string>

#include "harness/program/verdict.h"
#include "harness/stress/run.h"

namespace perfring::cli {

// Concludes from the parts: every invariant holds of the records of each; with a fault, it is
// found.
Conclusion conclusion_of(std::span<const stress::PartOutcome> parts, bool interrupted,
                         const std::string& fault);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
// `replay` is the command that reproduces a violation.
std::string stress_table(std::span<const stress::PartOutcome> parts, const Conclusion& conclusion,
                         const std::string& replay);
std::string stress_json(std::span<const stress::PartOutcome> parts, const Conclusion& conclusion,
                        const std::string& replay);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_STRESS_REPORT_H_
