#ifndef HARNESS_SIMULATOR_RUNS_H_
#define HARNESS_SIMULATOR_RUNS_H_

// Many runs, one for each seed, whose settings are drawn from it as well; and a smaller run that
// shows the same.

#include <cstdint>
#include <functional>
#include <optional>

#include "harness/oracle/invariant.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {

inline constexpr std::uint64_t kRandomRunSteps = 100'000;

// Every setting drawn from the seed, within its range (setting_names()) and possible together; in
// the part of that range which a run of 100,000 steps has time for.
RunSettings random_settings(std::uint64_t seed);

struct Runs {
  std::uint64_t first_seed = 1;
  std::uint64_t count = 1;
  std::uint64_t steps = kRandomRunSteps;  // of each
};

struct RunsOutcome {
  std::uint64_t runs = 0;  // that have ended
  std::uint64_t steps = 0;
  std::uint64_t drains = 0;
  std::uint64_t attempted = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  std::uint64_t failed = 0;
  bool interrupted = false;
  std::optional<SimulationPlan> violating;  // the run that has violated an invariant: the last
  std::optional<Found> found;               // in it
};

// Runs first_seed, first_seed + 1, ... until one violates an invariant or is interrupted.
RunsOutcome simulate_runs(const Runs& runs,
                          const std::function<SimulationOutcome(const SimulationPlan&)>& simulate);

struct Shrunk {
  SimulationPlan plan;
  Found found;
};

// A smaller plan that violates the same invariant as `plan` does, if one is found: simpler
// settings, another seed, the fewest steps. Deterministic. Precondition: `plan` finds `found`.
Shrunk shrink(const SimulationPlan& plan, const Found& found,
              const std::function<SimulationOutcome(const SimulationPlan&)>& simulate,
              const std::function<bool()>& give_up = {});

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_RUNS_H_
