#include "harness/cli/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/model/engine/explorer.h"
#include "harness/program/console.h"
#include "harness/program/counted.h"

namespace perfring::cli {
namespace {

constexpr const char* kRow = "{:<16} {:>13} {:>13} {:>13} {:>11} {:>9}  {}\n";

std::string subject(const CheckPlan& plan) {
  std::string text = plan.entry->name;
  if (plan.fault != nullptr) text += " with " + plan.fault->name;
  if (plan.size) {
    text += fmt::format(", {} of {} {}, {}", counted(plan.size->records, "record"),
                        fmt::join(plan.size->lengths, ", "), plan.entry->length_unit,
                        counted(plan.size->polls, "drain"));
  }
  return text;
}

std::string expectation(bool in_a, bool in_b, bool has_forms) {
  if (!has_forms) return in_a ? "violated" : "holds";
  if (in_a == in_b) return in_a ? "violated" : "holds";
  return in_a ? "violated in form A" : "violated in form B";
}

}  // namespace

const model::Trace* violation_of(const std::vector<CheckedCase>& cases) {
  for (const CheckedCase& each : cases) {
    if (each.result.violation) return &*each.result.violation;
  }
  return nullptr;
}

std::string check_table(const CheckPlan& plan, const std::vector<CheckedCase>& cases) {
  const bool merges = plan.merge || plan.compare;
  std::string text = fmt::format("{}: {}\n", subject(plan),
                                 plan.fault != nullptr ? plan.fault->what : plan.entry->what);
  text += fmt::format(kRow, "", plan.merge ? "classes" : "executions", merges ? "merged" : "",
                      "states", "blocked", "seconds", "");
  for (const CheckedCase& each : cases) {
    text +=
        fmt::format(kRow, each.label, grouped(each.result.executions),
                    merges ? grouped(each.result.merged) : "", grouped(each.result.states),
                    grouped(each.result.blocked), fmt::format("{:.2f}", each.result.seconds),
                    each.verdict() == Verdict::Violated ? "VIOLATED" : to_string(each.verdict()));
    for (const std::string& difference : each.differences) text += "  " + difference + "\n";
  }
  if (const auto* const trace = violation_of(cases)) {
    text += "The shortest execution found:\n" + trace_table(*trace);
  }
  const Conclusion conclusion = conclusion_of(plan, cases);
  if (conclusion.verdict == Verdict::Violated) {
    return text + fmt::format("VIOLATED in {}\n", cases.back().label);
  }
  return text + sentence(conclusion, "Holds in every execution that RC11 allows") + "\n";
}

std::string check_list() {
  std::string text = "Programs, their faults (--fault), and what is expected of them\n";
  for (const model::Entry& entry : model::catalogue()) {
    text += fmt::format("{:30} {}: {}\n", entry.name, entry.what,
                        expectation(entry.fails_in_a, entry.fails_in_b, entry.has_forms));
    if (entry.shares_ring_faults) {
      text += fmt::format("  {:28} the faults of ring\n", "");
      continue;
    }
    for (const model::ProgramFault& fault : entry.faults) {
      text += fmt::format("  {:28} {}: {}\n", fault.name, fault.what,
                          expectation(fault.fails_in_a, fault.fails_in_b, true));
    }
  }
  return text;
}

}  // namespace perfring::cli
