#ifndef HARNESS_LIVE_REQUIRE_LIVE_KERNEL_H_
#define HARNESS_LIVE_REQUIRE_LIVE_KERNEL_H_

#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/live/live_kernel.h"

namespace perfring::live {

// Call it in SetUp(). Returns whether there is a live kernel. If not, skips the test with the
// reason or, if the environment has PERFRING_REQUIRE_LIVE, fails it.
inline bool require_live_kernel() {
  const auto why = why_no_live_kernel();
  if (!why) return true;
  [&] {
    if (std::getenv("PERFRING_REQUIRE_LIVE") != nullptr) FAIL() << *why;
    GTEST_SKIP() << *why;
  }();
  return false;
}

}  // namespace perfring::live

#endif  // HARNESS_LIVE_REQUIRE_LIVE_KERNEL_H_
