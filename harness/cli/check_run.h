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

// For litmus tests, too. An exploration that was interrupted proves nothing.
void interrupt(model::Result& result);
// An exploration that was cut short shows nothing, even if all the others hold. `nothing` says why
// they show nothing, or is empty.
Conclusion conclude(bool violated, const std::vector<const model::Result*>& results,
                    std::string nothing);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_RUN_H_
