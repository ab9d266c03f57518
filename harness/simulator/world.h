#ifndef HARNESS_SIMULATOR_WORLD_H_
#define HARNESS_SIMULATOR_WORLD_H_

#include <cassert>
#include <cstdint>

#include "harness/simulator/judge.h"
#include "harness/simulator/random.h"
#include "harness/simulator/scheduler.h"
#include "harness/simulator/settings.h"

namespace perfring::simulator {

// The phases of a run:
//
//    +---------+   interrupted    +--------+
//    | Writing | ---------------> | Ending |      Ending: a writer finishes its output, and returns
//    +---------+                  +--------+
//         |                           |
//         |   the writers are done    |
//         +-------------+-------------+
//                       v
//                  +----------+
//                  | Draining |                   a consumer drains what is left, and returns
//                  +----------+
//
//    any of the three -- an invariant is violated --> Stopping: everybody returns; later events
//                                                     are not checked
enum class Phase { Writing, Ending, Draining, Stopping };

// Returns true if a run may pass from one phase to the other (the arrows above).
constexpr bool may_follow(Phase from, Phase to) {
  switch (to) {
    case Phase::Writing:
      return false;
    case Phase::Ending:
      return from == Phase::Writing;
    case Phase::Draining:
      return from == Phase::Writing || from == Phase::Ending;
    case Phase::Stopping:
      return from != Phase::Stopping;
  }
  return false;
}

// The state that the CPUs of one simulated machine share.
class World {
 public:
  // `sound`: the kernel is not a faulty one, so that poisoned memory is safe with it.
  World(std::uint64_t seed, const RunSettings& from, std::uint64_t steps, bool sound = true)
      : settings{from},
        sound_writers{sound},
        scheduler{seed, static_cast<unsigned>(from.interval_log2)},
        order{from.slack},
        steps_max_{steps} {}

  const RunSettings settings;
  const bool sound_writers;
  Scheduler scheduler;
  Digest digest;
  MergeOrder order;  // for a consumer that merges

  // The clock that writers and merge read.
  std::uint64_t clock() const { return scheduler.now() / settings.clock_tick; }

  Phase phase() const { return phase_; }
  void enter(Phase next) {
    assert(may_follow(phase_, next));
    phase_ = next;
  }
  // Whether writers must not begin another output.
  bool writers_end() const { return phase_ != Phase::Writing || scheduler.now() >= steps_max_; }
  // Whether consumers must not wait again.
  bool consumers_end() const { return phase_ == Phase::Draining || phase_ == Phase::Stopping; }

 private:
  const std::uint64_t steps_max_;
  Phase phase_ = Phase::Writing;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_WORLD_H_
