#ifndef HARNESS_SIMULATOR_MERGE_JUDGE_H_
#define HARNESS_SIMULATOR_MERGE_JUDGE_H_

// Who decides whether a merge of several rings keeps the invariants: `merged` and `late` are the
// order's, which all rings share; the others are a judge's, one for each ring.

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/simulator/judge.h"
#include "perfring/perf_event.h"
#include "perfring/rings/merge.h"

namespace perfring::simulator {

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

#endif  // HARNESS_SIMULATOR_MERGE_JUDGE_H_
