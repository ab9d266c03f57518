#ifndef HARNESS_BENCH_WAITS_H_
#define HARNESS_BENCH_WAITS_H_

// Measures how long records of the live kernel wait for their consumer, and the cost of waiting, in
// RingSet with a latency and in libbpf's own perf_buffer__poll with its defaults, on the same
// writer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

namespace perfring::bench {

// One consumer's turn at one rate.
struct Waited {
  double per_second = 0;   // records that were accepted
  double cpu_percent = 0;  // of one CPU: the consumer's thread
  double writer_ns = 0;    // in bpf_perf_event_output, for each record
  double p50_us = 0;       // from the writer's clock to the callback
  double p99_us = 0;
  std::uint64_t accepted = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  std::uint64_t refused = 0;  // of the outputs, for want of room

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

// Errors: a text for a person.
std::expected<Waited, std::string> wait_by_ring_set(const WaitTurn& turn);
std::expected<Waited, std::string> wait_by_libbpf(const WaitTurn& turn);

// The cost of finding that all of many rings are empty, in ns for all of them: medians of one
// race.
struct IdleRings {
  double heads;  // data_head and data_tail of each, through Cursor
  double round;  // a round of RingSet::drain() over them
  double plain;  // two loads for each, of the same addresses
};
IdleRings measure_idle_rings(std::size_t rings, unsigned rounds);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_WAITS_H_
