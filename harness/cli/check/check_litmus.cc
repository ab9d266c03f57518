// Runs `perfring check --litmus` and prints its result.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/check/check.h"
#include "harness/cli/check/check_litmus.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/hardware/litmus_machine.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

constexpr std::size_t kLitmusMax = 16 * kMiB;  // a program is about 1 KiB

struct CheckedLitmusFile {
  model::MemoryModel memory_model = model::MemoryModel::Rc11;
  std::vector<CheckedLitmus> programs;
};

using Result = CheckedLitmus::Result;

}  // namespace

Result result_of(const model::Litmus& litmus, model::MemoryModel memory_model,
                 const model::LitmusVerdict& verdict) {
  if (!verdict.refused.empty()) {
    return litmus.not_expressible.contains(memory_model) ? Result::NotExpressible : Result::Refused;
  }
  if (!verdict.differences.empty()) return Result::Differs;
  if (!verdict.result.bound.empty()) return Result::NotShown;
  if (!verdict.result.violation && !verdict.result.proved()) return Result::NotShown;
  if (!verdict.compared) return Result::NothingExpected;
  return Result::Agrees;
}

void compare_search(const model::MachineAnswer& found, bool has_branch,
                    model::LitmusVerdict& verdict) {
  if (has_branch ? std::ranges::includes(verdict.outcomes, found.outcomes)
                 : found.outcomes == verdict.outcomes &&
                       found.result.executions == verdict.result.executions) {
    return;
  }
  verdict.differences.push_back(fmt::format(
      "the search finds {} and {}, the axioms allow {} and {}",
      counted(found.outcomes.size(), "outcome"), counted(found.result.executions, "execution"),
      counted(verdict.outcomes.size(), "outcome"),
      counted(verdict.result.executions, "execution")));
}

