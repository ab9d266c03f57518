#ifndef HARNESS_CLI_CHECK_REPORT_H_
#define HARNESS_CLI_CHECK_REPORT_H_

#include <expected>
#include <string>
#include <vector>

#include "harness/cli/check_options.h"
#include "harness/cli/check_run.h"
#include "harness/model/engine/trace.h"

namespace perfring::cli {

// The verdict, as a table for a person and as JSON for a machine. Both hold the same.
std::string check_table(const CheckPlan& plan, const std::vector<CheckedCase>& cases);
std::string check_json(const CheckPlan& plan, const std::vector<CheckedCase>& cases);

// Every program and its faults.
std::string check_list();
std::string check_list_json();

// The violation, or nullptr.
const model::Trace* violation_of(const std::vector<CheckedCase>& cases);

// Draws the violation into the plan's file, by Graphviz. An error says what is missing.
std::expected<void, std::string> write_svg(const CheckPlan& plan,
                                           const std::vector<CheckedCase>& cases);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_REPORT_H_
