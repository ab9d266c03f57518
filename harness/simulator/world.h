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
//    any of the three -- an invariant is violated --> Stopping: everybody returns; nothing that
//                                                     happens from then on is looked at
enum class Phase { Writing, Ending, Draining, Stopping };

// Whether a run may pass from one to the other: the arrows above.
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
  // `sound`: the kernel is not a faulty one, so it may be trusted with poisoned memory.
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
  MergeOrder order;  // of one consumer that merges

  // The clock of writers and merge.
  std::uint64_t clock() const { return scheduler.now() / settings.clock_tick; }

  Phase phase() const { return phase_; }
  void enter(Phase next) {
    assert(may_follow(phase_, next));
    phase_ = next;
  }
  // Whether a writer is to begin no further output.
  bool writers_end() const { return phase_ != Phase::Writing || scheduler.now() >= steps_max_; }
  // Whether a consumer is to wait no more.
  bool consumers_end() const { return phase_ == Phase::Draining || phase_ == Phase::Stopping; }

 private:
  const std::uint64_t steps_max_;
  Phase phase_ = Phase::Writing;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_WORLD_H_
