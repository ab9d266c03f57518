// What check_litmus.h prints.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/check_litmus.h"
#include "harness/program/console.h"
#include "harness/program/counted.h"

namespace perfring::cli {
namespace {

using Result = CheckedLitmus::Result;

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

// The program's line, and what there is to say of it besides.
std::string lines_of(const CheckedLitmus& program) {
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
  for (const model::Outcome& outcome : verdict.outcomes) {
    text += fmt::format("{}: allowed: {}\n", name, one_line(nlohmann::json(outcome).dump()));
  }
  return text;
}

}  // namespace

std::string litmus_table(const CheckedLitmusFile& file) {
  std::string text;
  std::size_t differences = 0, compared = 0, counted_programs = 0, not_shown = 0;
  std::uint64_t executions = 0;
  for (const CheckedLitmus& each : file.programs) {
    text += lines_of(each);
    differences += each.verdict.differences.size();
    executions += each.verdict.result.executions;
    if (each.verdict.compared) ++compared;
    if (each.verdict.counted) ++counted_programs;
    if (each.result == Result::NotShown) ++not_shown;
  }
  return text +
         fmt::format(
             "{}: {}, {}; {} in outcomes and races (of {}) and numbers of executions (of {}); {} "
             "not shown\n{}\n",
             title(file.memory_model), counted(file.programs.size(), "program"),
             counted(executions, "execution"), counted(differences, "difference"),
             counted(compared, "program"), counted(counted_programs, "program"), grouped(not_shown),
             sentence(conclusion_of(file), "All agree"));
}

std::string litmus_json(const CheckedLitmusFile& file) {
  nlohmann::ordered_json json = perfring::to_json(conclusion_of(file));
  json["model"] = to_string(file.memory_model);
  json["programs"] = nlohmann::ordered_json::array();
  for (const CheckedLitmus& each : file.programs) {
    const model::Result& result = each.verdict.result;
    json["programs"].push_back({{"name", each.name},
                                {"result", to_string(each.result)},
                                {"race", result.violation.has_value()},
                                {"outcomes", each.verdict.outcomes},
                                {"executions", result.executions},
                                {"blocked", result.blocked},
                                {"merged", result.merged},
                                {"states", result.states},
                                {"seconds", result.seconds},
                                {"bound", result.bound},
                                {"differences", each.verdict.differences},
                                {"refused", each.verdict.refused}});
  }
  return dump(json);
}

}  // namespace perfring::cli
