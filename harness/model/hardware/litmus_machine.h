#ifndef HARNESS_MODEL_HARDWARE_LITMUS_MACHINE_H_
#define HARNESS_MODEL_HARDWARE_LITMUS_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/hardware/graph.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"

namespace perfring::model {

struct MachineAnswer {
  std::set<LitmusOutcome> outcomes;
  Result result;
};

inline LitmusOutcome outcome_of(const LitmusText& text, const Graph& graph) {
  LitmusOutcome all;
  for (std::size_t i = 0; i < text.locations.size(); ++i) {
    const std::vector<std::size_t>& stores = graph.stores(i);
    all[text.locations[i]] = static_cast<std::int64_t>(
        stores.empty() ? text.initial : graph.accesses()[stores.back()].value);
  }
  std::vector<std::map<std::uint32_t, std::string>> names;
  for (const auto& thread : text.threads) names.push_back(register_names(thread));
  for (const Access& access : graph.accesses()) {
    if (access.is_write) continue;
    const std::string& name = names[access.thread].at(access.step->where.line);
    all[std::to_string(access.thread) + ":" + name] = static_cast<std::int64_t>(access.value);
  }
  return observed_of(text, all);
}

// Runs a litmus test in the explorer, for comparison with the axioms (harness/model/reference).
inline MachineAnswer explore_litmus(const LitmusText& text, MemoryModel machine,
                                    MachineOptions options = {}) {
  MachineAnswer answer;
  options.on_execution = [&](const Graph& graph) {
    answer.outcomes.insert(outcome_of(text, graph));
  };
  answer.result = explore_machine(program_of(text), machine, options);
  return answer;
}

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_LITMUS_MACHINE_H_
