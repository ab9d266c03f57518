#ifndef HARNESS_BENCH_CONTENDERS_H_
#define HARNESS_BENCH_CONTENDERS_H_

#include <vector>

#include "harness/bench/race.h"
#include "harness/bench/workload.h"
#include "perfring/perf_event_array.h"

namespace perfring::bench {

// perfring's Ring, the two floors and memcpy, over a ring in memory, which must outlive them.
std::vector<Contender> in_memory(const Workload& workload, const MappedRing& memory,
                                 Callback callback);

// Ring and LB-spec again, compiled with -O2 and nothing else, as most users compile.
std::vector<Contender> in_memory_at_o2(const Workload& workload, const MappedRing& memory,
                                       Callback callback);

// Drains `buffer`, whose control page is `page`, again and again from position 0 on. Compiled as
// the two above are.
Tally drain_buffer(PerfEventArrayBuffer& buffer, perf_event_mmap_page& page, Callback callback,
                   unsigned passes);
Tally drain_buffer_at_o2(PerfEventArrayBuffer& buffer, perf_event_mmap_page& page,
                         Callback callback, unsigned passes);
// LB-spec over the records from `begin` to `end`, wherever they are.
Tally guess_records(const std::byte* begin, const std::byte* end, Callback callback,
                    unsigned passes);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_CONTENDERS_H_
