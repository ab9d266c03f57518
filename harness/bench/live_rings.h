#ifndef HARNESS_BENCH_LIVE_RINGS_H_
#define HARNESS_BENCH_LIVE_RINGS_H_

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "harness/bench/race.h"
#include "harness/bench/workload.h"

namespace perfring::bench {

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

#endif  // HARNESS_BENCH_LIVE_RINGS_H_
