#ifndef HARNESS_CLI_CHECK_RUN_H_
#define HARNESS_CLI_CHECK_RUN_H_

#include <atomic>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/check_options.h"
#include "harness/model/engine/compare.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/litmus/litmus.h"
#include "harness/program/verdict.h"

namespace perfring::cli {

// One program that was explored.
struct CheckedCase {
  std::string label;  // "form A, step 3"
  model::Result result;
  std::vector<std::string> differences;  // of merging, if compared

  Verdict verdict() const;
};

using OnProgress = std::function<void(const std::string& line)>;

// Explores the plan's programs until one does not hold, or `stop` is set.
std::vector<CheckedCase> run_check(const CheckPlan& plan, const std::atomic<bool>& stop,
                                   const OnProgress& on_progress);
// Their common conclusion. A fault that can be found must have been.
Conclusion conclusion_of(const CheckPlan& plan, const std::vector<CheckedCase>& cases);

struct CheckedLitmus {
  std::string name;
  model::LitmusVerdict verdict;
};

// Runs the programs of a file's text. An error names the file, the program and the field.
std::expected<std::vector<CheckedLitmus>, std::string> run_litmus_text(
    const std::string& file, const std::string& text, const model::Bounds& bounds,
    const std::atomic<bool>& stop, const OnProgress& on_progress);
Conclusion conclusion_of(const std::vector<CheckedLitmus>& programs);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_RUN_H_
