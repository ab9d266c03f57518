#include "perfring/rings/key_at.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace perfring {
namespace {

constexpr std::size_t kLast = std::numeric_limits<std::size_t>::max();

std::array<std::byte, 16> payload() {
  std::array<std::byte, 16> bytes;
  for (std::size_t i = 0; i != bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0x11 * i);
  return bytes;
}

// The two pieces in memory of their own, so that a sanitizer sees what is read beside them.
std::uint64_t key_of(Bytes payload, std::size_t in_head, std::size_t offset) {
  const std::vector<std::byte> head(payload.begin(), payload.begin() + std::ptrdiff_t(in_head));
  const std::vector<std::byte> tail(payload.begin() + std::ptrdiff_t(in_head), payload.end());
  return KeyAt{offset}(Sample{head, tail});
}

TEST(KeyAtTest, TheKeyIsTheBytesAtItsOffsetWhereverThePayloadStraddles) {
  const auto bytes = payload();
  for (std::size_t offset = 0; offset + sizeof(std::uint64_t) <= bytes.size(); ++offset) {
    std::uint64_t key;
    std::memcpy(&key, bytes.data() + offset, sizeof(key));
    for (std::size_t in_head = 0; in_head <= bytes.size(); ++in_head) {
      EXPECT_EQ(key_of(bytes, in_head, offset), key)
          << in_head << " bytes, then the tail; key at " << offset;
    }
  }
}

TEST(KeyAtTest, APayloadThatEndsBeforeTheKeyDoesHasTheKey0) {
  const auto bytes = payload();
  for (std::size_t in_head = 0; in_head <= bytes.size(); ++in_head) {
    for (std::size_t offset = 9; offset <= 20; ++offset) {
      EXPECT_EQ(key_of(bytes, in_head, offset), 0U) << in_head << ", " << offset;
    }
    for (std::size_t less = 0; less <= 20; ++less) {
      EXPECT_EQ(key_of(bytes, in_head, kLast - less), 0U) << in_head << ", " << less;
    }
  }
  EXPECT_EQ(KeyAt{}(Sample{}), 0U);
  EXPECT_EQ(KeyAt{kLast}(Sample{}), 0U);
}

}  // namespace
}  // namespace perfring
