#include "harness/rig/script_faults.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "harness/faults/planted.h"
#include "harness/rig/script_run.h"
#include "harness/rig/watched_cpu.h"
#include "harness/script/script.h"
#include "perfring/ring/ring.h"

namespace perfring::rig {
namespace {

template <class Cpu>
std::unique_ptr<SimulatedKernel> kernel_on(const script::Settings& settings,
                                           const Identity& identity, unsigned page_shift) {
  return std::unique_ptr<SimulatedKernel>{new FaultyKernel<Cpu>(settings, identity, page_shift)};
}

constexpr auto plant_kernel = []<template <class> class F>(faults::Named<F> fault) {
  return ScriptFault{fault.name, violation_of<ScriptRunner<F<ScriptCpu>>>, kernel_on<F<StepCpu>>};
};
constexpr auto plant_memory = []<template <class> class F>(faults::Named<F> fault) {
  return ScriptFault{fault.name, violation_of<ScriptRunner<ScriptCpu, Ring<F<CheckedMemory>>>>,
                     nullptr};
};
constexpr auto plant_consumer = []<template <class> class F>(faults::Named<F> fault) {
  return ScriptFault{fault.name, violation_of<ScriptRunner<ScriptCpu, F<CheckedMemory>>>, nullptr};
};

// Restricts a script to one that the oracle can judge: RAW samples, written forward, and no Tail
// step.
script::Script checkable(script::Script script) {
  script.settings.sample_type = PERF_SAMPLE_RAW;
  script.settings.write_backward = script.settings.overwrite = false;
  std::erase_if(script.steps,
                [](const script::Step& step) { return step.action == script::Action::Tail; });
  return script;
}

}  // namespace

std::span<const ScriptFault> planted_faults() {
  static const auto all =
      faults::plant_all<ScriptFault>(plant_kernel, plant_memory, plant_consumer);
  return all;
}

const ScriptFault* find_planted(std::string_view name) {
  return faults::find_planted(planted_faults(), name);
}

script::Script random_script(std::uint64_t seed) {
  return checkable(script::generate(
      seed,
      {.steps_max = 60, .pages_max = 2, .any_word = true, .any_start = true, .nested = true}));
}

std::optional<FoundBy> look_for(const ScriptFault& fault, std::uint64_t scripts,
                                const std::atomic<bool>* stop) {
  for (std::uint64_t seed = 1; seed <= scripts; ++seed) {
    if (stop != nullptr && stop->load()) break;
    if (auto violation = fault.run(random_script(seed)))
      return FoundBy{*std::move(violation), seed};
  }
  return std::nullopt;
}

}  // namespace perfring::rig
