#ifndef HARNESS_STRESS_STRESS_RING_H_
#define HARNESS_STRESS_STRESS_RING_H_

#include "harness/rig/simulated_ring.h"
#include "harness/stress/setting.h"

namespace perfring::stress {

// The ring of a setting.
class StressRing : public rig::SimulatedRing {
 public:
  explicit StressRing(const Setting& setting) : SimulatedRing{setting.ring}, setting_{setting} {}
  const Setting& setting() const { return setting_; }

 private:
  Setting setting_;
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_STRESS_RING_H_
