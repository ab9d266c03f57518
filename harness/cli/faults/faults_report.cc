// The reports of `perfring faults`.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/cli/faults/faults.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

using faults::Harness;
using faults::Reason;

std::vector<Harness> columns_of(const std::vector<FaultCell>& cells) {
  std::vector<Harness> columns;
  for (const FaultCell& cell : cells) {
    if (std::ranges::count(columns, cell.harness) == 0) columns.push_back(cell.harness);
  }
  return columns;
}

// Groups the cells by fault. The cells of one fault are adjacent.
std::vector<std::vector<const FaultCell*>> rows_of(const std::vector<FaultCell>& cells) {
  std::vector<std::vector<const FaultCell*>> rows;
  for (const FaultCell& cell : cells) {
    if (rows.empty() || rows.back().front()->fault != cell.fault) rows.emplace_back();
    rows.back().push_back(&cell);
  }
  return rows;
}

// Returns "intact", "holds, as expected", "(in order)", "MISSED", "FOUND: awake" or "not run".
std::string in_the_table(const FaultCell& cell) {
  switch (cell.verdict) {
    case CellVerdict::Found:
      return cell.found.as;
    case CellVerdict::Holds:
      return "holds, as expected";
    case CellVerdict::Undetectable:
    case CellVerdict::NotPlanted:
      return fmt::format("({})", to_string(std::get<Reason>(cell.expected())));
    case CellVerdict::Missed:
      return "MISSED";
    case CellVerdict::FoundOtherwise:
      return fmt::format("FOUND: {}", cell.found.as);
    case CellVerdict::NotRun:
      return "not run";
  }
  return "";
}

std::set<Reason> reasons_in(const std::vector<FaultCell>& cells) {
  std::set<Reason> reasons;
  for (const FaultCell& cell : cells) {
    const bool reasoned =
        cell.verdict == CellVerdict::Undetectable || cell.verdict == CellVerdict::NotPlanted;
    if (reasoned) reasons.insert(std::get<Reason>(cell.expected()));
  }
  return reasons;
}

std::size_t count(const std::vector<FaultCell>& cells, CellVerdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(cells, verdict, &FaultCell::verdict));
}

// Returns text that depends neither on the threads' schedule nor on which sanitizer was faster.
std::string in_markdown(const FaultCell& cell) {
  return cell.verdict == CellVerdict::Found ? in_words(cell.expected()) : in_the_table(cell);
}

// The column "fuzz". fuzz/hostile_drain_test.cc checks it against the fuzz target.
std::string fuzzed(const faults::Fault& fault) {
  const faults::Expected expected = by_fuzzing(fault);
  const auto* const reason = std::get_if<Reason>(&expected);
  return reason == nullptr ? in_words(expected) : fmt::format("({})", to_string(*reason));
}

// The column "conform". harness/conformance/conformance_test.cc checks it against the suite.
std::string conformed(const faults::Fault& fault) {
  const faults::Conforms outcome = by_conformance(fault);
  const auto* const reason = std::get_if<Reason>(&outcome);
  return reason == nullptr ? std::get<const char*>(outcome)
                           : fmt::format("({})", to_string(*reason));
}

}  // namespace

std::string faults_list() {
  std::string text;
  for (const faults::Fault& fault : faults::catalogue()) {
    text += fmt::format("{:<30}  {}\n", fault.name, fault.what);
  }
  return text;
}

std::string faults_list_json() {
  Json json;
  for (const faults::Fault& fault : faults::catalogue()) {
    json["faults"].push_back({{"name", fault.name}, {"fault", fault.what}});
  }
  return dump(json);
}