namespace {

bool has_branch(const model::LitmusText& text) {
  return std::ranges::any_of(text.threads, [](const std::vector<model::Op>& thread) {
    return std::ranges::any_of(thread,
                               [](const model::Op& op) { return op.kind == model::Op::Kind::If; });
  });
}

void search(const model::Litmus& litmus, model::MemoryModel memory_model,
            const model::MachineOptions& how, CheckedLitmus& checked) {
  const model::MachineAnswer found = explore_litmus(litmus.text, memory_model, how);
  if (!found.result.bound.empty() || *how.stop) return;
  checked.searched = true;
  compare_search(found, has_branch(litmus.text), checked.verdict);
}

const CheckedLitmus* first_refused(const CheckedLitmusFile& file) {
  const auto found = std::ranges::find(file.programs, Result::Refused, &CheckedLitmus::result);
  return found == file.programs.end() ? nullptr : &*found;
}

// Runs the programs of a file's text. An error names the file, the program and the field.
std::expected<CheckedLitmusFile, std::string> run_litmus_text(const CheckOptions& options,
                                                              const std::string& text,
                                                              const std::atomic<bool>& stop,
                                                              const OnProgress& on_progress) {
  std::istringstream stream{text};
  std::vector<model::Litmus> all;
  try {
    all = model::read_litmus(stream);
  } catch (const model::UsageError& error) {
    return std::unexpected(
        fmt::format("--litmus: {}: {}", in_quotes(options.litmus), error.what()));
  }
  if (all.empty()) {
    return std::unexpected(
        fmt::format("--litmus: {} has no program: give at least one", in_quotes(options.litmus)));
  }
  CheckedLitmusFile checked{.memory_model = options.memory_model, .programs = {}};
  for (const model::Litmus& litmus : all) {
    const std::string& name = litmus.program.name;
    model::ExploreOptions how;
    how.bounds = options.bounds;
    how.stop = &stop;
    how.on_progress = [&](const model::Result& so_far) {
      on_progress(fmt::format("{} of {}, {}: {}", checked.programs.size() + 1, all.size(),
                              one_line(name), counted(so_far.executions, "execution")));
    };
    CheckedLitmus one{.name = name,
                      .verdict = run_litmus(litmus, options.memory_model, how),
                      .unassigned = litmus.unassigned};
    if (options.memory_model != model::MemoryModel::Rc11 && one.verdict.refused.empty() &&
        one.verdict.result.bound.empty()) {
      search(litmus, options.memory_model, {.bounds = options.bounds, .stop = &stop}, one);
    }
    if (stop) interrupt(one.verdict.result);
    one.result = result_of(litmus, options.memory_model, one.verdict);
    checked.programs.push_back(std::move(one));
    if (stop) break;
  }
  return checked;
}

Conclusion conclusion_of(const CheckedLitmusFile& file) {
  bool violated = false, compared_any = false;
  std::vector<const model::Result*> results;
  for (const CheckedLitmus& each : file.programs) {
    violated = violated || each.result == Result::Differs;
    compared_any = compared_any || each.verdict.compared || each.result == Result::NotShown;
    if (each.verdict.refused.empty()) results.push_back(&each.verdict.result);
  }
  std::string nothing;
  if (const CheckedLitmus* const refused = first_refused(file)) {
    nothing = fmt::format("{} cannot run program {}: {}", title(file.memory_model),
                          one_line(refused->name), one_line(refused->verdict.refused));
  } else if (!compared_any) {
    nothing = fmt::format("the file has no expectation for {}", title(file.memory_model));
  }
  return conclude_explorations(violated, results, std::move(nothing));
}

// Returns kUsageOrEnvironment if a program is refused, unless another program differs.
int exit_code(const CheckedLitmusFile& file) {
  const int code = perfring::exit_code(conclusion_of(file).verdict);
  return code != kViolated && first_refused(file) != nullptr ? kUsageOrEnvironment : code;
}

const char* to_string(Result result) {
  switch (result) {
    case Result::Agrees:
      return "agrees";
    case Result::Differs:
      return "DIFFERS";
    case Result::NothingExpected:
      return "nothing expected";
    case Result::NotExpressible:
      return "not expressible";
    case Result::Refused:
      return "refused";
    case Result::NotShown:
      break;
  }
  return "not shown";
}

std::string verdict_lines(const CheckedLitmus& program) {
  const std::string name = one_line(program.name);
  const model::LitmusVerdict& verdict = program.verdict;
  if (!verdict.refused.empty()) {
    return fmt::format("{}: {}: {}\n", name, to_string(program.result), one_line(verdict.refused));
  }
  if (!verdict.result.bound.empty()) {
    return fmt::format("{}: {}: {}\n", name, to_string(program.result), verdict.result.bound);
  }
  std::string text = fmt::format(
      "{}: {}: {}\n", name, to_string(program.result),
      verdict.result.violation ? "a race"
                               : fmt::format("{}, {}", counted(verdict.outcomes.size(), "outcome"),
                                             counted(verdict.result.executions, "execution")));
  for (const std::string& difference : verdict.differences) {
    text += fmt::format("{}: {}\n", name, one_line(difference));
  }
  if (program.result != Result::NothingExpected) return text;
  for (const model::LitmusOutcome& outcome : verdict.outcomes) {
    text += fmt::format("{}: allowed: {}\n", name, one_line(model::json_of(outcome).dump()));
  }
  return text;
}

std::string lines_of(const CheckedLitmus& program) {
  std::string text = verdict_lines(program);
  for (const std::string& unassigned : program.unassigned) {
    text += fmt::format("{}: note: {}\n", one_line(program.name), one_line(unassigned));
  }
  return text;
}

std::string closing_sentence(const CheckedLitmusFile& file, std::size_t differences) {
  const Conclusion conclusion = conclusion_of(file);
  if (differences == 0) return sentence(conclusion, "All agree");
  return std::string{"The file's expectations are not met"} +
         (conclusion.interrupted ? " (interrupted)" : "");
}

// The verdict as a table and as JSON.
std::string litmus_table(const CheckedLitmusFile& file) {
  std::string text;
  std::size_t differences = 0, compared = 0, counted_programs = 0, not_shown = 0, searched = 0;
  std::uint64_t executions = 0;
  for (const CheckedLitmus& each : file.programs) {
    text += lines_of(each);
    differences += each.verdict.differences.size();
    executions += each.verdict.result.executions;
    if (each.verdict.compared) ++compared;
    if (each.verdict.counted) ++counted_programs;
    if (each.result == Result::NotShown) ++not_shown;
    if (each.searched) ++searched;
  }
  if (file.memory_model != model::MemoryModel::Rc11) {
    text += fmt::format("{}: the search that proves the ring was compared with the axioms on {}\n",
                        title(file.memory_model), counted(searched, "program"));
  }
  return text +
         fmt::format(
             "{}: {}, {}; {} in outcomes and races (of {}) and numbers of executions (of {}); {} "
             "not shown\n{}\n",
             title(file.memory_model), counted(file.programs.size(), "program"),
             counted(executions, "execution"), counted(differences, "difference"),
             counted(compared, "program"), counted(counted_programs, "program"), grouped(not_shown),
             closing_sentence(file, differences));
}

std::string litmus_json(const CheckedLitmusFile& file) {
  Json json = perfring::to_json(conclusion_of(file));
  json["model"] = to_string(file.memory_model);
  json["programs"] = Json::array();
  for (const CheckedLitmus& each : file.programs) {
    const model::Result& result = each.verdict.result;
    Json outcomes = Json::array();
    for (const auto& outcome : each.verdict.outcomes) outcomes.push_back(model::json_of(outcome));
    json["programs"].push_back({{"name", each.name},
                                {"result", to_string(each.result)},
                                {"race", result.violation.has_value()},
                                {"outcomes", outcomes},
                                {"executions", result.executions},
                                {"blocked", result.blocked},
                                {"merged", result.merged},
                                {"states", result.states},
                                {"seconds", result.seconds},
                                {"bound", result.bound},
                                {"searched", each.searched},
                                {"notes", each.unassigned},
                                {"differences", each.verdict.differences},
                                {"refused", each.verdict.refused}});
  }
  return dump(json);
}

}  // namespace

int run_litmus(const CheckOptions& options) {
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

}  // namespace perfring::cli
