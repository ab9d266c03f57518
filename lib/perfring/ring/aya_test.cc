// aya's own unit tests of its perf buffer (aya/src/maps/perf/perf_buffer.rs, mod tests), by name,
// on one page of ring as there. Bytes are stated in the byte order of the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>

#include "perfring/ring/ring.h"
#include "perfring/ring/testing/fake_ring.h"
#include "perfring/ring/testing/ring_over.h"
#include "perfring/ring/testing/seen.h"

namespace perfring {
namespace {

using testing::drain;
using ::testing::ElementsAre;
using testing::FakeRing;
using ::testing::IsEmpty;
using testing::ring_over;
using testing::Seen;

constexpr std::size_t kPage = 4096;
constexpr bool kLittle = std::endian::native == std::endian::little;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// 0xCAFEBABE and 0xBADCAFE as u32, as memory holds them.
std::vector<std::byte> cafebabe() {
  return kLittle ? bytes_of({0xbe, 0xba, 0xfe, 0xca}) : bytes_of({0xca, 0xfe, 0xba, 0xbe});
}
std::vector<std::byte> badcafe() {
  return kLittle ? bytes_of({0xfe, 0xca, 0xad, 0x0b}) : bytes_of({0x0b, 0xad, 0xca, 0xfe});
}

TEST(AyaRingTest, NoEvents) {
  FakeRing fake{kPage};
  Ring<> ring = ring_over(fake);
  EXPECT_FALSE(ring.readable());
  EXPECT_THAT(drain(ring), IsEmpty());
}

TEST(AyaRingTest, ReadFirstLost) {
  FakeRing fake{kPage};
  fake.put(0,
           (kLittle ? bytes_of({2, 0, 0, 0, 0,    0,    24,   0,    1, 0, 0, 0,
                                0, 0, 0, 0, 0xbe, 0xba, 0xfe, 0xca, 0, 0, 0, 0})
                    : bytes_of({0, 0, 0, 2, 0, 0, 0, 24, 0,    0,    0,    0,
                                0, 0, 0, 1, 0, 0, 0, 0,  0xca, 0xfe, 0xba, 0xbe}))
               .data(),
           24);
  fake.advance(24);
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(Seen::lost(0xCAFEBABE)));
}

TEST(AyaRingTest, ReadFirstSample) {
  FakeRing fake{kPage};
  fake.put(0,
           (kLittle ? bytes_of({9, 0, 0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 0xbe, 0xba, 0xfe, 0xca})
                    : bytes_of({0, 0, 0, 9, 0, 0, 0, 16, 0, 0, 0, 4, 0xca, 0xfe, 0xba, 0xbe}))
               .data(),
           16);
  fake.advance(16);
  Ring<> ring = ring_over(fake);
  EXPECT_TRUE(ring.readable());
  EXPECT_THAT(drain(ring), ElementsAre(Seen::sample(cafebabe())));
  EXPECT_FALSE(ring.readable());
}

TEST(AyaRingTest, ReadManyWithManyReads) {
  FakeRing fake{kPage};
  fake.sample(cafebabe());
  fake.sample(badcafe());
  Ring<> ring = ring_over(fake);
  EXPECT_THAT(drain(ring, 0), ElementsAre(Seen::sample(cafebabe())));
  EXPECT_THAT(drain(ring, 0), ElementsAre(Seen::sample(badcafe())));
  EXPECT_THAT(drain(ring), IsEmpty());
}

TEST(AyaRingTest, ReadManyWithOneRead) {
  FakeRing fake{kPage};
  fake.sample(cafebabe());
  fake.sample(badcafe());
  EXPECT_THAT(drain(ring_over(fake)),
              ElementsAre(Seen::sample(cafebabe()), Seen::sample(badcafe())));
}

TEST(AyaRingTest, ReadLastSample) {
  FakeRing fake{kPage, kPage - 16};
  fake.sample(cafebabe());
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(Seen::sample(cafebabe())));
}

// The header ends where the ring does; the raw size starts it.
TEST(AyaRingTest, ReadWrappingSampleSize) {
  FakeRing fake{kPage, kPage - 8};
  fake.sample(cafebabe());
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(Seen::sample(cafebabe())));
  const auto raw_size = kLittle ? bytes_of({4, 0, 0, 0}) : bytes_of({0, 0, 0, 4});
  EXPECT_EQ(std::memcmp(fake.data().data(), raw_size.data(), 4), 0);
}

// The payload's first four bytes end the ring; the rest starts it.
TEST(AyaRingTest, ReadWrappingValue) {
  FakeRing fake{kPage, kPage - 16};
  const auto value = kLittle
                         ? bytes_of({0xee, 0xff, 0xc0, 0xbe, 0xba, 0xfe, 0xca, 0xba, 0, 1, 2, 3})
                         : bytes_of({0xba, 0xca, 0xfe, 0xba, 0xbe, 0xc0, 0xff, 0xee, 3, 2, 1, 0});
  fake.sample(value);
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(Seen::sample(value, 4)));
}

}  // namespace
}  // namespace perfring
