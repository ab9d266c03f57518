#ifndef PERFRING_MERGE_LOOK_CLOCK_H_
#define PERFRING_MERGE_LOOK_CLOCK_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// LookClock: remembers the clocks before and after earlier reads of a ring's data_head, and the
// position that the ring ended at then. This tells a merge between which clocks the kernel
// published a record (M7 and M8, in merge.h). Internal to Merge and TimeMerge.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

class LookClock {
 public:
  // A clock that was not read.
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  // Starts afresh at `tail`.
  void reset(SharedPosition tail) noexcept {
    mark_ = tail;
    published_after_ = mark_clock_ = last_clock_ = 0;
    published_by_ = mark_clock_after_ = kUnknown;
  }

  // Starts a look, a read of data_head; `clock` was read before it. `next` is the position of the
  // next record to read, `end` is where the previous look ended, and `clock_after` is the clock
  // read after the previous look. The caller calls seek() next.
  void look(SharedPosition next, SharedPosition end, std::uint64_t clock_after,
            std::uint64_t clock) noexcept {
    if (!is_ahead(mark_, next, end)) {
      published_after_ = mark_clock_;
      mark_ = end;
      mark_clock_ = last_clock_;
      mark_clock_after_ = clock_after;
    }
    last_clock_ = clock;
  }

  // Moves to `next`, in a look that ends at `end`. Returns how many of the `length` bytes from
  // there on have the same published_after() and published_by().
  std::size_t seek(SharedPosition next, SharedPosition end, std::size_t length) noexcept {
    published_by_ = published_by(next, end);
    if (is_ahead(mark_, next, end)) {
      return smaller(length, static_cast<std::size_t>(mark_ - next));
    }
    published_after_ = mark_clock_;
    return length;
  }

  // A clock that was read before the next record was published.
  std::uint64_t published_after() const noexcept { return published_after_; }
  // A clock that was read after the next record was published; kUnknown stands for the clock read
  // after the current look.
  std::uint64_t published_by() const noexcept { return published_by_; }
  // The same for a record at `place`, in a look that ends at `end`.
  std::uint64_t published_by(SharedPosition place, SharedPosition end) const noexcept {
    return is_ahead(mark_, place, end) ? mark_clock_after_ : kUnknown;
  }

 private:
  std::uint64_t published_after_;
  std::uint64_t published_by_;
  // The end of an earlier look, and the clocks read before and after that look.
  SharedPosition mark_;
  std::uint64_t mark_clock_;
  std::uint64_t mark_clock_after_;
  std::uint64_t last_clock_;  // the clock read before the last look
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_LOOK_CLOCK_H_
