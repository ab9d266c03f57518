#ifndef HARNESS_BENCH_CONTENDERS_H_
#define HARNESS_BENCH_CONTENDERS_H_

#include <expected>
#include <memory>
#include <string>
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

// Two rings of the live kernel's, which the kernel has filled alike: a PerfBuffer's and real
// libbpf's. Filled once, they are drained again and again: user space may put data_tail back, the
// control page being its to write.
class LiveRings {
 public:
  // Fills both rings on the CPU that the caller is pinned to; or says why this machine would not.
  static std::expected<LiveRings, std::string> filled(const Workload& workload, Callback callback);

  LiveRings(LiveRings&&) noexcept;
  LiveRings& operator=(LiveRings&&) = delete;
  ~LiveRings();

  // "PerfBuffer" and "libbpf", which must not outlive this object.
  std::vector<Contender> contenders();

 private:
  struct Impl;
  explicit LiveRings(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_CONTENDERS_H_
