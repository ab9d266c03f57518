#ifndef HARNESS_ORACLE_CHECKER_H_
#define HARNESS_ORACLE_CHECKER_H_

// Holds what a consumer of one ring is given against the ledger of what was written there, event
// by event. For runs in which the writer and the consumer are in one thread: what it expects next
// is exactly known. (Between threads: StreamChecker.)

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>

#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

// What came out of a ring.
struct Received {
  std::uint64_t delivered = 0;  // samples
  std::uint64_t lost = 0;       // the sum of the LOSTs
  std::uint64_t malformed = 0;
  std::uint64_t overwritten = 0;            // records that could not be expected whole (K10)
  std::uint64_t overwritten_lost = 0;       // losses that the LOSTs among them reported
  std::uint64_t desynchronized_events = 0;  // delivered in their place
  std::uint64_t bytes = 0;                  // of ring
};

class Checker {
 public:
  // Of the ring over `page` and `data`; the ledger keeps its records. All must outlive it.
  Checker(const perf_event_mmap_page& page, Bytes data, Ledger& ledger);

  void drain_begins() { watch_.begins(); }
  // From the drain's callback.
  void delivered(const PerfEvent& event);
  // From the callback, when it has looked at the event for as long as it wanted to.
  void finished_with(const PerfEvent& event);
  // When the drain has ended, however it did.
  void drain_ends();
  // For a memory policy that sees each access.
  void reads(const std::byte* address, std::size_t size) { watch_.reads(address, size); }

  // The writer is idle, and the consumer has found the ring empty: is everything accounted for?
  void settle();

  const Received& received() const { return received_; }
  // What the consumer has released, as far as it was entitled to.
  std::uint64_t released() const { return released_; }
  bool in_drain() const { return watch_.in_drain(); }
  // In bytes that an oversize record has overwritten: nothing is known of them (K10).
  bool desynchronized() const { return desynchronized_; }

  // The first invariant that was violated, by the writer or by the consumer.
  const std::optional<Violation>& violation() const;

 private:
  bool in_sync() const { return !desynchronized_ && !after(ledger_.overwritten_until(), at_); }
  void expect(const PerfEvent& event);
  void sample(const Sample& sample);
  void lost(const Lost& lost);
  void malformed(const Malformed& malformed);
  void unexpected(const Sample& sample);
  void resolve_skip(const Sample* next);
  void take_sample();
  void resynchronise();
  // The record that is due; nothing, if none is published.
  const Written* due() const;
  bool is_at(Bytes head, std::uint64_t position) const;
  void violate(Invariant invariant, std::string message);

  const Bytes data_;
  Ledger& ledger_;
  DrainWatch watch_;
  Received received_;
  std::uint64_t at_;  // where the next event is
  std::uint64_t released_;
  bool lost_taken_ = false;      // the front record's LOST was delivered
  bool desynchronized_ = false;  // in overwritten bytes, perhaps on no record's boundary
  Payload last_;                 // that was delivered
  std::uint64_t last_at_ = 0;    // and where it was
  std::optional<Payload> skipped_;
  std::optional<Violation> violation_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_CHECKER_H_
