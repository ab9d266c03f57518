#ifndef PROPTESTS_MERGE_ORACLE_H_
#define PROPTESTS_MERGE_ORACLE_H_

// What a Merge must deliver of rings that hold anything but bad sizes and bad positions, run by
// run, told from what was written alone: each event's place in its ring, its key, and in which run
// it was first there. Where a rule leaves open when a record is read (M6, M8), the key that it was
// ordered by must be one that the rule allows; whatever it is, all follows from it exactly: the
// order, what is late, where each run ends, and data_tail.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfring/rings/merge.h"
#include "perfring/testing/rings.h"

namespace perfring::proptests {

class MergeOracle {
 public:
  enum class Kind : std::uint8_t { Sample, Lost, Malformed };
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  struct Event {
    Kind kind;
    std::uint64_t key;  // its own, if it is a Sample
    testing::Seen seen;
    std::uint64_t end;  // of its record
    // What the merge made of it: in which run, as the how many-th of all, and the key that it was
    // ordered by.
    std::optional<std::size_t> run{};
    std::size_t turn = 0;
    std::uint64_t ordered_by = 0;
  };

  struct Run {
    std::vector<std::uint64_t> clocks{};  // of the ring's looks, and one more; of a flush: none
    std::uint64_t limit = kAll;
    bool cut = false;        // the callback ended it
    bool key_threw = false;  // the key did
    MergeEnd end{};
    std::vector<testing::Got> got{};
    std::vector<std::size_t> visible{};  // of each ring: how many events, when it was looked at
    std::vector<std::uint64_t> tails{};  // of each ring, afterwards

    bool is_flush() const { return clocks.empty(); }
    std::uint64_t seen() const { return is_flush() ? kAll : clocks.back(); }
  };

  // Positions begin at `start`. Preconditions: the clocks of runs grow and are odd; the slack and
  // the samples' keys are even, so that no bound is a key.
  MergeOracle(std::size_t rings, std::size_t window, std::uint64_t slack, std::uint64_t start)
      : window_{window}, slack_{slack}, start_{start}, rings_(rings) {}

  // What is written to a ring next.
  void wrote(std::size_t ring, Event event) { rings_[ring].push_back(std::move(event)); }
  std::size_t written(std::size_t ring) const { return rings_[ring].size(); }

  // Judges all runs, the last of which is a complete flush: the first error, or an empty string.
  std::string judge(std::vector<Run> runs, const MergeCounts& counts);

 private:
  using Ring = std::vector<Event>;

  std::uint64_t bound(const Run& run) const;
  // Whether a sample stands behind it that was there in that run.
  bool has_sample(std::size_t ring, std::size_t event, std::size_t run) const;
  bool is_there(std::size_t ring, std::size_t event, std::size_t run) const;
  // The run whose bound is the key of this LOST.
  std::optional<std::size_t> waited_in(std::size_t ring, std::size_t event) const;

  bool was_flushed(std::size_t ring, std::size_t event, std::size_t run) const;

  bool has_key_before(std::size_t ring, std::size_t event) const;

  std::string assign();
  std::string judge_assigned(const MergeCounts& counts);
  std::string check_key(std::size_t ring, std::size_t event) const;
  std::string check_lost_key(std::size_t ring, std::size_t event) const;
  std::string check_wait(std::size_t ring, std::size_t event, std::size_t waited) const;
  std::string replay(std::size_t run);
  std::string check_counts(const MergeCounts& counts) const;
  std::string check_delays(std::uint64_t seen) const;
  bool met_clock(const Event& event, std::size_t from, std::size_t to) const;
  std::uint64_t newest_when_read(std::size_t ring) const;
  std::uint64_t key_in(std::size_t ring, std::size_t event, std::size_t run) const;
  std::pair<std::size_t, std::size_t> lowest(std::size_t run) const;
  std::size_t undelivered_before(std::size_t ring, std::size_t event, std::size_t run) const;

  // A key that throws ends the reading of that run, nobody knows where. A LOST that a flush
  // delivers with the bound of such a run was read in it, and waited; or it was not, and the flush
  // gave it the key of another that had waited. Both are tried.
  bool was_read_ = true;
  const std::size_t window_;
  const std::uint64_t slack_;
  const std::uint64_t start_;
  std::vector<Ring> rings_;
  std::vector<Run> runs_{};
  // Of the replay.
  std::vector<std::vector<bool> > delivered_{};
  std::uint64_t newest_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t worst_late_ = 0;
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_MERGE_ORACLE_H_
