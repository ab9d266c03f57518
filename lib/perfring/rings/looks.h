#ifndef PERFRING_RINGS_LOOKS_H_
#define PERFRING_RINGS_LOOKS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Remembers when a ring was looked at, and how much it held: so that Merge knows after which clock
// the kernel published a record (M7, in merge.h). Internal to Merge.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

class Looks {
 public:
  // Begins anew at `tail`.
  void forget(SharedPosition tail) noexcept {
    mark_ = tail;
    after_ = mark_clock_ = looked_at_ = 0;
  }

  // `next` is read next, `end` is where the look before this one ended, `clock` was read before
  // this one.
  void look(SharedPosition next, SharedPosition end, std::uint64_t clock) noexcept {
    if (!is_ahead(mark_, next, end)) {
      after_ = mark_clock_;
      mark_ = end;
      mark_clock_ = looked_at_;
    }
    looked_at_ = clock;
  }

  // Goes on to `next`, in a look that ends at `end`. Returns for how much of `length` after() holds
  // from there on.
  std::size_t seek(SharedPosition next, SharedPosition end, std::size_t length) noexcept {
    if (is_ahead(mark_, next, end)) {
      return smaller(length, static_cast<std::size_t>(mark_ - next));
    }
    after_ = mark_clock_;
    return length;
  }

  // The clock after which the record that is read next was published.
  std::uint64_t after() const noexcept { return after_; }

 private:
  std::uint64_t after_;
  // The end of an earlier look, and the clock before it.
  SharedPosition mark_;
  std::uint64_t mark_clock_;
  std::uint64_t looked_at_;  // the clock before the last look
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_LOOKS_H_
