#ifndef HARNESS_ORACLE_LEDGER_H_
#define HARNESS_ORACLE_LEDGER_H_

// Every attempt to write to one ring, kept by the writer: how it was answered, and where its record
// went. The ledger does its own arithmetic, from the format's description (KERNEL_FACTS.md).
//
// The producer's code says begins(payload), calls the kernel, and says ends(rc). In between, its
// CPU says when it reads data_tail, and the kernel's tracepoints report the outcome: reserved()
// and, if there is room for a LOST in it, reported(); or refused(). Attempts nest.
//
// Threads: one, the ring's writer. Where the consumer is in another, it reads nothing here until
// that thread is joined: a ledger orders nothing that the ring itself does not.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"

namespace perfring::oracle {

inline constexpr std::uint64_t kLostSize = 24;  // of a LOST record (K14)

// Attempts, by how they were answered.
struct Totals {
  std::uint64_t accepted = 0;   // 0: in the ring, all but the `invisible` ones
  std::uint64_t invisible = 0;  // accepted with a header.size of 0 (K7)
  std::uint64_t lost = 0;       // -ENOSPC, which the kernel counts
  std::uint64_t failed = 0;     // refused for another reason, which the kernel does not count

  std::uint64_t attempts() const { return accepted + lost + failed; }
};

// One accepted record, or one LOST alone: a reservation of at least one byte, which holds a LOST if
// has_lost, and a sample unless its size is 0.
struct Written {
  std::uint64_t position = 0;  // not wrapped
  std::uint64_t lost = 0;      // the LOST's count, once its writer has written it
  Payload payload;
  std::uint32_t size = 0;  // of the sample: its header.size
  bool has_lost = false;

  std::uint64_t sample_at() const { return position + (has_lost ? kLostSize : 0); }
  std::uint64_t end() const { return sample_at() + size; }
};

// An output that is being refused, and what the kernel has read of the ring for it.
struct Refusal {
  std::uint64_t length = 0;               // of its payload
  std::optional<std::uint64_t> unread{};  // bytes, if data_tail was read: not for a paused ring
  bool paused = false;                    // the ring is paused by now
  bool interrupted = false;               // other outputs interrupted it
};

class Ledger : private FirstViolation {
 public:
  enum class Keep : bool { Totals, Records };

  // For a ring of `size` bytes, whose positions start at `start` and have `word_bits`.
  // Keep::Records for a Checker, which pops them.
  Ledger(std::uint64_t size, Keep keep, std::uint64_t start = 0, unsigned word_bits = 64);

  void begins(const Payload& payload);
  void ends(int rc);
  // The kernel reads this data_tail, or a later one, to see whether there is room.
  void reads_tail(std::uint64_t data_tail);
  // Something happens to the ring in the midst of the attempts under way, other than an attempt:
  // it is paused, for one thing, or resumed.
  void interrupted();
  // `data_tail`: the position up to which the consumer has released the ring, as the writer has
  // read it or, if that is known, as it is.
  void reserved(std::uint64_t position, std::uint64_t size, std::uint64_t data_tail);
  // A LOST has reported this many losses.
  void reported(std::uint64_t lost);
  // The kernel refused the attempt: violates no_loss if there was room. `paused`: whether the ring
  // is paused now.
  void refused(bool paused);
  // A refusal is justified by a ring that is full or paused (K12, K14, K41): the message of a
  // no_loss if this one is not, else nullopt.
  std::optional<std::string> unjustified_refusal(const Refusal& refusal) const;
  // data_head was stored. Optional: without it, every reserved record counts as published.
  void published(std::uint64_t data_head);
  // A drain begins, which reads data_head from now on.
  void drain_begins() { shown_ = published_; }

  const Totals& totals() const { return totals_; }
  // Losses that no LOST has reported yet.
  std::uint64_t unreported() const { return unreported_; }
  std::uint64_t ring_size() const { return size_; }
  // The position at which the next reservation starts.
  std::uint64_t position() const { return position_; }
  std::size_t in_progress() const { return depth_; }
  // The position up to which a consumer may read.
  std::uint64_t published() const { return published_ ? *published_ : position_; }
  // The furthest of these since the last drain began: data_head may go back meanwhile (K59).
  std::uint64_t shown() const { return shown_ ? *shown_ : position_; }

  // The first violation by the writer itself.
  using FirstViolation::violation;

  // The records that a Checker has not popped yet, oldest first.
  bool empty() const { return first_ == last_; }
  std::size_t pending() const { return static_cast<std::size_t>(last_ - first_); }
  const Written& front() const { return at(first_); }
  void pop() { ++first_; }
  // Whether a payload with this sequence number, of this stream, is among them.
  bool contains(const Payload& payload) const;
  // A payload above 65516 bytes is written past its reservation (K9, K10): unread bytes below this
  // position may have been overwritten.
  std::uint64_t overwritten_until() const { return overwritten_until_; }

 private:
  struct Attempt {
    Payload payload;
    unsigned reservations = 0;
    unsigned refusals = 0;
    std::uint64_t record = 0;     // the number of its Written
    std::uint64_t spills_to = 0;  // the end of its bytes, past the reservation's
    bool spills = false;
    bool lost_count_pending = false;  // it has reserved a LOST, whose count is not written yet
    bool interrupted = false;
    std::optional<std::uint64_t> unread{};  // bytes, when it last read data_tail
    // Since it began there was a moment with unreported losses, and one without.
    bool saw_losses = false;
    bool saw_none = false;
  };

  // The slot that keeps record number `i`.
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
  std::vector<Written> records_;  // a ring of its own, a power of two long
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

// Whether position a is after b: positions wrap at 2^64.
constexpr bool after(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b) > 0;
}

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_LEDGER_H_
