#ifndef HARNESS_BENCH_CONTENDERS_H_
#define HARNESS_BENCH_CONTENDERS_H_

#include <vector>

#include "harness/bench/race.h"
#include "harness/bench/tally.h"
#include "harness/bench/workload.h"

namespace perfring::bench {

// perfring's Ring, the two floors and memcpy, over a ring in memory, which must outlive them.
std::vector<Contender> in_memory(const Workload& workload, const MappedRing& memory,
                                 Callback callback);

// Ring and LB-spec again, compiled with -O2 and nothing else, as most users compile.
std::vector<Contender> in_memory_at_o2(const Workload& workload, const MappedRing& memory,
                                       Callback callback);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_CONTENDERS_H_
