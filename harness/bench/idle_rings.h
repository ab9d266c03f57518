#ifndef HARNESS_BENCH_IDLE_RINGS_H_
#define HARNESS_BENCH_IDLE_RINGS_H_

#include <cstddef>

namespace perfring::bench {

// What it costs to find that all of many rings are empty, in ns for all of them: medians of one
// race.
struct IdleRings {
  double heads;  // data_head and data_tail of each, through Cursor
  double round;  // a round of RingSet::drain() over them
  double plain;  // two loads for each, of the same addresses
};
IdleRings measure_idle_rings(std::size_t rings, unsigned rounds);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_IDLE_RINGS_H_
