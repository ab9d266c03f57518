#include "harness/cli/sim.h"

namespace perfring::cli {

SimOutcome run_sim(const SimPlan& sim, const std::atomic<bool>& stop,
                   const std::function<void(std::uint64_t steps)>& on_progress) {
  const auto simulate = [&](const simulator::Plan& plan) {
    const simulator::Observer observer{.stop = &stop, .on_progress = on_progress};
    return sim.fault != nullptr ? sim.fault->simulate(plan, observer)
                                : simulator::simulate(plan, observer);
  };
  SimOutcome result{.outcome = simulate(sim.plan), .shrunk = {}};
  if (result.outcome.found && !stop.load()) {
    result.shrunk = simulator::shrink(sim.plan, *result.outcome.found, simulate,
                                      [&stop] { return stop.load(); });
  }
  return result;
}

SimRuns run_many(const SimPlan& first, std::uint64_t count, const std::atomic<bool>& stop,
                 const std::function<void(std::uint64_t run)>& on_run) {
  SimRuns all{.first = first, .outcome = {}};
  const simulator::Observer observer{.stop = &stop, .on_progress = {}};
  std::uint64_t run = 0;
  all.outcome = simulator::simulate_runs(
      {.first_seed = first.plan.seed, .count = count, .steps = first.plan.steps},
      [&](const simulator::Plan& plan) {
        if (++run % 16 == 0) on_run(run);
        return first.fault != nullptr ? first.fault->simulate(plan, observer)
                                      : simulator::simulate(plan, observer);
      });
  if (all.outcome.violating) {
    SimPlan violating = first;
    violating.plan = *all.outcome.violating;
    const SimOutcome again = run_sim(violating, stop, [](std::uint64_t) {});
    all.violating.emplace(std::move(violating), again);
  }
  return all;
}

}  // namespace perfring::cli
