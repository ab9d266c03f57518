#include "harness/cli/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

std::string expectation(bool in_a, bool in_b, bool has_forms, bool on_machines = false) {
  if (in_a && (in_b || !has_forms)) return "violated";
  std::string where = in_a ? "in form A" : in_b && has_forms ? "in form B" : "";
  if (on_machines && !in_a) where += where.empty() ? "on machines" : " and on machines";
  return where.empty() ? "holds" : "violated " + where;
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
    text += plan.memory_model == model::MemoryModel::Rc11
                ? "The shortest execution found:\n"
                : "The first execution found, in the order in which memory sees it:\n";
    text += trace_table(*trace);
  }
  const Conclusion conclusion = conclusion_of(plan, cases);
  if (conclusion.verdict == Verdict::Violated) {
    return text + fmt::format("VIOLATED in {}\n", cases.back().label);
  }
  const std::string holds =
      fmt::format("Holds in every execution that {} allows", title(plan.memory_model));
  return text + sentence(conclusion, holds) + "\n";
}

std::string check_list() {
  std::string text =
      "Programs, their faults (--fault), and what is expected of them; on machines: with --model "
      "aarch64 or riscv\n";
  for (const model::Entry& entry : model::catalogue()) {
    text += fmt::format("{:30} {}: {}\n", entry.name, entry.what,
                        expectation(entry.fails_in_a, entry.fails_in_b, entry.has_forms));
    if (std::ranges::any_of(entry.faults, &model::ProgramFault::shared)) {
      text += fmt::format("  {:28} the faults of ring\n", "");
    }
    for (const model::ProgramFault& fault : entry.faults) {
      if (fault.shared) continue;
      text += fmt::format("  {:28} {}: {}\n", fault.name, fault.what,
                          expectation(fault.fails_in_a, fault.fails_in_b, true,
                                      fault.fails_on(model::MemoryModel::AArch64)));
    }
  }
  return text;
}

}  // namespace perfring::cli
