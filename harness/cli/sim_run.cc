#include "harness/cli/sim_run.h"

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

}  // namespace perfring::cli
