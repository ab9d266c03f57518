#ifndef HARNESS_ORACLE_LEDGER_H_
#define HARNESS_ORACLE_LEDGER_H_

// The writer's record of every attempt to write to one ring: the kernel's answer, and the position
// of the record. The ledger does its own arithmetic, from the description of the format
// (KERNEL_FACTS.md).
//
// The producer calls begin_attempt(payload), then the kernel, then end_attempt(rc). In between, the
// producer's CPU reports when the kernel reads data_tail, and the kernel's tracepoints report the
// outcome: note_reservation() and, if the reservation includes a LOST, note_report(); or
// note_refusal(). Attempts nest.
//
// Threads: used by one thread, the ring's writer. If the consumer runs in another thread, it must
// join the writer before it reads the ledger, so that the ledger adds no ordering to the ring's
// own.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"

namespace perfring::oracle {

inline constexpr std::uint64_t kLostSize = 24;  // size of a LOST record (K14)

// The numbers of attempts, by the kernel's answer.
struct Totals {
  std::uint64_t accepted = 0;   // answered 0: in the ring, except for the `invisible` ones
  std::uint64_t invisible = 0;  // accepted with a header.size of 0 (K7)
  std::uint64_t lost = 0;       // answered -ENOSPC, counted by the kernel
  std::uint64_t failed = 0;     // refused for another reason, not counted by the kernel

  std::uint64_t attempts() const { return accepted + lost + failed; }
};

// One reservation of at least one byte: an accepted record, or a LOST alone. It holds a LOST if
// has_lost, followed by a sample unless `size` is 0.
struct Written {
  std::uint64_t position = 0;  // does not wrap
  std::uint64_t lost = 0;      // the LOST's count, set once its writer has written it
  Payload payload;
  std::uint32_t size = 0;  // the sample's header.size
  bool has_lost = false;

  std::uint64_t sample_at() const { return position + (has_lost ? kLostSize : 0); }
  std::uint64_t end() const { return sample_at() + size; }
};

// An output that the kernel is refusing, and what the kernel had read from the ring.
struct Refusal {
  std::uint64_t length = 0;               // of the payload
  std::optional<std::uint64_t> unread{};  // bytes, if data_tail was read (not for a paused ring)
  bool paused = false;                    // the ring is paused now
  bool interrupted = false;               // other outputs interrupted this one
};

class Ledger : private FirstViolation {
 public:
  enum class Keep : bool { Totals, Records };

  // For a ring of `size` bytes. Positions start at `start` and have `word_bits` bits. A Checker
  // needs Keep::Records, and pops the records.
  Ledger(std::uint64_t size, Keep keep, std::uint64_t start = 0, unsigned word_bits = 64);

  void begin_attempt(const Payload& payload);
  void end_attempt(int rc);
  // The kernel checks for room with this data_tail, or with a later one.
  void note_tail_read(std::uint64_t data_tail);
  // Something other than an attempt changes the ring while attempts are under way, for example a
  // pause or a resume.
  void note_interruption();
  // The attempt got its reservation. `data_tail`: the position up to which the consumer has
  // released the ring, as the writer read it or, if known, its actual value.
  void note_reservation(std::uint64_t position, std::uint64_t size, std::uint64_t data_tail);
  // A LOST has reported this number of losses.
  void note_report(std::uint64_t lost);
  // The kernel refused the attempt: violates no_loss if there was room. `paused`: the ring is
  // paused now.
  void note_refusal(bool paused);
  // Returns nullopt if a full or paused ring justifies the refusal (K12, K14, K41), else the
  // message of a no_loss violation.
  std::optional<std::string> unjustified_refusal(const Refusal& refusal) const;
  // The kernel stored data_head. Calling it is optional: without it, every reserved record counts
  // as published.
  void note_publication(std::uint64_t data_head);
  // A drain begins: any data_head from now on may be the one that it reads.
  void begin_drain() { shown_ = published_; }

  const Totals& totals() const { return totals_; }
  // Losses that no LOST has reported yet.
  std::uint64_t unreported() const { return unreported_; }
  std::uint64_t ring_size() const { return size_; }
  // The position at which the next reservation starts.
  std::uint64_t position() const { return position_; }
  std::size_t in_progress() const { return depth_; }
  // The position up to which a consumer may read now.
  std::uint64_t published() const { return published_ ? *published_ : position_; }
  // The highest published() since the last drain began: data_head may go back meanwhile (K59).
  std::uint64_t shown() const { return shown_ ? *shown_ : position_; }

  // The writer's first violation.
  using FirstViolation::violation;

  // The records that the Checker has not popped yet, oldest first.
  bool empty() const { return first_ == last_; }
  std::size_t pending() const { return static_cast<std::size_t>(last_ - first_); }
  const Written& front() const { return at(first_); }
  void pop() { ++first_; }
  // Returns true if a payload with this sequence number and stream is among these records.
  bool contains(const Payload& payload) const;
  // A payload above 65516 bytes is written past its reservation (K9, K10), which may have
  // overwritten unread bytes below this position.
  std::uint64_t overwritten_until() const { return overwritten_until_; }

 private:
  struct Attempt {
    Payload payload;
    unsigned reservations = 0;
    unsigned refusals = 0;
    std::uint64_t record = 0;     // the number of its Written
    std::uint64_t spills_to = 0;  // the end of its bytes, past the end of the reservation
    bool spills = false;
    bool lost_count_pending = false;  // it reserved a LOST and has not written the count yet
    bool interrupted = false;
    std::optional<std::uint64_t> unread{};  // bytes unread when it last read data_tail
    // Since the attempt began there was a moment with unreported losses, or one without.
    bool saw_losses = false;
    bool saw_none = false;
  };

  // The slot of record number `i`.
  std::size_t slot(std::uint64_t i) const {
    return static_cast<std::size_t>(i) & (records_.size() - 1);
  }
  const Written& at(std::uint64_t i) const { return records_[slot(i)]; }
  void unreported(std::uint64_t lost);
  void lengthen();
  void note_spill(Attempt& attempt, std::uint64_t size, std::uint64_t data_tail);

  const std::uint64_t size_;
  const std::uint64_t mask_;
  const Keep keep_;
  std::uint64_t position_;
  std::uint64_t overwritten_until_;
  std::optional<std::uint64_t> published_;
  std::optional<std::uint64_t> shown_;
  std::uint64_t unreported_ = 0;
  Totals totals_;
  std::array<Attempt, 8> attempts_;
  std::size_t depth_ = 0;
  std::vector<Written> records_;  // used as a ring: the size is a power of two
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

// Returns true if position a is after b. Positions wrap at 2^64.
constexpr bool after(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b) > 0;
}

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_LEDGER_H_
