#ifndef HARNESS_SIMULATOR_MANY_CONSUMER_H_
#define HARNESS_SIMULATOR_MANY_CONSUMER_H_

#include <cstdint>

#include "harness/simulator/simulation.h"

namespace perfring::simulator {

// What may be wrong with one consumer of several rings. Those of a merge come first.
enum class ManyFault : std::uint8_t {
  None,
  TrustsFifo,
  WindowOfOne,
  LooksBeforeTheClock,
  ForgetsTheSlack,
  WaitsForIdleRings,
  ReleasesOneEarly,
  DropsTheLate,
  HidesTheLate,
  SleepsOnTheYoung,
  ReadsOneRing,
  IgnoresTheLimit,
  SleepsOnTheLimit,
  SleepsAfterTheSwitch,
  ForgetsTheGone,
};

// simulate(), with one consumer of all rings: lib's Merge, or its Ring in turns, in the loop of
// RingSet. settings.rings says which.
Outcome simulate_many(const Plan& plan, const Observer& observer, ManyFault fault);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_MANY_CONSUMER_H_
