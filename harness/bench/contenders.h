#ifndef HARNESS_BENCH_CONTENDERS_H_
#define HARNESS_BENCH_CONTENDERS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "harness/bench/race.h"
#include "harness/bench/workload.h"
#include "perfring/perf_event_array.h"

namespace perfring::bench {

// perfring's Ring, the two floors and memcpy, on a ring in memory that must outlive them.
std::vector<Contender> in_memory(const Workload& workload, const MappedRing& memory,
                                 Callback callback);

// Ring and LB-spec again, compiled with -O2 only, as most users compile.
std::vector<Contender> in_memory_at_o2(const Workload& workload, const MappedRing& memory,
                                       Callback callback);

// Drains `buffer`, whose control page is `page`, `passes` times from position 0. Compiled like the
// two functions above.
Tally drain_buffer(PerfEventArrayBuffer& buffer, perf_event_mmap_page& page, Callback callback,
                   unsigned passes);
Tally drain_buffer_at_o2(PerfEventArrayBuffer& buffer, perf_event_mmap_page& page,
                         Callback callback, unsigned passes);
// LB-spec on the records from `begin` to `end`, in any memory.
Tally guess_records(const std::byte* begin, const std::byte* end, Callback callback,
                    unsigned passes);

// Two rings of the live kernel with the same events: PerfBuffer's and real libbpf's. The kernel
// fills them once. They can be drained repeatedly, because user space may reset data_tail: it may
// write the control page.
class LiveRings {
 public:
  // Fills both rings on the CPU to which the caller is pinned, or says why this machine cannot.
  static std::expected<LiveRings, std::string> filled(const Workload& workload, Callback callback);

  LiveRings(LiveRings&&) noexcept;
  LiveRings& operator=(LiveRings&&) = delete;
  ~LiveRings();

  // Returns the contenders on these rings ("PerfBuffer", "PerfBuffer -O2", "LB-spec live" and
  // "libbpf"), which must not outlive this object.
  std::vector<Contender> contenders();

 private:
  struct Impl;
  explicit LiveRings(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_CONTENDERS_H_
