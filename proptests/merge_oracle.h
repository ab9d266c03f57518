#ifndef PROPTESTS_MERGE_ORACLE_H_
#define PROPTESTS_MERGE_ORACLE_H_

// Judges the events that a Merge delivers, run by run, from rings that hold anything but bad sizes
// and bad positions. The oracle gets only what was written: each event's place in its ring, its
// key, and the run that could first see it. The rules leave open when a record is read (M6, M8);
// there the oracle accepts any ordering key that they allow. Everything else follows from the
// ordering keys and must be exact: the order, the late events, where each run ends, and data_tail.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/rings.h"

namespace perfring::proptests {

class MergeOracle {
 public:
  enum class Kind : std::uint8_t { Sample, Lost, Malformed };
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  struct Event {
    Kind kind;
    std::uint64_t key;  // own key of a Sample
    testing::CopiedEvent event;
    std::uint64_t end;  // end of the record
    // From the merge: the run, the place in the order of delivery, and the ordering key.
    std::optional<std::size_t> run{};
    std::size_t turn = 0;
    std::uint64_t ordered_by = 0;
  };

  struct Run {
    std::vector<std::uint64_t> clocks{};  // one for each look, and one more; empty in a flush
    std::uint64_t limit = kAll;
    bool cut = false;        // ended by the callback
    bool key_threw = false;  // ended by the key function
    MergeEnd end{};
    std::vector<testing::MergedEvent> delivered{};
    std::vector<std::size_t> visible{};  // each ring's number of events when it was looked at
    std::vector<std::uint64_t> tails{};  // each ring's data_tail after the run

    bool is_flush() const { return clocks.empty(); }
    std::uint64_t clock_after() const { return is_flush() ? kAll : clocks.back(); }
  };

  // Positions begin at `start`. Preconditions: the clocks of the runs increase and are odd; the
  // slack and the samples' keys are even, so that no bound equals a key.
  MergeOracle(std::size_t rings, std::size_t window, std::uint64_t slack, std::uint64_t start)
      : window_{window}, slack_{slack}, start_{start}, rings_(rings) {}

  // Records that a producer has written this event to the ring.
  void wrote(std::size_t ring, Event event) { rings_[ring].push_back(std::move(event)); }
  std::size_t written(std::size_t ring) const { return rings_[ring].size(); }

  // Judges all runs; the last must be a complete flush. Returns the first error and the invariant
  // that it violates, or an empty string.
  std::string judge(std::vector<Run> runs, const MergeCounts& counts);

 private:
  using Ring = std::vector<Event>;

  std::uint64_t bound(const Run& run) const;
  // Whether a later sample of the ring was visible in that run.
  bool has_sample(std::size_t ring, std::size_t event, std::size_t run) const;
  bool is_there(std::size_t ring, std::size_t event, std::size_t run) const;
  // Returns the run whose bound is the ordering key of this LOST.
  std::optional<std::size_t> waited_in(std::size_t ring, std::size_t event) const;

  bool was_flushed(std::size_t ring, std::size_t event, std::size_t run) const;

  bool was_flush_before(std::size_t run) const;
  bool may_be_ahead(std::uint64_t key, std::size_t ring, std::size_t sample, std::size_t run) const;
  bool has_key_of_ahead(std::size_t ring, std::size_t event, std::size_t run) const;
  bool was_read_ahead(std::size_t ring, std::size_t event, std::size_t run) const;
  std::uint64_t newest_before(std::size_t run) const;
  bool has_key_before(std::size_t ring, std::size_t event) const;

  std::string assign();
  std::string judge_assigned(const MergeCounts& counts);
  std::string check_key(std::size_t ring, std::size_t event) const;
  std::string check_lost_key(std::size_t ring, std::size_t event) const;
  std::string check_wait(std::size_t ring, std::size_t event, std::size_t waited) const;
  std::string replay(std::size_t run);
  std::string check_counts(const MergeCounts& counts) const;
  std::string check_delays(std::uint64_t reported) const;
  std::uint64_t newest_when_read(std::size_t ring) const;
  std::uint64_t key_in(std::size_t ring, std::size_t event, std::size_t run) const;
  std::pair<std::size_t, std::size_t> lowest(std::size_t run) const;
  std::size_t undelivered_before(std::size_t ring, std::size_t event, std::size_t run) const;

  // If a key function throws, the oracle cannot tell where that run stopped reading. A LOST that a
  // flush delivers with the bound of such a run may have been read in the run, and waited; or it
  // was not read, and the flush gave it the key of another LOST that had waited. judge() tries
  // both.
  bool was_read_ = true;
  const std::size_t window_;
  const std::uint64_t slack_;
  const std::uint64_t start_;
  std::vector<Ring> rings_;
  std::vector<Run> runs_{};
  // The state of the replay.
  std::vector<std::vector<bool> > delivered_{};
  std::uint64_t newest_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t worst_late_ = 0;
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_MERGE_ORACLE_H_
