#ifndef HARNESS_SIMULATOR_RUNS_H_
#define HARNESS_SIMULATOR_RUNS_H_

// Many runs, one per seed, each with settings drawn from its seed; and shrinking to a smaller run
// with the same violation.

#include <cstdint>
#include <functional>
#include <optional>

#include "harness/oracle/invariant.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {

inline constexpr std::uint64_t kRandomRunSteps = 100'000;

// Draws every setting from the seed, within its range (setting_names()) and possible in
// combination, limited to values for which a run of 100,000 steps has time.
RunSettings random_settings(std::uint64_t seed);

struct Runs {
  std::uint64_t first_seed = 1;
  std::uint64_t count = 1;
  std::uint64_t steps = kRandomRunSteps;  // of each run
};

struct RunsOutcome {
  std::uint64_t runs = 0;  // runs that have ended
  std::uint64_t steps = 0;
  std::uint64_t drains = 0;
  std::uint64_t attempted = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  std::uint64_t failed = 0;
  bool interrupted = false;
  std::optional<SimulationPlan> violating;  // the last run, if it violated an invariant
  std::optional<Found> found;               // its violation
};

// Runs first_seed, first_seed + 1, ... until one run violates an invariant or is interrupted.
RunsOutcome simulate_runs(const Runs& runs,
                          const std::function<SimulationOutcome(const SimulationPlan&)>& simulate);

struct Shrunk {
  SimulationPlan plan;
  Found found;
};

// Returns a smaller plan that violates the same invariant as `plan`, if one is found: simpler
// settings, another seed, the fewest steps. Deterministic. Precondition: `plan` finds `found`.
Shrunk shrink(const SimulationPlan& plan, const Found& found,
              const std::function<SimulationOutcome(const SimulationPlan&)>& simulate,
              const std::function<bool()>& give_up = {});

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_RUNS_H_
