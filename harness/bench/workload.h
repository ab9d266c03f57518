#ifndef HARNESS_BENCH_WORKLOAD_H_
#define HARNESS_BENCH_WORKLOAD_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/bench/bpf_args.h"
#include "harness/bench/race.h"

namespace perfring::bench {

// The contents of a full ring, the same for every contender: as many events of `mix` as fit, from
// position 0 on, so that no record straddles the end.
struct Workload {
  Workload(std::size_t ring, const payload_mix& sizes);

  std::size_t ring_bytes;
  payload_mix mix;
  std::size_t used_bytes = 0;
  Tally count;  // the expected tally of one drain, for each callback
  Tally sum;

  const Tally& tally(Callback callback) const { return callback == Callback::Sum ? sum : count; }
};

std::string ring_name(std::size_t ring_bytes);     // "64K"
std::string payload_name(const payload_mix& mix);  // "8|16"

// The measured rings and mixes.
std::vector<std::size_t> measured_rings();
std::vector<payload_mix> measured_mixes();

// An empty ring in ordinary memory, in the layout of the kernel's mapping. It has small pages, like
// the kernel's ring, all of them present before the measurement.
class MappedRing {
 public:
  explicit MappedRing(std::size_t ring_bytes);
  MappedRing(MappedRing&& other) noexcept;
  MappedRing& operator=(MappedRing&&) = delete;
  ~MappedRing();

  perf_event_mmap_page& page() const;
  std::span<std::byte> data() const;

 private:
  std::span<std::byte> mapping_;
};

// Returns a ring full of a workload's events.
MappedRing filled_ring(const Workload& workload);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_WORKLOAD_H_
