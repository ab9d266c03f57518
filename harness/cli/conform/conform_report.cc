// The outcome of `perfring conform`, as text, JSON, Markdown and JUnit.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "harness/cli/conform/conform.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/verdict.h"

namespace perfring::cli {

using conformance::Accept;
using conformance::CaseOutcome;

namespace {

constexpr const char* kind_of(const conformance::Case& of) {
  return of.reachable ? "reachable" : "hostile";
}

std::map<CaseOutcome, std::size_t> counts(const ConformReport& report) {
  std::map<CaseOutcome, std::size_t> all;
  for (const ConformRow& row : report.rows) ++all[row.cell.outcome];
  return all;
}

std::string accepted(const ConformRow& row) {
  std::string text;
  for (const Accept each : row.cell.accepted) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(each));
  }
  return text;
}

// Returns "acceptable (silent)", "hangs, as known" or "right, but the known outcome is 'hangs'".
std::string outcome_of(const ConformRow& row) {
  std::string text = to_string(row.cell.outcome);
  if (row.cell.outcome == CaseOutcome::Acceptable) text += " (" + accepted(row) + ")";
  if (!row.known.empty()) {
    text += row.surprises() ? ", but the known outcome is '" + row.known + "'" : ", as known";
  }
  return text;
}

// Returns the detail and the backtrace, in which " < " precedes the caller of a function.
std::string detail_of(const ConformRow& row) {
  std::string text = one_line(row.cell.detail);
  for (const std::string& frame : row.cell.backtrace) {
    text += (&frame == &row.cell.backtrace.front() ? "; backtrace: " : " < ") + one_line(frame);
  }
  return text;
}

std::string summary(const ConformReport& report) {
  std::string text = counted(report.rows.size(), "case");
  bool first = true;
  for (const auto& [outcome, count] : counts(report)) {
    text += fmt::format("{}{} {}", first ? ": " : ", ", count, to_string(outcome));
    first = false;
  }
  return text;
}

// Lists the known failures that no longer fail.
std::string fixed_cases(const ConformReport& report) {
  std::string text;
  for (const ConformRow& row : report.rows) {
    const bool good = row.cell.outcome <= CaseOutcome::Acceptable;
    if (!row.known.empty() && good) text += (text.empty() ? "" : ", ") + row.of->id;
  }
  return text.empty() ? "" : "fixed; remove from the known failures: " + text + "\n";
}

// Escapes markup. XML must not contain control characters at all.
std::string xml(std::string_view text) {
  std::string safe;
  for (const char c : one_line(text)) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '"') {
      safe += "&quot;";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

bool ConformRow::surprises() const {
  const bool failed = is_failure(cell.outcome);
  if (known.empty()) return failed;
  return known != to_string(cell.outcome);
}

Conclusion ConformReport::conclusion() const {
  const auto ran = [](const ConformRow& row) { return row.cell.outcome != CaseOutcome::NotRun; };
  const auto broken = [](const ConformRow& row) {
    return row.cell.outcome == CaseOutcome::NotRun && !row.cell.unsupported;
  };
  std::string nothing;
  if (std::ranges::none_of(rows, ran)) {
    nothing = "no case was run";
  } else if (const auto found = std::ranges::find_if(rows, broken); found != rows.end()) {
    nothing = fmt::format("{} was not run: {}", found->of->id, found->cell.detail);
  }
  return conclude(std::ranges::any_of(rows, &ConformRow::surprises), interrupted, nothing);
}

// Printed in the text and in the JSON: the limits of the outcome "right".
constexpr const char* kNotCheckedAtAll =
    "what a processor or a compiler reorders (a missing fence, a torn read)";
constexpr const char* kNotCheckedUnwatched =
    "what a processor or a compiler reorders; a write during a drain, which exposes a data_head "
    "that is read twice, and a data_tail that is moved before its records are read (only a program "
    "whose accesses are watched gets one: an x86-64 or i386 program, without --live)";

// A run whose subject's accesses to data_head and data_tail were watched looked for more.
const char* not_looked_for(const ConformReport& report) {
  return report.is_watched ? kNotCheckedAtAll : kNotCheckedUnwatched;
}
constexpr const char* kWhere = "docs/conformance.md: What it does not show";

std::string to_text(const ConformReport& report) {
  std::string text;
  std::size_t width = 0;
  for (const ConformRow& row : report.rows) width = std::max(width, row.of->id.size());
  for (const ConformRow& row : report.rows) {
    text += fmt::format("{:<{}}  {:<9}  {}", row.of->id, width, kind_of(*row.of), outcome_of(row));
    if (const std::string detail = detail_of(row); !detail.empty()) text += ": " + detail;
    text += "\n";
  }
  const Conclusion conclusion = report.conclusion();
  return text + summary(report) + "\n" + fixed_cases(report) +
         sentence(conclusion, one_line(report.subject) + " is right in every case that was run") +
         fmt::format("\nNot tested: {}: see {}\n", not_looked_for(report), kWhere);
}

std::string to_json_text(const ConformReport& report) {
  Json json = to_json(report.conclusion());
  json["suite"] = conformance::suite().version;
  json["subject"] = report.subject;
  json["not_looked_for"] = not_looked_for(report);
  json["counts"] = Json::object();
  for (const auto& [outcome, count] : counts(report)) json["counts"][to_string(outcome)] = count;
  json["cases"] = Json::array();
  for (const ConformRow& row : report.rows) {
    Json one{{"id", row.of->id},
             {"reachable", row.of->reachable},
             {"outcome", to_string(row.cell.outcome)},
             {"detail", row.cell.detail}};
    for (const Accept each : row.cell.accepted) one["accepted"].push_back(to_string(each));
    if (!row.cell.backtrace.empty()) one["backtrace"] = row.cell.backtrace;
    if (!row.known.empty()) one["known"] = row.known;
    json["cases"].push_back(std::move(one));
  }
  return dump(json);
}

std::string to_markdown(const ConformReport& report) {
  std::string text = fmt::format("| case | | {} |\n|---|---|---|\n", one_line(report.subject));
  for (const ConformRow& row : report.rows) {
    std::string detail = detail_of(row);
    std::ranges::replace(detail, '|', '/');
    text += fmt::format("| {} | {} | {}{}{} |\n", row.of->id, kind_of(*row.of), outcome_of(row),
                        detail.empty() ? "" : ": ", detail);
  }
  return text + "\n" + summary(report) + "\n";
}

std::string to_junit(const ConformReport& report) {
  std::string cases;
  std::size_t failures = 0;
  std::size_t skipped = 0;
  for (const ConformRow& row : report.rows) {
    cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                         kind_of(*row.of), xml(row.of->id), row.seconds);
    const std::string message = xml(outcome_of(row) + ": " + detail_of(row));
    if (row.surprises()) {
      ++failures;
      cases += fmt::format("><failure message=\"{}\"/></testcase>\n", message);
    } else if (row.cell.outcome == CaseOutcome::NotRun) {
      ++skipped;
      cases += fmt::format("><skipped message=\"{}\"/></testcase>\n", message);
    } else {
      cases += "/>\n";
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" "
      "failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      xml("perfring conform: " + report.subject), report.rows.size(), failures, skipped, cases);
}

}  // namespace perfring::cli
