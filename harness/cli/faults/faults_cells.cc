// Runs the cells of faults.h, each in its harness.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "harness/cli/faults/faults.h"
#include "harness/differential/reference_kernel.h"
#include "harness/differential/trace.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/model_catalogue.h"
#include "harness/oracle/invariant.h"
#include "harness/program/sanitizers.h"
#include "harness/rig/script_faults.h"
#include "harness/simulator/runs.h"
#include "harness/simulator/simulation.h"
#include "harness/simulator/simulation_faults.h"
#include "harness/stress/run.h"
#include "harness/stress/stress_faults.h"

namespace perfring::cli {
namespace {

using faults::Fault;
using faults::Harness;

FoundFault found_as(const oracle::Violation& violation) {
  return {to_string(violation.invariant), violation.message};
}

FoundFault by_scripts(const Fault& fault) {
  const auto found = rig::look_for(*rig::find_planted(fault.name));
  if (!found) return {};
  return {to_string(found->violation.invariant),
          fmt::format("{}, with seed {}", found->violation.message, found->seed)};
}

FoundFault by_simulator(const Fault& fault) {
  constexpr std::uint64_t kSteps = 2'000'000;
  constexpr std::uint64_t kStepsInVain = 200'000;
  const simulator::SimulationFault& planted = *simulator::find_planted(fault.name);
  const bool expected = is_found(planted.expected());
  const simulator::SimulationPlan plan{.seed = 1,
                                       .steps = expected ? kSteps : kStepsInVain,
                                       .settings = simulator::settings_of(planted)};
  if (const auto found = planted.simulate(plan, {}).found) return found_as(found->violation);
  if (expected) return {};
  const auto runs = simulator::simulate_runs(
      {.count = 10},
      [&](const simulator::SimulationPlan& random) { return planted.simulate(random, {}); });
  return runs.found ? found_as(runs.found->violation) : FoundFault{};
}

// Parses "invariant: what", the form of stress's violations and of the model's checks.
FoundFault of_text(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), text};
}

// Returns a finding only if every part finds the fault.
FoundFault by_stress(const Fault& fault, bool expected) {
  constexpr double kSeconds = 120;  // enough on a busy machine
  constexpr double kSecondsInVain = 0.4;
  stress::Run run{.seconds = expected ? kSeconds : kSecondsInVain, .rings = 1};
  run.patience = stress::kPatienceWithAFault;
  std::vector<std::string> violations;
  for (const auto& part : stress::find_planted(fault.name)->parts) {
    const stress::PartReport outcome = part.run(run);
    if (outcome.holds()) return {};
    violations.push_back(outcome.violations.front());
  }
  return of_text(violations.front());
}

// Returns only if there was no race: a race ends the process (__tsan_on_report() in
// faults_command.cc).
FoundFault by_thread_sanitizer(const Fault& fault, bool expected) {
  constexpr double kSeconds = 120;  // enough on a busy machine
  constexpr double kSecondsInVain = 2;
  stress::Run run{.seconds = expected ? kSeconds : kSecondsInVain, .rings = 1};
  run.patience = stress::kPatienceWithAFault;
  run.keep_going = true;
  for (const auto& part : stress::find_planted(fault.name)->parts) part.run(run);
  return {};
}

// Explores the first program that has the fault as its own, in form A, and then in form B.
FoundFault by_model(const Fault& fault) {
  for (const model::Entry& entry : model::catalogue()) {
    const model::ProgramFault* const planted = entry.find_fault(fault.name);
    if (planted == nullptr || planted->shared) continue;
    model::ExploreOptions options;
    options.merge = true;
    for (const model::Form form : {model::Form::A, model::Form::B}) {
      for (const model::Case& each : entry.cases(*entry.fault_size, form, fault.name)) {
        const model::Result result = explore(each.program, options);
        if (!result.bound.empty()) return {"not proved", result.bound};
        if (result.violation) return of_text(result.violation->cause.what);
        if (!result.proved()) return {"not proved", result.not_proved()};
      }
    }
    return {};
  }
  return {};
}

// Looks for the first trace that shows the fault.
FoundFault by_traces(const Fault& fault) {
  const rig::ScriptFault& planted = *rig::find_planted(fault.name);
  for (const differential::KernelTrace& trace : differential::recorded_traces()) {
    differential::RecordedReference recorded{trace};
    const auto kernel =
        planted.kernel(trace.script.settings, recorded.identity(), recorded.page_shift());
    differential::Compared uncounted;
    const auto found = differential::compare(trace.script, recorded, *kernel, uncounted);
    if (!found) continue;
    return {found->in, fmt::format("trace {}, step {}: {}", trace.name, found->step, found->what)};
  }
  return {};
}

}  // namespace

bool has_planted(const Fault& fault, Harness harness) {
  switch (harness) {
    case Harness::Scripts:
      return rig::find_planted(fault.name) != nullptr;
    case Harness::Simulator:
      return simulator::find_planted(fault.name) != nullptr;
    case Harness::Stress:
    case Harness::ThreadSanitizer:
      return stress::find_planted(fault.name) != nullptr;
    case Harness::Model:
      return std::ranges::any_of(model::catalogue(), [&](const model::Entry& entry) {
        return entry.find_fault(fault.name) != nullptr;
      });
    case Harness::Differential: {
      const rig::ScriptFault* const planted = rig::find_planted(fault.name);
      return planted != nullptr && planted->kernel != nullptr;
    }
  }
  return false;
}

std::string not_run_because(const Fault& fault, Harness harness) {
  if (harness == Harness::ThreadSanitizer && !kReportsRaces) {
    return "this build has no ThreadSanitizer: `ci/run tsan`, or `bazel run --config=tsan "
           "//:perfring -- faults --harness tsan`, runs it";
  }
  if (harness == Harness::Differential && std::endian::native != std::endian::little) {
    return "the traces were recorded on little-endian machines";
  }
  const auto& by_tsan = fault.in(Harness::ThreadSanitizer);
  const auto* const reason = std::get_if<faults::Reason>(&by_tsan);
  const bool races = std::holds_alternative<faults::DataRace>(by_tsan) ||
                     (reason != nullptr && *reason == faults::Reason::RaceByChance);
  if (harness == Harness::Stress && kReportsRaces && races) {
    return "in this build ThreadSanitizer may find it first";
  }
  return {};
}

FoundFault look_for_fault(const Fault& fault, Harness harness) {
  const bool expected = is_found(fault.in(harness));
  switch (harness) {
    case Harness::Scripts:
      return by_scripts(fault);
    case Harness::Simulator:
      return by_simulator(fault);
    case Harness::Stress:
      return by_stress(fault, expected);
    case Harness::ThreadSanitizer:
      return by_thread_sanitizer(fault, expected);
    case Harness::Model:
      return by_model(fault);
    case Harness::Differential:
      return by_traces(fault);
  }
  return {};
}

}  // namespace perfring::cli
