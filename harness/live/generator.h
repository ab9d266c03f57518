#ifndef HARNESS_LIVE_GENERATOR_H_
#define HARNESS_LIVE_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/live/bpf/generator.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/perf_event.h"

namespace perfring::live {

// Payload sizes in bytes, distributed evenly from min to max.
struct PayloadRange {
  std::uint32_t min = GENERATOR_PAYLOAD_MIN;
  std::uint32_t max = GENERATOR_PAYLOAD_MIN;
};

// Returns the bytes that bodies are windows of.
std::vector<unsigned char> generator_pattern();

// The writer's own ledger of one CPU: the results of bpf_perf_event_output().
struct OutputCounts {
  std::uint64_t attempted = 0;
  std::uint64_t accepted = 0;  // returned 0
  std::uint64_t full = 0;      // returned -ENOSPC
  std::uint64_t failed = 0;    // returned anything else
  std::int64_t last_error = 0;
};

// Makes the kernel write records to the perf rings of a map, on CPUs of the caller's choice.
// Threads: run() may be called for different CPUs at once.
class Generator {
 public:
  // The error is a text for people.
  static std::expected<Generator, std::string> load(PayloadRange payload);

  // The map (BPF_MAP_TYPE_PERF_EVENT_ARRAY) that the records go to.
  int events_fd() const noexcept { return events_.get(); }

  // Outputs `batch` records on `cpu`; with IfFull::Stop, fewer if the ring is full.
  enum class IfFull { GoOn, Stop };
  std::expected<void, std::error_code> run(std::uint32_t cpu, std::uint32_t batch, IfFull if_full);

  OutputCounts counts(std::uint32_t cpu) const;

 private:
  Generator(PayloadRange payload, os::Fd program, os::Fd events, os::Mapping states)
      : payload_{payload},
        program_{std::move(program)},
        events_{std::move(events)},
        states_{std::move(states)} {}

  PayloadRange payload_;
  os::Fd program_;
  os::Fd events_;
  os::Mapping states_;  // one generator_state for each possible CPU
};

// The events of one CPU's ring, compared with the records that the generator writes there.
struct AuditCounts {
  std::uint64_t delivered = 0;     // samples
  std::uint64_t lost = 0;          // sum of the LOST records' counts
  std::uint64_t malformed = 0;     // the ring breaks its contract
  std::uint64_t out_of_order = 0;  // not the next sequence number, lost ones counted
  std::uint64_t corrupt = 0;       // the CPU, checksum, size or body is wrong
  std::uint64_t bytes = 0;         // ring bytes of the events, headers included
};

// Checks each event of one CPU's ring, in the order of delivery.
class Audit {
 public:
  Audit(std::uint32_t cpu, PayloadRange payload);

  void check(const PerfEvent& event);
  const AuditCounts& counts() const { return counts_; }

 private:
  void check_sample(const Sample& sample);
  bool is_intact(const Sample& sample, const generator_record& record) const;
  bool body_matches(const Sample& sample, std::size_t length, const unsigned char* body) const;

  std::uint32_t cpu_;
  PayloadRange payload_;
  std::vector<unsigned char> pattern_;
  std::uint64_t sequence_ = 0;  // that the next sample must have
  AuditCounts counts_;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_GENERATOR_H_
