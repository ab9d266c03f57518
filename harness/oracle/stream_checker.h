#ifndef HARNESS_ORACLE_STREAM_CHECKER_H_
#define HARNESS_ORACLE_STREAM_CHECKER_H_

// Checks a consumer whose ring is written by another thread or process, from the delivered events
// alone: payloads identify themselves. The writer's totals are compared after it has ended. So the
// check orders nothing that the ring itself does not order, and hides no missing fence.
//
// The writer numbers its attempts from 0, and gives each nesting level a stream of its own, so that
// sequence numbers rise within a stream. Payloads are kSelfDescribing bytes long or longer.

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle/checker.h"
#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

class StreamChecker {
 public:
  // For the ring over `page` and `data`, written by the streams from `first_stream` on.
  StreamChecker(const perf_event_mmap_page& page, Bytes data, std::uint32_t first_stream = 0,
                std::uint32_t streams = 1)
      : watch_{page, data}, first_stream_{first_stream}, next_(streams, 0) {}

  void drain_begins() { watch_.begins(); }
  void delivered(const PerfEvent& event);
  void drain_ends() {
    watch_.ends();
    received_.bytes += watch_.moved();
  }

  // The writer has ended, and the ring was drained until empty. `unreported`: the losses that it
  // has counted since its last record.
  void settle(const Totals& totals, std::uint64_t unreported);

  const Received& received() const { return received_; }
  const std::optional<Violation>& violation() const;

 private:
  void sample(const Sample& sample);
  void violate(Invariant invariant, std::string message);

  DrainWatch watch_;
  const std::uint32_t first_stream_;
  std::vector<std::uint64_t> next_;  // sequence number of each stream
  std::uint64_t missing_ = 0;        // sequence numbers that were passed over
  Received received_;
  std::optional<Violation> violation_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_STREAM_CHECKER_H_
