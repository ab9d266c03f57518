#ifndef HARNESS_SIMULATOR_SHRINK_H_
#define HARNESS_SIMULATOR_SHRINK_H_

#include <functional>

#include "harness/oracle/invariant.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {

struct Shrunk {
  Plan plan;
  Found found;
};

// A smaller plan that violates the same invariant as `plan` does, if one is found: simpler
// settings, another seed, the fewest steps. Deterministic. Precondition: `plan` finds `found`.
Shrunk shrink(const Plan& plan, const Found& found,
              const std::function<Outcome(const Plan&)>& simulate,
              const std::function<bool()>& give_up = {});

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SHRINK_H_
