#ifndef HARNESS_ORACLE_CHECKER_H_
#define HARNESS_ORACLE_CHECKER_H_

// Compares what a consumer of one ring is delivered with the ledger of what was written there,
// event by event. For runs in which the writer and the consumer share a thread, so that the next
// event is exactly known. (Between threads: StreamChecker, below.)

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

// Totals of what a consumer got out of a ring.
struct Received {
  std::uint64_t delivered = 0;  // samples
  std::uint64_t lost = 0;       // the sum of the LOSTs
  std::uint64_t malformed = 0;
  std::uint64_t overwritten = 0;            // records that could not be expected whole (K10)
  std::uint64_t overwritten_lost = 0;       // losses that the LOSTs among them reported
  std::uint64_t desynchronized_events = 0;  // delivered in their place
  std::uint64_t bytes = 0;                  // of ring
};

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
//   1 The due event, or the end of a drain whose tail is at_.
//   2 A later record's sample in place of the due one's, which becomes skipped_.
//   3 Any event, where an oversize record may have overwritten the bytes at at_ (K10).
//   4 The end of a drain whose tail is at a record, or between a LOST and its sample.
//   5 The next event, or the drain's end: `order` if it is the skipped sample, else `no_loss`.
//   6 Any other event or tail, under the name that unexpected(), lost(), malformed() find for it.
//
// The due record is the ledger's front, if it is published. Its LOST and its sample are two events,
// and lost_delivered_ is true between them. In every phase DrainWatch may find a violation, and the
// first violation is final.
class Checker : private FirstViolation {
 public:
  // Checks the ring over `page` and `data`, whose records the ledger keeps. All three must outlive
  // it.
  Checker(const perf_event_mmap_page& page, Bytes data, Ledger& ledger);

  void drain_begins() {
    ledger_.drain_begins();
    watch_.begins();
  }
  // From the drain's callback.
  void delivered(const PerfEvent& event);
  // From the callback, when it is finished with the event's bytes.
  void finished_with(const PerfEvent& event);
  // When the drain has ended, also by an exception.
  void drain_ends();
  // For a memory policy that sees each access.
  void reads(const std::byte* address, std::size_t size) { watch_.reads(address, size); }

  // The writer is idle, and the consumer has found the ring empty: is everything accounted for?
  void settle();

  const Received& received() const { return received_; }
  // Up to where the consumer has released the ring, as far as it was entitled to.
  std::uint64_t released() const { return released_; }
  bool in_drain() const { return watch_.in_drain(); }
  // In bytes that an oversize record has overwritten: nothing is known of them (K10).
  bool desynchronized() const { return phase_ == Phase::Desynchronized; }

  // The first invariant that was violated, by the writer or by the consumer.
  const std::optional<Violation>& violation() const;

 private:
  enum class Phase : std::uint8_t {
    Synchronized,    // the next event is the due record's
    Skipped,         // a later record was delivered in place of skipped_
    Desynchronized,  // in overwritten bytes, perhaps on no record's boundary
  };

  // Whether the bytes at at_ may have been overwritten before they were read.
  bool overwritten() const { return after(ledger_.overwritten_until(), at_); }
  void expect(const PerfEvent& event);
  void sample(const Sample& sample);
  void lost(const Lost& lost);
  void malformed(const Malformed& malformed);
  void unexpected(const Sample& sample);
  void resolve_skip(const Sample* next);
  void consume_due();
  void resynchronize();
  // The record that is due, or null if none is published.
  const Written* due() const;
  bool is_at(Bytes head, std::uint64_t position) const;

  const Bytes data_;
  Ledger& ledger_;
  DrainWatch watch_;
  Received received_;
  Phase phase_ = Phase::Synchronized;
  std::uint64_t at_;  // where the next event is
  std::uint64_t released_;
  bool lost_delivered_ = false;  // the due record's LOST
  Payload skipped_;              // in Phase::Skipped
  Payload last_;                 // the sample that was delivered last,
  std::uint64_t last_at_ = 0;    // and where it was
};

// Checks a consumer whose ring is written by another thread or process, from the delivered events
// alone: payloads identify themselves. The writer's totals are compared after it has ended. So the
// check orders nothing that the ring itself does not order, and hides no missing fence.
//
// The writer numbers its attempts from 0, and gives each nesting level a stream of its own, so that
// sequence numbers rise within a stream. Payloads are kSelfDescribing bytes long or longer.
class StreamChecker : private FirstViolation {
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

  DrainWatch watch_;
  const std::uint32_t first_stream_;
  std::vector<std::uint64_t> next_;  // sequence number of each stream
  std::uint64_t missing_ = 0;        // sequence numbers that were passed over
  Received received_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_CHECKER_H_
