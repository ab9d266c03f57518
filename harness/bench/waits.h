#ifndef HARNESS_BENCH_WAITS_H_
#define HARNESS_BENCH_WAITS_H_

// Measures how long records of the live kernel wait for their consumer, and the cost of waiting:
// for RingSet with a latency and for libbpf's perf_buffer__poll with its defaults, with the same
// writer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

namespace perfring::bench {

// One consumer's turn at one rate.
struct Waited {
  double per_second = 0;   // records accepted
  double cpu_percent = 0;  // the consumer's thread, in percent of one CPU
  double writer_ns = 0;    // in bpf_perf_event_output, per record
  double p50_us = 0;       // from the writer's clock to the callback
  double p99_us = 0;
  std::uint64_t accepted = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  std::uint64_t refused = 0;  // outputs refused because the ring was full

  bool accounts() const { return accepted == delivered && lost == refused; }
};

struct WaitTurn {
  std::uint64_t per_second;
  std::chrono::nanoseconds latency;
  std::chrono::nanoseconds length;
  std::size_t pages;  // of each ring
  std::uint32_t writer_cpu;
  std::uint32_t consumer_cpu;
};

// Errors are human-readable text.
std::expected<Waited, std::string> wait_by_ring_set(const WaitTurn& turn);
std::expected<Waited, std::string> wait_by_libbpf(const WaitTurn& turn);

// The cost of finding many rings empty, in ns for all of them: medians of one race.
struct IdleRings {
  double heads;  // data_head and data_tail of each ring, through Cursor
  double round;  // a round of RingSet::drain() over them
  double plain;  // two plain loads per ring, from the same addresses
};
IdleRings measure_idle_rings(std::size_t rings, unsigned rounds);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_WAITS_H_
