#ifndef PERFRING_TESTING_MISSING_EDGES_H_
#define PERFRING_TESTING_MISSING_EDGES_H_

// Memory policies that lack an edge of ring/memory.h: mixins over any Memory. A check that reports
// nothing must be able to report these.

#include "perfring/ring/memory.h"

namespace perfring::testing {

// Edge C is missing.
template <class M>
struct NoAcquireFence : M {
  static void fence_after_read_of(const SharedPosition&) noexcept {}
};

// Edge D is missing.
template <class M>
struct NoFullFence : M {
  static void fence_before_write_of(const SharedPosition&) noexcept {}
};

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_MISSING_EDGES_H_
