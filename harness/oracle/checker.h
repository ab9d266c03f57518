#ifndef HARNESS_ORACLE_CHECKER_H_
#define HARNESS_ORACLE_CHECKER_H_

// Compares the events that a consumer of one ring delivers with the ledger of what was written to
// the ring, event by event. For runs in which the writer and the consumer share a thread, so that
// the next event is known exactly. For two threads, see stream_checker.h.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "harness/oracle/received.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

// The phases of a Checker:
//
//           1
//         +---+
//         v   |    2
//   --> Synchronized ---> Skipped
//         |   ^    \         |
//       3 |   | 4   \ 6      | 5
//         v   |      v       v
//   Desynchronized  violation
//
//   1 The due event, or the end of a drain with data_tail at at_.
//   2 The sample of a later record in place of the due one, which becomes skipped_.
//   3 Any event, where an oversize record may have overwritten the bytes at at_ (K10).
//   4 The end of a drain with data_tail at a record, or between a LOST and its sample.
//   5 The next event, or the end of the drain: `order` for the skipped sample, else `no_loss`.
//   6 Any other event or tail: unexpected(), lost() or malformed() choose the invariant.
//
// The due record is the ledger's front, if it is published. A record's LOST and sample are two
// events; lost_delivered_ is true between them. In every phase DrainWatch may find a violation. The
// first violation is final.
class Checker : private FirstViolation {
 public:
  // Checks the ring over `page` and `data`. The ledger keeps the ring's records. All three must
  // outlive the checker.
  Checker(const perf_event_mmap_page& page, Bytes data, Ledger& ledger);

  void begin_drain() {
    ledger_.begin_drain();
    watch_.begin_drain();
  }
  // Call it from the drain's callback.
  void check_delivery(const PerfEvent& event);
  // Call it from the callback when the callback has finished with the event's bytes.
  void check_finished(const PerfEvent& event);
  // Call it when the drain has ended, also by an exception.
  void end_drain();
  // For a memory policy that observes each access.
  void check_read(const std::byte* address, std::size_t size) { watch_.check_read(address, size); }

  // Checks that everything is accounted for. Call it when the writer is idle and the consumer has
  // found the ring empty.
  void settle();

  const Received& received() const { return received_; }
  // The position up to which the consumer has legitimately released the ring.
  std::uint64_t released() const { return released_; }
  bool in_drain() const { return watch_.in_drain(); }
  // Whether the consumer is in bytes that an oversize record has overwritten, where any event is
  // allowed (K10).
  bool desynchronized() const { return phase_ == Phase::Desynchronized; }

  // The first violation, by the writer or by the consumer.
  const std::optional<Violation>& violation() const;

 private:
  enum class Phase : std::uint8_t {
    Synchronized,    // the next event is the due record's
    Skipped,         // a later record was delivered in place of skipped_
    Desynchronized,  // in overwritten bytes, perhaps not at a record boundary
  };

  // Whether the bytes at at_ may have been overwritten before the consumer read them.
  bool is_overwritten() const { return after(ledger_.overwritten_until(), at_); }
  void expect(const PerfEvent& event);
  void sample(const Sample& sample);
  void lost(const Lost& lost);
  void malformed(const Malformed& malformed);
  void unexpected(const Sample& sample);
  void resolve_skip(const Sample* next);
  void consume_due();
  void resynchronize();
  // Returns the record that is due, or null if none is published.
  const Written* due() const;
  bool is_at(Bytes head, std::uint64_t position) const;

  const Bytes data_;
  Ledger& ledger_;
  DrainWatch watch_;
  Received received_;
  Phase phase_ = Phase::Synchronized;
  std::uint64_t at_;  // position of the next event
  std::uint64_t released_;
  bool lost_delivered_ = false;  // the due record's LOST has been delivered
  Payload skipped_;              // in Phase::Skipped
  Payload last_;                 // the sample delivered last
  std::uint64_t last_at_ = 0;    // the position of last_
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_CHECKER_H_
