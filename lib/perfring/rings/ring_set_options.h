#ifndef PERFRING_RINGS_RING_SET_OPTIONS_H_
#define PERFRING_RINGS_RING_SET_OPTIONS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// The options of a RingSet, and the results of its calls.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"

namespace perfring {

struct RingSetOptions {
  // For each ring, as in PerfBufferOptions.
  std::size_t page_count = 64;
  std::uint32_t wakeup_watermark = 0;
  // The longest time that a record may wait in its ring while the program does nothing else. With 0
  // or less, a record waits as long as the watermark makes it. Otherwise the watermark is not used.
  // More than an hour counts as an hour.
  std::chrono::nanoseconds latency{0};
  // The longest duration of any wait.
  std::chrono::nanoseconds longest_wait = std::chrono::milliseconds{100};
  // Whether the kernel puts its time into each record (PERF_SAMPLE_TIME). This takes 8 bytes more,
  // and EventTime is then the key for merges.
  bool timed = false;
  // The CPUs on which to open rings, all of which must be online. If empty: all CPUs that are
  // online now or later.
  std::vector<std::uint32_t> cpus{};
  // Whether to follow CPU hotplug.
  bool follows_cpus = true;
  MergeOptions merge{};
};

// Limits that end a round early, whichever is reached first. By default there are none.
struct Limits {
  using Clock = std::chrono::steady_clock;

  std::uint64_t events = ~std::uint64_t{0};
  // The most events from one ring before the next ring's turn. 0 counts as 1.
  std::uint64_t per_ring = 64;
  // Checked before each turn and after every 64 events. If it has already passed, nothing is
  // delivered.
  Clock::time_point deadline = Clock::time_point::max();

  // Returns true if the deadline has passed. Does not read the clock if there is no deadline.
  template <class Now>
  bool is_late(Now now) const {
    return deadline != Clock::time_point::max() && now() >= deadline;
  }
};

// Why a round ended.
enum class DrainEnd : std::uint8_t {
  Drained,   // all that was there was delivered (by a merge: all that may be released)
  Limit,     // the limit of events was reached
  Deadline,  // the deadline has passed
  Stopped,   // the callback returned false
  Nested,    // another round was in progress: nothing was delivered
  // The key is EventTime but the set is not timed, or the other way round: nothing was delivered.
  WrongKey,
};

// Which events a flush delivers. Any other value counts as Visible.
enum class Flush : std::uint8_t {
  Visible,   // the events in the rings
  Complete,  // also the events that programs now running will output
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_RING_SET_OPTIONS_H_
