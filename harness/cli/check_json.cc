// The JSON of check.h.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/check.h"

namespace perfring::cli {
namespace {

using Json = nlohmann::ordered_json;

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
    json["polls"] = plan.size->polls;
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

}  // namespace perfring::cli
