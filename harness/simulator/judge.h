#ifndef HARNESS_SIMULATOR_JUDGE_H_
#define HARNESS_SIMULATOR_JUDGE_H_

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/received.h"
#include "harness/program/sanitizers.h"
#include "harness/simulator/random.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {

// Decides whether one ring's consumer, and its kernel, keep the invariants.
class Judge : private oracle::FirstViolation {
 public:
  virtual ~Judge() = default;

  virtual void begin_drain() = 0;
  // Call these from the drain's callback, before and after it reads the event.
  virtual void check_delivery(const PerfEvent& event) = 0;
  virtual void check_finished(const PerfEvent& event) = 0;
  // `head`: the first data_head that this drain read, if it read one.
  virtual void end_drain(std::optional<std::uint32_t> head) = 0;
  virtual void check_read(const std::byte* address, std::size_t size) = 0;
  // The writer is done, and the consumer has found the ring empty.
  virtual void settle() = 0;

  virtual const oracle::Received& received() const = 0;
  // The position up to which the consumer has legitimately released the ring.
  virtual std::uint64_t released() const = 0;
  // Whether the bytes of the event just delivered are known, and thus the same on every machine.
  virtual bool has_known_bytes() const = 0;

  // Reports a violation that another part found.
  using FirstViolation::violate;
  const std::optional<oracle::Violation>& violation() const {
    const auto& reported = FirstViolation::violation();
    return reported ? reported : own_violation();
  }

 private:
  virtual const std::optional<oracle::Violation>& own_violation() const = 0;
};

// Judges a ring that a kernel writes, by the ledger.
std::unique_ptr<Judge> judge_by_ledger(const perf_event_mmap_page& page, Bytes data,
                                       oracle::Ledger& ledger);
// Judges a ring that an adversary writes, by the rules of any drain.
std::unique_ptr<Judge> judge_of_hostile_ring(const perf_event_mmap_page& page, Bytes data);

// The number of records of one ring that a merge sorts.
inline constexpr std::size_t kMergeWindow = 8;

// The parts of an event on which the order depends.
struct KeyedEvent {
  std::uint64_t key = 0;
  std::uint64_t published = 0;   // the clock at its publication
  std::uint64_t position = 0;    // in its ring
  std::size_t displaced_by = 0;  // number of earlier events in its ring with a higher key
};

// The order in which one consumer delivers the events of several rings.
class MergeOrder {
 public:
  explicit MergeOrder(std::uint64_t slack) : slack_{slack} {}

  // A run begins: one that releases up to a bound, or a flush.
  void begin_run(bool is_flush);
  // The merge reads its clock. The first reading of a run is the lowest.
  void note_clock(std::uint64_t now);
  // Events with lower keys may be delivered.
  std::uint64_t bound() const { return bound_; }

  // The event that the callback is about to get. The ring's judge reads it here.
  const Ordered* event = nullptr;
  // Returns the violation, if the event must not come now, or if its `late` is wrong.
  std::optional<oracle::Violation> check_order(const KeyedEvent& timed);
  // At the end: compares the merge's counts with the events delivered.
  std::optional<oracle::Violation> settle(const MergeCounts& counts) const;

  void note_publication(std::uint64_t delay) { longest_delay_ = std::max(longest_delay_, delay); }
  std::uint64_t longest_delay() const { return longest_delay_; }
  std::uint64_t late() const { return late_; }

 private:
  const std::uint64_t slack_;
  bool is_flush_ = false;
  bool has_bound_ = false;
  std::uint64_t bound_ = 0;
  std::uint64_t newest_ = 0;  // newest key delivered
  // The last event of this run that was not late.
  bool has_last_ = false;
  std::uint64_t last_key_ = 0;
  std::size_t last_ring_ = 0;
  std::uint64_t last_position_ = 0;

  std::uint64_t delivered_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t worst_late_ = 0;
  std::uint64_t longest_delay_ = 0;
};

// The clock that writers and merge read, and the key that a payload's writer read from it.
struct MergeClock {
  std::function<std::uint64_t()> now;
  std::function<std::uint64_t(std::uint64_t sequence)> key_of;
};

