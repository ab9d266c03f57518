#ifndef HARNESS_STRESS_TESTING_H_
#define HARNESS_STRESS_TESTING_H_

// Consumers with faults that the tests of this folder plant, beside those of harness/faults.

#include <cstddef>

#include "harness/faults/around_ring.h"
#include "perfring/ring/ring.h"

namespace perfring::stress {

// Ring, but for what a derived one does in its own way.
template <class Faulty>
struct Around : faults::AroundRing<Faulty, DefaultMemory> {
  using faults::AroundRing<Faulty, DefaultMemory>::AroundRing;
  ControlFlow<> drain(const faults::Visit& visit) { return this->sound_drain(visit); }
};

// The second event of each drain is not delivered. Where several writers nest, the totals alone
// tell: a sequence number that is missing may have been refused.
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

#endif  // HARNESS_STRESS_TESTING_H_
