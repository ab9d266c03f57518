#ifndef PERFRING_RINGS_LOOKS_H_
#define PERFRING_RINGS_LOOKS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Remembers when a ring was looked at, and how much it held: so that a merge knows between which
// clocks the kernel published a record (M7 and M8, in merge.h). Internal to Merge and to TimeMerge.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

class Looks {
 public:
  // A clock that nobody has read.
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  // Begins anew at `tail`.
  void forget(SharedPosition tail) noexcept {
    mark_ = tail;
    after_ = mark_clock_ = looked_at_ = 0;
    by_ = mark_seen_ = kUnknown;
  }

  // `next` is read next, `end` is where the look before this one ended, and `seen` is the clock
  // after that one; `clock` was read before this one. seek() is to follow.
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

  // Goes on to `next`, in a look that ends at `end`. Returns for how much of `length` after() and
  // by() hold from there on.
  std::size_t seek(SharedPosition next, SharedPosition end, std::size_t length) noexcept {
    by_ = by(next, end);
    if (is_ahead(mark_, next, end)) {
      return smaller(length, static_cast<std::size_t>(mark_ - next));
    }
    after_ = mark_clock_;
    return length;
  }

  // The clock after which the record that is read next was published.
  std::uint64_t after() const noexcept { return after_; }
  // The clock before which it was; kUnknown if that is the clock of this look.
  std::uint64_t by() const noexcept { return by_; }
  // The same of a record at `place`, in a look that ends at `end`.
  std::uint64_t by(SharedPosition place, SharedPosition end) const noexcept {
    return is_ahead(mark_, place, end) ? mark_seen_ : kUnknown;
  }

 private:
  std::uint64_t after_;
  std::uint64_t by_;
  // The end of an earlier look, and the clocks before and after it.
  SharedPosition mark_;
  std::uint64_t mark_clock_;
  std::uint64_t mark_seen_;
  std::uint64_t looked_at_;  // the clock before the last look
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_LOOKS_H_