// The judge of one ring in a merge.
class MergeJudge : public Judge {
 public:
  // data_head was stored.
  virtual void note_publication() = 0;
  // Returns the key of an undelivered event that was published before `clock`, has a key below
  // `bound`, and is among the oldest, which a merge sorts; nullopt if there is none.
  virtual std::optional<std::uint64_t> held_back_key(std::uint64_t clock,
                                                     std::uint64_t bound) const = 0;
  // Whether an event is published and not delivered.
  virtual bool has_undelivered() const = 0;
  // For planted faults: the newest published key, and the end of the oldest undelivered record.
  virtual std::uint64_t newest_key() const = 0;
  virtual std::optional<std::uint64_t> end_of_oldest() const = 0;
};

std::unique_ptr<MergeJudge> judge_of_merge(const perf_event_mmap_page& page, Bytes data,
                                           oracle::Ledger& ledger, MergeOrder& order,
                                           MergeClock clock);

// Under AddressSanitizer, poisons the bytes of a ring that hold no live record, that is, all bytes
// outside [data_tail, data_head). A read of a poisoned byte ends the program. Without
// AddressSanitizer, or if not `on`, does nothing.
class PoisonMap {
 public:
  PoisonMap(Bytes data, bool on) : data_{data}, on_{on && kPoisons} {
    note_release(0, data.size());
  }
  ~PoisonMap() { note_reservation(0, data_.size()); }
  PoisonMap(const PoisonMap&) = delete;
  PoisonMap& operator=(const PoisonMap&) = delete;

  // `size` bytes from `position` on are about to be written.
  void note_reservation(std::uint64_t position, std::uint64_t size) const {
    if (on_) each_piece(position, size, unpoison);
  }
  // No slice of these bytes is valid any more.
  void note_release(std::uint64_t position, std::uint64_t size) const {
    if (on_) each_piece(position, size, poison);
  }

 private:
  // Calls `act` for the piece before the ring's end, and for the one that continues at its start.
  template <class Act>
  void each_piece(std::uint64_t position, std::uint64_t size, Act act) const {
    const auto from = static_cast<std::size_t>(position % data_.size());
    const auto all = static_cast<std::size_t>(std::min<std::uint64_t>(size, data_.size()));
    const std::size_t before_end = std::min(all, data_.size() - from);
    act(data_.data() + from, before_end);
    act(data_.data(), all - before_end);
  }

  const Bytes data_;
  const bool on_;
};

// The drains of one ring: passes each access and each event to the judge and into the digest, and
// poisons the bytes that a drain has released.
class Drains {
 public:
  Drains(const perf_event_mmap_page& page, Bytes data, std::unique_ptr<Judge> judge,
         const PoisonMap& poison, Digest& digest)
      : page_{page}, data_{data}, judge_{std::move(judge)}, poison_{poison}, digest_{digest} {}

  void begin_drain();
  void note_head(std::uint32_t head) {
    if (!head_) head_ = head;
  }
  // Returns false if the consumer keeps reading without delivering an event, which violates
  // `bounded`.
  bool check_read(const std::byte* address, std::size_t size) {
    if (++reads_ > kReadsSpare + data_.size()) [[unlikely]]
      return stop_endless();
    if (address != reinterpret_cast<const std::byte*>(&page_.data_tail)) {
      judge_->check_read(address, size);
    }
    return true;
  }
  void check_delivery(const PerfEvent& event);
  void end_drain();
  bool is_open() const { return open_; }

  // Whether data_head has moved since the last drain read it.
  bool has_unseen_data() const { return head_ != static_cast<std::uint32_t>(page_.data_head); }

  // The number of drains that have begun.
  std::uint64_t count() const { return count_; }
  Judge& judge() { return *judge_; }
  const Judge& judge() const { return *judge_; }

 private:
  // Spare reads: a walk of the whole ring reads every record's header.
  static constexpr std::size_t kReadsSpare = 10'000;

  bool stop_endless();
  void note(const PerfEvent& event);

  const perf_event_mmap_page& page_;
  const Bytes data_;
  const std::unique_ptr<Judge> judge_;
  const PoisonMap& poison_;
  Digest& digest_;
  std::uint64_t count_ = 0;
  bool open_ = false;
  std::size_t reads_ = 0;              // since the last event, or beginning or end of a drain
  std::optional<std::uint32_t> head_;  // by this drain
  std::uint64_t tail_before_ = 0;      // data_tail before this drain
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_JUDGE_H_
