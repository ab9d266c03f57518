#include "harness/simulator/runs.h"

#include "harness/simulator/random_settings.h"

namespace perfring::simulator {

RunsOutcome simulate_runs(const Runs& runs, const std::function<Outcome(const Plan&)>& simulate) {
  RunsOutcome all;
  while (all.runs < runs.count && !all.found && !all.interrupted) {
    const std::uint64_t seed = runs.first_seed + all.runs;
    const Plan plan{.seed = seed, .steps = runs.steps, .settings = random_settings(seed)};
    const Outcome outcome = simulate(plan);
    ++all.runs;
    all.steps += outcome.steps;
    all.drains += outcome.drains;
    all.attempted += outcome.attempts();
    for (const CpuOutcome& cpu : outcome.cpus) all.delivered += cpu.received.delivered;
    all.interrupted = outcome.interrupted;
    all.found = outcome.found;
    if (outcome.found) all.violating = plan;
  }
  return all;
}

}  // namespace perfring::simulator
