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

#include "perfring/rings/merge.h"

namespace perfring {

struct RingSetOptions {
  // For each ring: as PerfBufferOptions.
  std::size_t page_count = 64;
  std::uint32_t wakeup_watermark = 0;
  // The longest time that a record waits in its ring while nothing else is done. 0 or less: as long
  // as the watermark makes it. Otherwise the watermark is not used. More than an hour counts as an
  // hour.
  std::chrono::nanoseconds latency{0};
  // The longest time that any wait lasts.
  std::chrono::nanoseconds longest_wait = std::chrono::milliseconds{100};
  // Whether the kernel puts its time into each record (PERF_SAMPLE_TIME): 8 bytes more, and
  // EventTime is the key to merge by.
  bool timed = false;
  // The CPUs to open rings on, all of which are to be online; none: all that are online, or come.
  std::vector<std::uint32_t> cpus{};
  // Whether CPUs that come and go are followed.
  bool follows_cpus = true;
  MergeOptions merge{};
};

// The limits that end a round early, whichever comes first. By default nothing does.
struct Limits {
  using Clock = std::chrono::steady_clock;

  std::uint64_t events = ~std::uint64_t{0};
  // Events of one ring before the next ring's turn; 0 counts as 1.
  std::uint64_t per_ring = 64;
  // Checked before each turn, and after every 64 events. If it has passed already, nothing is
  // delivered.
  Clock::time_point deadline = Clock::time_point::max();

  // Whether the deadline has passed; the clock is not asked if there is none.
  template <class Now>
  bool is_late(Now now) const {
    return deadline != Clock::time_point::max() && now() >= deadline;
  }
};

// Why a round ended.
enum class DrainEnd : std::uint8_t {
  Drained,   // all that was there, of a merge all that may be released, was delivered
  Limit,     // the limit of events was reached
  Deadline,  // the deadline has passed
  Stopped,   // the callback said so
  Nested,    // a round was under way: nothing was delivered
  // Also if the key is EventTime and the set is not timed, or the other way round: nothing was
  // delivered.
  WrongKey,
};

// Selects the events that a flush delivers. Any other number is taken as Visible.
enum class Flush : std::uint8_t {
  Visible,   // what is in the rings
  Complete,  // and what programs that are under way will output
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_RING_SET_OPTIONS_H_
