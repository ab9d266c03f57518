// `perfring check`.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/check/check.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"
#include "harness/program/console.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

constexpr const char* kInterrupted = "interrupted";  // Result::bound after a signal

std::string label_of(const CheckPlan& plan, model::Form form, const std::string& own) {
  std::string label;
  if (plan.memory_model != model::MemoryModel::Rc11) {
    label = title(plan.memory_model);
  } else if (plan.entry->has_forms) {
    label = form == model::Form::A ? "form A" : "form B";
  }
  if (!own.empty()) label += (label.empty() ? "" : ", ") + own;
  return label.empty() ? plan.entry->name : label;
}

CheckedCase check_one(const CheckPlan& plan, const model::Program& program, std::string label,
                      model::ExploreOptions options) {
  CheckedCase checked{.label = std::move(label), .result = {}, .differences = {}};
  if (plan.memory_model != model::MemoryModel::Rc11) {
    checked.result = explore_machine(
        program, plan.memory_model,
        {.bounds = options.bounds, .stop = options.stop, .on_progress = options.on_progress});
  } else if (plan.compare) {
    return compared_case(std::move(checked.label), compare_merged(program, options));
  } else {
    options.merge = plan.merge;
    checked.result = explore_for_shortest(program, options);
  }
  return checked;
}

// Returns why an expected violation was not found, or "" if none was expected.
std::string not_found(const CheckPlan& plan) {
  // A shared fault belongs to the program ring. The others may not show every fault.
  const auto where = [&plan] { return plan.fault->shared ? "ring" : plan.entry->name; };
  if (plan.memory_model != model::MemoryModel::Rc11) {
    if (plan.fault == nullptr || !plan.fault->fails_on(plan.memory_model)) return {};
    return fmt::format(
        "the fault {} was not found here; `{} check {} --model {} --fault {}` finds it",
        plan.fault->name, invocation(), where(), to_string(plan.memory_model), plan.fault->name);
  }
  if (plan.fault == nullptr || (!plan.fault->fails_in_a && !plan.fault->fails_in_b)) return {};
  const bool in_both = plan.fault->fails_in_a && plan.fault->fails_in_b;
  return fmt::format("the fault {} was not found here; `{} check {} --fault {}` finds it{}",
                     plan.fault->name, invocation(), where(), plan.fault->name,
                     in_both ? "" : fmt::format(" in form {}", plan.fault->fails_in_a ? "A" : "B"));
}

}  // namespace

void interrupt(model::Result& result) {
  if (!result.violation && result.bound.empty()) result.bound = kInterrupted;
}

Conclusion conclude_explorations(bool violated, const std::vector<const model::Result*>& results,
                                 std::string nothing) {
  bool interrupted = false;
  if (results.empty() && nothing.empty()) nothing = model::kNoExecution;
  for (const model::Result* const result : results) {
    interrupted = interrupted || result->bound == kInterrupted;
    if (!nothing.empty()) continue;
    if (!result->bound.empty()) {
      nothing = fmt::format(
          "bound reached: {} (raise it with --events, --executions, --memory or --seconds)",
          result->bound);
    } else if (!result->violation) {
      nothing = result->not_proved();
    }
  }
  return conclude(violated, interrupted, std::move(nothing));
}

Verdict CheckedCase::verdict() const {
  if (result.violation || !differences.empty()) return Verdict::Violated;
  return result.proved() ? Verdict::Holds : Verdict::NotShown;
}

CheckedCase compared_case(std::string label, model::Comparison comparison) {
  CheckedCase checked{.label = std::move(label),
                      .result = std::move(comparison.each),
                      .differences = std::move(comparison.differences)};
  checked.result.merged = comparison.merged.merged;
  if (checked.result.bound.empty()) checked.result.bound = comparison.merged.bound;
  if (comparison.merged.executions == 0) checked.result.executions = 0;
  return checked;
}

std::vector<CheckedCase> run_check(const CheckPlan& plan, const std::atomic<bool>& stop,
                                   const OnProgress& on_progress) {
  std::vector<CheckedCase> checked;
  for (const model::Form form : plan.forms) {
    const std::string fault = plan.fault != nullptr ? plan.fault->name : "";
    for (const model::Case& each :
         plan.entry->cases(plan.size.value_or(model::Size{}), form, fault)) {
      const std::string label = label_of(plan, form, each.label);
      model::ExploreOptions options;
      options.bounds = plan.bounds;
      options.stop = &stop;
      options.on_progress = [&](const model::Result& so_far) {
        on_progress(fmt::format("{}: {}, {} in {:.0f} s", label,
                                counted(so_far.executions, "execution"),
                                counted(so_far.states, "state"), so_far.seconds));
      };
      checked.push_back(check_one(plan, each.program, label, options));
      if (stop) interrupt(checked.back().result);
      if (stop || checked.back().verdict() == Verdict::Violated) return checked;
    }
  }
  return checked;
}

Conclusion conclusion_of(const CheckPlan& plan, const std::vector<CheckedCase>& cases) {
  bool violated = false;
  std::vector<const model::Result*> results;
  for (const CheckedCase& each : cases) {
    violated = violated || each.verdict() == Verdict::Violated;
    results.push_back(&each.result);
  }
  return conclude_explorations(violated, results, not_found(plan));
}

namespace {

// Draws the violation. Without one it prints a message and does not touch the file.
int draw(const CheckPlan& plan, const std::vector<CheckedCase>& cases, int code) {
  if (violation_of(cases) == nullptr) {
    fail(fmt::format("--svg: nothing is violated, so nothing is drawn: {} was not written",
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
  if (options.fences) return deliver(fences_table(), kHolds, "the table");
  if (!options.litmus.empty()) return run_litmus(options);
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
  const bool to_stderr = plan->svg == "-";  // the drawing goes to stdout
  const int delivered = to_stderr ? deliver_to_stderr(verdict, code) : deliver(verdict, code);
  if (plan->svg.empty() || delivered != code) return delivered;
  return draw(*plan, cases, code);
}

}  // namespace perfring::cli
