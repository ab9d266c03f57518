#ifndef HARNESS_SIMULATOR_JUDGE_H_
#define HARNESS_SIMULATOR_JUDGE_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle/checker.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "perfring/perf_event.h"
#include "perfring/rings/merge.h"

namespace perfring::simulator {

// Decides whether one ring's consumer, and its kernel, keep the invariants.
class Judge {
 public:
  virtual ~Judge() = default;

  virtual void drain_begins() = 0;
  // From the drain's callback, before and after it looks at the event.
  virtual void delivered(const PerfEvent& event) = 0;
  virtual void finished_with(const PerfEvent& event) = 0;
  // `head`: data_head as this drain has read it first, if it has.
  virtual void drain_ends(std::optional<std::uint32_t> head) = 0;
  virtual void reads(const std::byte* address, std::size_t size) = 0;
  // The writer is done, and the consumer has found the ring empty.
  virtual void settle() = 0;

  virtual const oracle::Received& received() const = 0;
  // Up to where the consumer has released the ring, as far as it was entitled to.
  virtual std::uint64_t released() const = 0;
  // Whether the bytes of the event just delivered are determined: the same on every machine.
  virtual bool knows_the_bytes() const = 0;

  // Reports a violation that another part noticed. The first one stays.
  void violate(oracle::Invariant invariant, std::string message);
  const std::optional<oracle::Violation>& violation() const {
    return reported_ ? reported_ : noticed();
  }

 private:
  virtual const std::optional<oracle::Violation>& noticed() const = 0;

  std::optional<oracle::Violation> reported_;
};

// Judges a ring that a kernel writes, by the ledger.
std::unique_ptr<Judge> judge_by_ledger(const perf_event_mmap_page& page, Bytes data,
                                       oracle::Ledger& ledger);
// Judges a ring that an adversary writes, by the rules of any drain.
std::unique_ptr<Judge> judge_of_hostile_ring(const perf_event_mmap_page& page, Bytes data);

// How many records of one ring a merge sorts.
inline constexpr std::size_t kMergeWindow = 8;

// What the order needs to know of an event: where it was written, and when.
struct Timed {
  std::uint64_t key = 0;
  std::uint64_t published = 0;   // what the clock said then
  std::uint64_t position = 0;    // in its ring
  std::size_t displaced_by = 0;  // how many events before it, in its ring, have a higher key
};

// The order in which one consumer is delivered the events of several rings.
class MergeOrder {
 public:
  explicit MergeOrder(std::uint64_t slack) : slack_{slack} {}

  // A run begins: one that releases by a bound, or a flush.
  void begins(bool takes_all);
  // The merge reads its clock. The first reading of a run is its lowest.
  void reads_clock(std::uint64_t now);
  // What is lower may be delivered.
  std::uint64_t bound() const { return bound_; }

  // The event that is passed to the callback, in which the ring's judge finds it here.
  const Ordered* event = nullptr;
  // The violation, if it should not come now, or is not marked as it is.
  std::optional<oracle::Violation> delivered(const Timed& timed);
  // At the end: whether the merge has counted what came.
  std::optional<oracle::Violation> settle(const MergeCounts& counts) const;

  void published(std::uint64_t delay) { longest_delay_ = std::max(longest_delay_, delay); }
  std::uint64_t longest_delay() const { return longest_delay_; }
  std::uint64_t late() const { return late_; }

 private:
  const std::uint64_t slack_;
  bool takes_all_ = false;
  bool has_bound_ = false;
  std::uint64_t bound_ = 0;
  std::uint64_t newest_ = 0;  // key delivered
  // Of this run, the last that was not late.
  bool has_last_ = false;
  std::uint64_t last_key_ = 0;
  std::size_t last_ring_ = 0;
  std::uint64_t last_position_ = 0;

  std::uint64_t delivered_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t worst_late_ = 0;
  std::uint64_t longest_delay_ = 0;
};

// The clock that writers and merge read, and the key that the writer of a payload had read.
struct MergeClock {
  std::function<std::uint64_t()> now;
  std::function<std::uint64_t(std::uint64_t sequence)> key_of;
};

// The judge of one ring of a merge.
class MergeJudge : public Judge {
 public:
  // data_head was stored.
  virtual void published() = 0;
  // Whether something that was published before `clock`, is lower than `bound`, and is among the
  // oldest that a merge sorts, is still there: its key.
  virtual std::optional<std::uint64_t> held_back(std::uint64_t clock,
                                                 std::uint64_t bound) const = 0;
  // Whether something is published and not delivered.
  virtual bool has_due() const = 0;
  // For those who do wrong: the key of the last that was published, and the end of the oldest
  // record that was not delivered.
  virtual std::uint64_t newest_key() const = 0;
  virtual std::optional<std::uint64_t> end_of_oldest() const = 0;
};

std::unique_ptr<MergeJudge> judge_of_merge(const perf_event_mmap_page& page, Bytes data,
                                           oracle::Ledger& ledger, MergeOrder& order,
                                           MergeClock clock);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_JUDGE_H_
