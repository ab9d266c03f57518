// `perfring check`.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/cli/check.h"
#include "harness/cli/check_litmus.h"
#include "harness/cli/command_line.h"
#include "harness/model/fences.h"
#include "harness/program/console.h"
#include "harness/program/input.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

constexpr std::size_t kLitmusMax = 16 * kMiB;  // a program is about 1 KiB

int check_litmus(const CheckOptions& options) {
  const auto text = read_input("--litmus", options.litmus, kLitmusMax);
  if (!text) return fail(text.error());
  const StopOnSignals stop;
  const ProgressLine line;
  const auto file = run_litmus_text(options, *text, stop.requested(),
                                    [&line](const std::string& now) { line.show(now); });
  line.clear();
  if (!file) return fail(file.error());
  return deliver(options.json ? litmus_json(*file) : litmus_table(*file), exit_code(*file));
}

// Draws the violation. Without one, the file stays as it is, and a message says so.
int draw(const CheckPlan& plan, const std::vector<CheckedCase>& cases, int code) {
  if (violation_of(cases) == nullptr) {
    fail(fmt::format("--svg: nothing is violated, so nothing is drawn: {} is not written",
                     plan.svg == "-" ? "stdout" : in_quotes(plan.svg)));
    return code;
  }
  const auto drawn = write_svg(plan, cases);
  return drawn ? code : fail(drawn.error());
}

}  // namespace

int run_command(const CheckOptions& options) {
  if (options.list) {
    return deliver(options.json ? check_list_json() : check_list(), kHolds, "the list");
  }
  if (options.fences) return deliver(model::fences_table(), kHolds, "the table");
  if (!options.litmus.empty()) return check_litmus(options);
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  std::vector<CheckedCase> cases;
  {
    const StopOnSignals stop;
    const ProgressLine line;
    cases =
        run_check(*plan, stop.requested(), [&line](const std::string& text) { line.show(text); });
    line.clear();
  }
  const int code = exit_code(conclusion_of(*plan, cases).verdict);
  const std::string verdict = options.json ? check_json(*plan, cases) : check_table(*plan, cases);
  const bool to_stderr = plan->svg == "-";  // stdout is the picture's
  const int delivered = to_stderr ? deliver_to_stderr(verdict, code) : deliver(verdict, code);
  if (plan->svg.empty() || delivered != code) return delivered;
  return draw(*plan, cases, code);
}

}  // namespace perfring::cli
