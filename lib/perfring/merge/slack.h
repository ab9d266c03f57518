#ifndef PERFRING_MERGE_SLACK_H_
#define PERFRING_MERGE_SLACK_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// How long a merge waits for writers, and what it counts (M2, M7, in merge.h).

#include <cstdint>

namespace perfring {

// How long a merge waits for writers (M2, M7).
struct MergeOptions {
  std::uint64_t slack = 100'000;
  bool learns = true;
  std::uint64_t slack_most = 100'000'000;
};

// Counts since the Merge was constructed.
struct MergeCounts {
  std::uint64_t delivered = 0;
  std::uint64_t late = 0;           // M5
  std::uint64_t displaced = 0;      // events that a window moved before earlier records (M3)
  std::uint64_t ahead = 0;          // M8
  std::uint64_t worst_late = 0;     // the most by which a late key was too low
  std::uint64_t longest_delay = 0;  // the longest that M7 proves for any writer

  bool operator==(const MergeCounts&) const = default;
};

namespace internal {

class Slack {
 public:
  explicit Slack(const MergeOptions& options) noexcept : options_{options} {}

  // Records that a writer took as long as `by`.
  void note_delay(std::uint64_t by, MergeCounts& counts) noexcept {
    if (by > counts.longest_delay) counts.longest_delay = by;
    if (options_.learns && by <= options_.slack_most / 2 && 2 * by > learned_) learned_ = 2 * by;
  }
  std::uint64_t in_force() const noexcept {
    return options_.slack < learned_ ? learned_ : options_.slack;
  }
  // Returns B, given the smallest clock.
  std::uint64_t bound(std::uint64_t clock) const noexcept {
    return clock > in_force() ? clock - in_force() : 0;
  }

 private:
  MergeOptions options_;
  std::uint64_t learned_ = 0;
};

}  // namespace internal
}  // namespace perfring

#endif
#endif  // PERFRING_MERGE_SLACK_H_
