// `perfring conform`.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/conform/conform.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/cases/vector.h"
#include "harness/conformance/subjects.h"
#include "harness/program/console.h"
#include "harness/program/options.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/script/script.h"

namespace perfring::cli {
namespace {

using conformance::Case;
using conformance::CaseOutcome;
using conformance::Cell;
using CaseRunner = std::function<Cell(const Case&, const conformance::ProcessLimits&)>;

constexpr const char* kLister = "perfring conform --list";

bool matches_pattern(const Case& of, std::string_view pattern) {
  if (pattern.ends_with('*')) return of.id.starts_with(pattern.substr(0, pattern.size() - 1));
  return of.id == pattern;
}

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const Case& of : conformance::suite().cases) all.push_back(of.id);
  for (const Case& of : conformance::suite().long_cases) all.push_back(of.id);
  return all;
}

// Returns the cases to run. Fails if a pattern matches no case.
std::expected<std::vector<const Case*>, std::string> chosen(const ConformOptions& options) {
  const auto& cases = conformance::suite().cases;
  for (const std::string& pattern : options.only) {
    if (std::ranges::any_of(cases, [&](const Case& of) { return matches_pattern(of, pattern); }))
      continue;
    if (conformance::find_case(pattern) != nullptr) continue;  // the id of a long case
    return std::unexpected(fmt::format("--only: {} is not accepted: {}", in_quotes(pattern),
                                       nearest_to(pattern, ids(), kLister)));
  }
  std::vector<const Case*> some;
  for (const Case& of : cases) {
    const auto is_selected = [&](const std::string& pattern) {
      return matches_pattern(of, pattern);
    };
    if (options.reachable && !of.reachable) continue;
    if (options.only.empty() || std::ranges::any_of(options.only, is_selected)) some.push_back(&of);
  }
  for (const Case& of : conformance::suite().long_cases) {
    const bool listed = options.list && options.only.empty();
    if (listed || std::ranges::find(options.only, of.id) != options.only.end()) some.push_back(&of);
  }
  return some;
}

using Known = std::map<std::string, std::string>;

// Parses lines of an id and an outcome. # begins a comment.
std::expected<Known, std::string> known_failures(const std::string& path) {
  Known known;
  if (path.empty()) return known;
  // Accept any bytes, and an empty file: a suite may have no known failures.
  const auto text = read_input("--known", path, kMiB, Content::Binary);
  if (!text) return std::unexpected(text.error());
  std::size_t number = 0;
  constexpr std::size_t kShown = 60;  // bytes of a line in an error: the file may be binary
  for (const auto part : std::views::split(*text, '\n')) {
    ++number;
    // Accept any white space between the words, and the carriage returns of other systems.
    const std::string line{script::without_comment({part.begin(), part.end()})};
    std::istringstream words{line};
    std::string id;
    std::string outcome;
    for (std::string word; words >> word;) {
      std::string& to = id.empty() ? id : outcome;
      to += (to.empty() ? "" : " ") + word;
    }
    if (id.empty()) continue;
    bool is_one = false;
    for (auto each = CaseOutcome::Loses; each <= CaseOutcome::OutOfBounds;
         each = static_cast<CaseOutcome>(static_cast<int>(each) + 1)) {
      is_one = is_one || outcome == to_string(each);
    }
    if (conformance::find_case(id) == nullptr || !is_one) {
      return std::unexpected(fmt::format("--known: {}: line {}: {}", in_quotes(path), number,
                                         not_accepted(line.substr(0, kShown),
                                                      "the id of a case and a failure, such "
                                                      "as 'size-0 hangs'")));
    }
    if (!known.emplace(id, outcome).second) {
      return std::unexpected(fmt::format("--known: {}: line {}: {} is listed twice",
                                         in_quotes(path), number, in_quotes(id)));
    }
  }
  return known;
}

std::string listing(const std::vector<const Case*>& cases) {
  std::string text;
  for (const Case* const of : cases) {
    text += fmt::format("{:<28} {:<9}  {}{}\n", of->id, of->reachable ? "reachable" : "hostile",
                        of->title, of->is_long ? " (long: runs only if --only names it)" : "");
  }
  return text;
}

std::string vectors_of(const std::vector<const Case*>& cases) {
  std::vector<conformance::Vector> vectors;
  for (const Case* const of : cases) vectors.push_back(conformance::vector_of(*of));
  return conformance::index_of(vectors);
}

