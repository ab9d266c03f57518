// The reports of `perfring check`: a table, JSON, a drawing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <expected>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/cli/check/check.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"
#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

constexpr const char* kCheckRow = "{:<16} {:>13} {:>13} {:>13} {:>11} {:>9}  {}\n";

std::string subject(const CheckPlan& plan) {
  std::string text = plan.entry->name;
  if (plan.fault != nullptr) text += " with " + plan.fault->name;
  if (plan.size) {
    text += fmt::format(", {} of {} {}, {}", counted(plan.size->records, "record"),
                        fmt::join(plan.size->lengths, ", "), plan.entry->length_unit,
                        counted(plan.size->drains, "drain"));
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
  text += fmt::format(kCheckRow, "", plan.merge ? "classes" : "executions", merges ? "merged" : "",
                      "states", "blocked", "seconds", "");
  for (const CheckedCase& each : cases) {
    text +=
        fmt::format(kCheckRow, each.label, grouped(each.result.executions),
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
      "Programs, their faults (--fault), and the expected verdicts; 'on machines' means with "
      "--model aarch64 or riscv\n";
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

namespace {

Json to_json(const model::Trace& trace) {
  Json json{{"what", trace.cause.what},
            {"thread", trace.cause.thread},
            {"where", to_string(trace.cause.where)},
            {"race", trace.race},
            {"threads", trace.threads}};
  for (const model::TraceEvent& event : trace.events) {
    Json one{{"number", json.value("events", Json::array()).size() + 1},
             {"thread", event.thread},
             {"kind", to_string(event.kind)},
             {"order", to_string(event.order)},
             {"where", to_string(event.where)}};
    if (!event.location.empty()) one["location"] = event.location;
    if (event.read) one["read"] = *event.read;
    if (event.written) one["written"] = *event.written;
    if (event.reads_from) one["reads_from"] = *event.reads_from;
    if (event.after) one["coherence_after"] = *event.after;
    if (event.overtakes) one["overtakes"] = *event.overtakes;
    json["events"].push_back(std::move(one));
  }
  return json;
}

Json to_json(const model::Result& result) {
  Json json{{"executions", result.executions}, {"merged", result.merged},
            {"states", result.states},         {"blocked", result.blocked},
            {"seconds", result.seconds},       {"bound", result.bound}};
  return json;
}

}  // namespace

std::string check_json(const CheckPlan& plan, const std::vector<CheckedCase>& cases) {
  Json json = perfring::to_json(conclusion_of(plan, cases));
  json["program"] = plan.entry->name;
  if (plan.fault != nullptr) json["fault"] = plan.fault->name;
  if (plan.size) {
    json["records"] = plan.size->records;
    json["drains"] = plan.size->drains;
    json["lengths"] = plan.size->lengths;
  }
  json["model"] = to_string(plan.memory_model);
  json["merge"] = plan.merge;
  json["cases"] = Json::array();
  for (const CheckedCase& each : cases) {
    Json one{{"label", each.label}, {"verdict", to_string(each.verdict())}};
    one.update(to_json(each.result));
    if (plan.compare) one["differences"] = each.differences;
    json["cases"].push_back(std::move(one));
  }
  if (const auto* const trace = violation_of(cases)) json["violation"] = to_json(*trace);
  return dump(json);
}

std::string check_list_json() {
  Json json;
  for (const model::Entry& entry : model::catalogue()) {
    Json one{{"name", entry.name},
             {"what", entry.what},
             {"violated_in_a", entry.fails_in_a},
             {"violated_in_b", entry.fails_in_b},
             {"faults", Json::array()}};
    for (const model::ProgramFault& fault : entry.faults) {
      one["faults"].push_back(
          {{"name", fault.name},
           {"what", fault.what},
           {"violated_in_a", fault.fails_in_a},
           {"violated_in_b", fault.fails_in_b},
           {"violated_on_machines", fault.fails_on(model::MemoryModel::AArch64)}});
    }
    json["programs"].push_back(std::move(one));
  }
  return dump(json);
}

namespace {

constexpr int kNotFound = 127;  // env(1)'s exit code for a program that is not in PATH

// Runs Graphviz. A signal that ends this program ends Graphviz, too.
ProcessResult run_dot(const std::string& graph) {
  const StopOnSignals stop;
  ProcessResult ended = ChildProcess{{"/usr/bin/env", "dot", "-Tsvg"}, graph}.wait(
      [&] { return stop.requested().load(); });
  if (stop.requested()) throw std::system_error{EINTR, std::generic_category(), "Graphviz's dot"};
  return ended;
}

std::expected<std::string, std::string> drawing_of(const std::string& graph) try {
  ProcessResult dot = run_dot(graph);
  if (dot.exit_code == kNotFound) {
    return std::unexpected(
        "--svg: Graphviz's dot is not installed: ci/setup installs it (apt-get install graphviz)");
  }
  if (dot.exit_code == 0 && dot.out.contains("<svg")) return std::move(dot.out);
  return std::unexpected(fmt::format("--svg: Graphviz's dot ended with {} and printed no SVG: {}",
                                     dot.exit_code, in_quotes(dot.err)));
} catch (const std::system_error& error) {
  return std::unexpected(std::string{"--svg: "} + error.what());
}

// Returns "program ring/nested, fault publishes_nested, form A, step 3".
std::string subject(const CheckPlan& plan, const CheckedCase& violated) {
  std::string text = "program " + plan.entry->name;
  if (plan.fault != nullptr) text += ", fault " + plan.fault->name;
  if (violated.label != plan.entry->name) text += ", " + violated.label;
  return text;
}

}  // namespace

// Opens the file only when there is a drawing: it may contain an earlier one, or be a device.
std::expected<void, std::string> write_svg(const CheckPlan& plan,
                                           const std::vector<CheckedCase>& cases) {
  const auto violated = std::ranges::find_if(
      cases, [](const CheckedCase& each) { return each.result.violation.has_value(); });
  if (violated == cases.end()) return {};
  const auto drawing =
      drawing_of(model::trace_dot(*violated->result.violation, subject(plan, *violated)));
  if (!drawing) return std::unexpected(drawing.error());
  return write_output("--svg", plan.svg, *drawing);
}

}  // namespace perfring::cli
