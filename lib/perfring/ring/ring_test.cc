#include "perfring/ring/ring.h"

#include <gtest/gtest.h>

namespace perfring {
namespace {

TEST(Ring, Empty) {
  perf_event_mmap_page page{};
  alignas(8) std::byte data[64]{};
  auto ring = Ring<>::over(page, data);
  ASSERT_TRUE(ring.has_value());
  EXPECT_FALSE(ring->readable());
}

}  // namespace
}  // namespace perfring
