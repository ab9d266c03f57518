#ifndef PERFRING_RINGS_LOOK_CLOCK_H_
#define PERFRING_RINGS_LOOK_CLOCK_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Looks: remembers the clocks before and after earlier reads of a ring's data_head, and the
// position that the ring ended at then. This tells a merge between which clocks the kernel
// published a record (M7 and M8, in merge.h). Internal to Merge and TimeMerge.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

class Looks {
 public:
  // A clock that was not read.
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  // Starts afresh at `tail`.
  void forget(SharedPosition tail) noexcept {
    mark_ = tail;
    after_ = mark_clock_ = looked_at_ = 0;
    by_ = mark_seen_ = kUnknown;
  }

  // Starts a look, a read of data_head; `clock` was read before it. `next` is the position of the
  // next record to read, `end` is where the previous look ended, and `seen` is the clock read after
  // the previous look. The caller calls seek() next.
  void look(SharedPosition next, SharedPosition end, std::uint64_t seen,
            std::uint64_t clock) noexcept {
    if (!is_ahead(mark_, next, end)) {
      after_ = mark_clock_;
      mark_ = end;
      mark_clock_ = looked_at_;
      mark_seen_ = seen;
    }
    looked_at_ = clock;
  }

  // Moves to `next`, in a look that ends at `end`. Returns how many of the `length` bytes from
  // there on have the same after() and by().
  std::size_t seek(SharedPosition next, SharedPosition end, std::size_t length) noexcept {
    by_ = by(next, end);
    if (is_ahead(mark_, next, end)) {
      return smaller(length, static_cast<std::size_t>(mark_ - next));
    }
    after_ = mark_clock_;
    return length;
  }

  // A clock that was read before the next record was published.
  std::uint64_t after() const noexcept { return after_; }
  // A clock that was read after the next record was published; kUnknown stands for the clock read
  // after the current look.
  std::uint64_t by() const noexcept { return by_; }
  // The same for a record at `place`, in a look that ends at `end`.
  std::uint64_t by(SharedPosition place, SharedPosition end) const noexcept {
    return is_ahead(mark_, place, end) ? mark_seen_ : kUnknown;
  }

 private:
  std::uint64_t after_;
  std::uint64_t by_;
  // The end of an earlier look, and the clocks read before and after that look.
  SharedPosition mark_;
  std::uint64_t mark_clock_;
  std::uint64_t mark_seen_;
  std::uint64_t looked_at_;  // the clock read before the last look
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_LOOK_CLOCK_H_
