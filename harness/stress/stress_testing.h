#ifndef HARNESS_STRESS_STRESS_TESTING_H_
#define HARNESS_STRESS_STRESS_TESTING_H_

// Faulty consumers that only this folder's tests plant, in addition to those of harness/faults.

#include <cstddef>

#include "harness/faults/ring_wrappers.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"

namespace perfring::stress {

// Ring, except for the functions that a derived class replaces.
template <class Faulty>
struct Around : faults::AroundRing<Faulty, DefaultMemory> {
  using faults::AroundRing<Faulty, DefaultMemory>::AroundRing;
  ControlFlow<> drain(const faults::Visit& visit) { return this->sound_drain(visit); }
};

// Does not deliver the second event of each drain. If several writers nest, only the totals reveal
// the fault: a missing sequence number may have been refused.
struct DropsTheSecond : Around<DropsTheSecond> {
  using Around::Around;
  ControlFlow<> drain(const faults::Visit& visit) {
    std::size_t count = 0;
    return sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      if (++count == 2) return Continue{};
      return visit(event);
    });
  }
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_STRESS_TESTING_H_
