#ifndef HARNESS_ORACLE_STREAM_CHECKER_H_
#define HARNESS_ORACLE_STREAM_CHECKER_H_

// Checks a consumer whose ring another thread or process writes, from the delivered events alone:
// payloads identify themselves. settle() compares the writer's totals after the writer has ended.
// The check therefore adds no ordering to the ring's own, and cannot hide a missing fence.
//
// The writer numbers its attempts from 0 and uses one stream per nesting level, so that sequence
// numbers rise within a stream. Payloads are at least kSelfDescribing bytes long.

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/received.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

class StreamChecker : private FirstViolation {
 public:
  // For the ring over `page` and `data`, written by `streams` streams from `first_stream` on.
  StreamChecker(const perf_event_mmap_page& page, Bytes data, std::uint32_t first_stream = 0,
                std::uint32_t streams = 1)
      : watch_{page, data}, first_stream_{first_stream}, next_(streams, 0) {}

  void begin_drain() { watch_.begin_drain(); }
  void check_delivery(const PerfEvent& event);
  void end_drain() {
    watch_.end_drain();
    received_.bytes += watch_.moved();
  }

  // Call it when the writer has ended and the ring has been drained until empty. `unreported`: the
  // losses that the writer has counted since its last record.
  void settle(const Totals& totals, std::uint64_t unreported);

  const Received& received() const { return received_; }
  const std::optional<Violation>& violation() const;

 private:
  void sample(const Sample& sample);

  DrainWatch watch_;
  const std::uint32_t first_stream_;
  std::vector<std::uint64_t> next_;  // next sequence number of each stream
  std::uint64_t missing_ = 0;        // sequence numbers that were skipped
  Received received_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_STREAM_CHECKER_H_