// If one obstacle, independent of the case, prevented each of the first kAlike cases, it prevents
// all: the remaining cases are not tried. Returns the first cell if so, otherwise nullptr.
constexpr std::size_t kAlike = 3;
const Cell* common_obstacle(const std::vector<ConformRow>& rows) {
  if (rows.size() < kAlike) return nullptr;
  const Cell& first = rows.front().cell;
  const auto is_alike = [&first](const ConformRow& row) {
    return row.cell.outcome == CaseOutcome::NotRun && row.cell.of_any_case &&
           row.cell.detail == first.detail;
  };
  return std::all_of(rows.begin(), rows.begin() + kAlike, is_alike) ? &first : nullptr;
}

ConformReport run_all(const std::vector<const Case*>& cases, const Known& known,
                      const CaseRunner& run) {
  ConformReport report;
  const StopOnSignals signals;
  const ProgressLine progress;
  auto shown = std::chrono::steady_clock::now();
  for (const Case* const of : cases) {
    if (signals.requested()) break;
    const auto begin = std::chrono::steady_clock::now();
    if (begin - shown > std::chrono::seconds{1}) {
      progress.show(fmt::format("{} of {}: {}", report.rows.size(), cases.size(), of->id));
      shown = begin;
    }
    const Cell* const none = common_obstacle(report.rows);
    Cell cell = none != nullptr ? *none : run(*of, {.stop = &signals.requested()});
    if (none != nullptr)
      cell.detail += fmt::format(" (same reason in the first {} cases; not tried again)", kAlike);
    if (signals.requested()) continue;  // this case was cut short
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const auto expected = known.find(of->id);
    report.rows.push_back(
        {of, std::move(cell), took.count(), expected == known.end() ? "" : expected->second});
  }
  progress.clear();
  report.interrupted = report.rows.size() < cases.size();
  return report;
}

int give_report(const ConformReport& report, const ConformOptions& options) {
  if (!options.junit.empty()) {
    const auto written = write_output("--junit", options.junit, to_junit(report));
    if (!written) return fail(written.error());
  }
  const int code = exit_code(report.conclusion().verdict);
  if (options.json) return deliver(to_json_text(report), code);
  return deliver(options.markdown ? to_markdown(report) : to_text(report), code);
}

}  // namespace

int run_command(const ConformOptions& options) {
  const auto cases = chosen(options);
  if (!cases) return fail(cases.error());
  if (options.list) return deliver(listing(*cases), kHolds, "the cases");
  const bool is_long = std::ranges::any_of(*cases, [](const Case* of) { return of->is_long; });
  if (is_long && !options.list && options.command.empty()) {
    return fail("--only: a long case needs an unmodified program: give one after --");
  }
  if (options.vectors) return deliver(vectors_of(*cases), kHolds, "the vectors");
  const auto known = known_failures(options.known);
  if (!known) return fail(known.error());
  const auto faults = conformance::planted_faults();
  if (!options.fault.empty() && std::ranges::find(faults, options.fault) == faults.end()) {
    return fail("--fault: " + not_accepted(options.fault,
                                           nearest_to(options.fault, {faults.begin(), faults.end()},
                                                      "perfring faults")));
  }
  CaseRunner run = [](const Case& of, const conformance::ProcessLimits&) {
    return conformance::run_perfring(conformance::vector_of(of));
  };
  std::string subject = "perfring";
  if (!options.adapter.empty()) {
    subject = options.adapter;
    run = [&](const Case& of, const conformance::ProcessLimits& limits) {
      return conformance::run_adapter(options.adapter, conformance::vector_of(of), limits);
    };
  } else if (!options.command.empty()) {
    subject = options.command.front();
    const auto& reader = conformance::reader_of(options.reader.empty() ? "lines" : options.reader);
    const auto by = options.live ? conformance::KernelKind::LiveKernel
                                 : conformance::KernelKind::SimulatedKernel;
    run = [&options, &reader, by](const Case& of, const conformance::ProcessLimits& limits) {
      return conformance::run_supervised(options.command, of, reader, limits, by);
    };
  } else if (!options.fault.empty()) {
    subject = "a consumer with the fault " + options.fault;
    run = [&](const Case& of, const conformance::ProcessLimits&) {
      return conformance::run_fault(options.fault, conformance::vector_of(of));
    };
  }
  try {
    ConformReport report = run_all(*cases, *known, run);
    report.subject = subject;
    report.is_watched =
        std::ranges::any_of(report.rows, [](const ConformRow& row) { return row.cell.is_watched; });
    return give_report(report, options);
  } catch (const conformance::CannotRun& error) {
    return fail(error.what());
  }
}

}  // namespace perfring::cli
