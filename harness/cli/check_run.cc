#include "harness/cli/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "harness/cli/grouped.h"

namespace perfring::cli {
namespace {

std::string label_of(const CheckPlan& plan, model::Form form, const std::string& own) {
  std::string label;
  if (plan.entry->has_forms) label = form == model::Form::A ? "form A" : "form B";
  if (!own.empty()) label += (label.empty() ? "" : ", ") + own;
  return label.empty() ? plan.entry->name : label;
}

CheckedCase check_one(const CheckPlan& plan, const model::Program& program, std::string label,
                      model::ExploreOptions options) {
  CheckedCase checked{.label = std::move(label), .result = {}, .differences = {}};
  if (plan.compare) {
    model::Comparison comparison = compare_merged(program, options);
    checked.result = std::move(comparison.each);
    checked.result.merged = comparison.merged.merged;
    if (checked.result.bound.empty()) checked.result.bound = comparison.merged.bound;
    checked.differences = std::move(comparison.differences);
  } else {
    options.merge = plan.merge;
    checked.result = explore_for_shortest(program, options);
  }
  return checked;
}

// What was not finished is not proved.
void interrupt(model::Result& result) {
  if (!result.violation && result.bound.empty()) result.bound = "interrupted";
}

template <class Each>
Verdict worst(const std::vector<Each>& all, Verdict (*verdict)(const Each&)) {
  Verdict worst = Verdict::Holds;
  for (const Each& each : all) {
    const Verdict own = verdict(each);
    if (own == Verdict::Violated || worst == Verdict::Holds) worst = own;
  }
  return worst;
}

}  // namespace

Verdict CheckedCase::verdict() const {
  if (result.violation || !differences.empty()) return Verdict::Violated;
  return result.bound.empty() ? Verdict::Holds : Verdict::NotProved;
}

std::vector<CheckedCase> run_check(const CheckPlan& plan, const std::atomic<bool>& stop,
                                   const OnProgress& on_progress) {
  std::vector<CheckedCase> checked;
  for (const model::Form form : plan.forms) {
    const std::string mutant = plan.mutant != nullptr ? plan.mutant->name : "";
    for (const model::Case& each :
         plan.entry->cases(plan.size.value_or(model::Size{}), form, mutant)) {
      const std::string label = label_of(plan, form, each.label);
      model::ExploreOptions options;
      options.bounds = plan.bounds;
      options.stop = &stop;
      options.on_progress = [&](const model::Result& so_far) {
        on_progress(fmt::format("{}: {} executions, {} states in {:.0f} s", label,
                                grouped(so_far.executions), grouped(so_far.states),
                                so_far.seconds));
      };
      checked.push_back(check_one(plan, each.program, label, options));
      if (stop) interrupt(checked.back().result);
      if (stop || checked.back().verdict() == Verdict::Violated) return checked;
    }
  }
  return checked;
}

Verdict verdict_of(const std::vector<CheckedCase>& cases) {
  return worst<CheckedCase>(cases, [](const CheckedCase& each) { return each.verdict(); });
}

std::expected<std::vector<CheckedLitmus>, std::string> run_litmus_file(
    const std::string& file, const model::Bounds& bounds, const std::atomic<bool>& stop,
    const OnProgress& on_progress) {
  errno = 0;
  std::ifstream stream{file};
  if (!stream || stream.peek() == std::ifstream::traits_type::eof()) {
    return std::unexpected(
        fmt::format("--litmus: {} cannot be read: {}", file,
                    errno != 0 ? std::generic_category().message(errno) : "it is empty"));
  }
  std::vector<CheckedLitmus> checked;
  std::string name;
  try {
    const std::vector<model::Litmus> all = model::read_litmus(stream);
    for (const model::Litmus& litmus : all) {
      name = litmus.program.name;
      model::ExploreOptions options;
      options.bounds = bounds;
      options.stop = &stop;
      options.on_progress = [&](const model::Result& so_far) {
        on_progress(fmt::format("{} of {}, {}: {} executions", checked.size() + 1, all.size(), name,
                                grouped(so_far.executions)));
      };
      checked.push_back({name, run_litmus(litmus, options)});
      if (stop) interrupt(checked.back().verdict.result);
      if (stop) break;
    }
  } catch (const model::UsageError& error) {
    return std::unexpected(fmt::format("--litmus: {}: {}{}", file,
                                       name.empty() ? "" : "program " + name + ": ", error.what()));
  }
  return checked;
}

Verdict verdict_of(const std::vector<CheckedLitmus>& programs) {
  return worst<CheckedLitmus>(programs, [](const CheckedLitmus& each) {
    if (!each.verdict.result.bound.empty()) return Verdict::NotProved;
    return each.verdict.differences.empty() ? Verdict::Holds : Verdict::Violated;
  });
}

}  // namespace perfring::cli