std::string faults_table(const std::vector<FaultCell>& cells, const Conclusion& conclusion) {
  std::string text = fmt::format("{:<26}", "fault");
  for (const Harness harness : columns_of(cells)) text += fmt::format("{:<22}", to_string(harness));
  text += "\n";
  for (const auto& row : rows_of(cells)) {
    text += fmt::format("{:<26}", row.front()->fault->name);
    for (const FaultCell* const cell : row) text += fmt::format("{:<22}", in_the_table(*cell));
    text += "\n";
  }
  for (const Reason reason : reasons_in(cells)) {
    text += fmt::format("({}): {}\n", to_string(reason), explanation(reason));
  }
  std::set<std::string> not_run;
  for (const FaultCell& cell : cells) {
    if (!cell.not_run.empty()) {
      not_run.insert(fmt::format("not run, {}: {}", to_string(cell.harness), cell.not_run));
    }
  }
  for (const std::string& line : not_run) text += line + "\n";
  for (const FaultCell& cell : cells) {
    if (!cell.is_wrong()) continue;
    text += fmt::format("VIOLATED {} in {}: expected {}, but it was {}\n", cell.fault->name,
                        to_string(cell.harness), in_words(cell.expected()),
                        cell.found.as.empty()
                            ? "not found"
                            : "found as " + cell.found.as + ": " + cell.found.message);
  }
  return text +
         fmt::format(
             "Found {}, held as expected {}, undetectable {}, not planted {}, not run {}. {}\n",
             counted(count(cells, CellVerdict::Found), "time"),
             counted(count(cells, CellVerdict::Holds), "time"),
             counted(count(cells, CellVerdict::Undetectable), "time"),
             counted(count(cells, CellVerdict::NotPlanted), "time"),
             counted(count(cells, CellVerdict::NotRun), "time"),
             sentence(conclusion, "All match the catalogue"));
}

std::string faults_json(const std::vector<FaultCell>& cells, const Conclusion& conclusion) {
  Json json = to_json(conclusion);
  json["cells"] = Json::array();
  for (const FaultCell& cell : cells) {
    Json one{{"fault", cell.fault->name},
             {"what", cell.fault->what},
             {"kind", to_string(cell.fault->kind)},
             {"harness", to_string(cell.harness)},
             {"expected", in_words(cell.expected())},
             {"verdict", to_string(cell.verdict)},
             {"found_as", cell.found.as},
             {"message", cell.found.message}};
    if (const auto* const reason = std::get_if<Reason>(&cell.expected())) {
      one["reason"] = explanation(*reason);
    }
    if (!cell.not_run.empty()) one["not_run"] = cell.not_run;
    json["cells"].push_back(std::move(one));
  }
  return dump(json);
}

// Has only the columns that this build ran.
std::string faults_markdown(const std::vector<FaultCell>& cells) {
  std::vector<FaultCell> ran;
  std::ranges::copy_if(cells, std::back_inserter(ran),
                       [](const FaultCell& cell) { return cell.verdict != CellVerdict::NotRun; });
  std::string text = "| fault | kind | what is wrong |";
  std::string rule = "|---|---|---|";
  for (const Harness harness : columns_of(ran)) {
    text += fmt::format(" {} |", to_string(harness));
    rule += "---|";
  }
  text += " fuzz | conform | property |\n" + rule + "---|---|---|\n";
  for (const auto& row : rows_of(ran)) {
    const faults::Fault& fault = *row.front()->fault;
    text += fmt::format("| {} | {} | {} |", fault.name, to_string(fault.kind), fault.what);
    for (const FaultCell* const cell : row) text += fmt::format(" {} |", in_markdown(*cell));
    text += fmt::format(" {} | {} | {} |\n", fuzzed(fault), conformed(fault), property_of(fault));
  }
  text += "\n";
  std::set<Reason> reasons = reasons_in(ran);
  for (const FaultCell& cell : ran) {
    if (const auto* why = std::get_if<Reason>(&cell.fault->property)) reasons.insert(*why);
    const faults::Expected fuzzed = by_fuzzing(*cell.fault);
    if (const auto* why = std::get_if<Reason>(&fuzzed)) reasons.insert(*why);
    const faults::Conforms conforms = by_conformance(*cell.fault);
    if (const auto* why = std::get_if<Reason>(&conforms)) reasons.insert(*why);
  }
  for (const Reason reason : reasons) {
    text += fmt::format("- ({}): {}\n", to_string(reason), explanation(reason));
  }
  return text;
}

}  // namespace perfring::cli
