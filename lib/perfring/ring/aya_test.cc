// aya's own unit tests of its perf buffer (aya/src/maps/perf/perf_buffer.rs, mod tests), under
// their names and, like there, on a ring of one page. Bytes are in the byte order of the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::drain;
using ::testing::ElementsAre;
using testing::FakeRing;
using ::testing::IsEmpty;
using testing::ring_over;

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
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(CopiedEvent::lost(0xCAFEBABE)));
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
  EXPECT_THAT(drain(ring), ElementsAre(CopiedEvent::sample(cafebabe())));
  EXPECT_FALSE(ring.readable());
}

TEST(AyaRingTest, ReadManyWithManyReads) {
  FakeRing fake{kPage};
  fake.sample(cafebabe());
  fake.sample(badcafe());
  Ring<> ring = ring_over(fake);
  EXPECT_THAT(drain(ring, 0), ElementsAre(CopiedEvent::sample(cafebabe())));
  EXPECT_THAT(drain(ring, 0), ElementsAre(CopiedEvent::sample(badcafe())));
  EXPECT_THAT(drain(ring), IsEmpty());
}

TEST(AyaRingTest, ReadManyWithOneRead) {
  FakeRing fake{kPage};
  fake.sample(cafebabe());
  fake.sample(badcafe());
  EXPECT_THAT(drain(ring_over(fake)),
              ElementsAre(CopiedEvent::sample(cafebabe()), CopiedEvent::sample(badcafe())));
}

TEST(AyaRingTest, ReadLastSample) {
  FakeRing fake{kPage, kPage - 16};
  fake.sample(cafebabe());
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(CopiedEvent::sample(cafebabe())));
}

// The header ends at the ring's end; the raw size is at the ring's beginning.
TEST(AyaRingTest, ReadWrappingSampleSize) {
  FakeRing fake{kPage, kPage - 8};
  fake.sample(cafebabe());
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(CopiedEvent::sample(cafebabe())));
  const auto raw_size = kLittle ? bytes_of({4, 0, 0, 0}) : bytes_of({0, 0, 0, 4});
  EXPECT_EQ(std::memcmp(fake.data().data(), raw_size.data(), 4), 0);
}

// The payload's first four bytes are at the ring's end; the rest is at its beginning.
TEST(AyaRingTest, ReadWrappingValue) {
  FakeRing fake{kPage, kPage - 16};
  const auto value = kLittle
                         ? bytes_of({0xee, 0xff, 0xc0, 0xbe, 0xba, 0xfe, 0xca, 0xba, 0, 1, 2, 3})
                         : bytes_of({0xba, 0xca, 0xfe, 0xba, 0xbe, 0xc0, 0xff, 0xee, 3, 2, 1, 0});
  fake.sample(value);
  EXPECT_THAT(drain(ring_over(fake)), ElementsAre(CopiedEvent::sample(value, 4)));
}

// Records as kernels were observed to write them, byte for byte, in both byte orders.

using testing::CopiedEvent;
using testing::drain;
using ::testing::ElementsAre;
using testing::FakeRing;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// A ring that holds these bytes, at position `start`.
class Recorded {
 public:
  Recorded(std::initializer_list<int> little, std::initializer_list<int> big,
           std::uint64_t start = 0)
      : fake_{65536, start} {
    const auto record = bytes(std::endian::native == std::endian::little ? little : big);
    fake_.put(start, record.data(), record.size());
    fake_.advance(record.size());
  }
  FakeRing& fake() { return fake_; }
  std::vector<CopiedEvent> drained() { return drain(*Ring<>::over(fake_.page(), fake_.data())); }

 private:
  FakeRing fake_;
};

// bpf_perf_event_output() of 1 2 3 4 5: seven bytes of padding, which keep their old content.
TEST(KernelRecordsTest, APayloadOf5BytesComesWithItsPadding) {
  Recorded ring{{9, 0, 0, 0, 1, 0,    0x18, 0,    0x0c, 0,    0,    0,
                 1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee},
                {0, 0, 0, 9, 0, 1,    0,    0x18, 0,    0,    0,    0x0c,
                 1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee}};
  EXPECT_THAT(ring.drained(), ElementsAre(CopiedEvent::sample(bytes(
                                  {1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee}))));
}

// A sample with an empty payload consists of padding.
TEST(KernelRecordsTest, AnEmptyPayloadIsFourBytesOfPadding) {
  Recorded ring{{9, 0, 0, 0, 2, 0, 16, 0, 4, 0, 0, 0, 0xee, 0xee, 0xee, 0xee},
                {0, 0, 0, 9, 0, 2, 0, 16, 0, 0, 0, 4, 0xee, 0xee, 0xee, 0xee}};
  EXPECT_THAT(ring.drained(), ElementsAre(CopiedEvent::sample(bytes({0xee, 0xee, 0xee, 0xee}))));
}

// The kernel writes a LOST in the same reservation as the next record that fits.
TEST(KernelRecordsTest, ALostIsDeliveredBeforeTheSampleThatBroughtIt) {
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{65536 - 24}}) {
    Recorded ring{{2, 0, 0, 0, 0, 0, 24, 0, 77, 0, 0,  0, 0, 0, 0, 0, 0x2a, 1, 0, 0,
                   0, 0, 0, 0, 9, 0, 0,  0, 1,  0, 16, 0, 4, 0, 0, 0, 1,    2, 3, 4},
                  {0, 0, 0, 2,    0, 0, 0, 24, 0, 0, 0, 0,  0, 0, 0, 77, 0, 0, 0, 0,
                   0, 0, 1, 0x2a, 0, 0, 0, 9,  0, 1, 0, 16, 0, 0, 0, 4,  1, 2, 3, 4},
                  start};
    EXPECT_THAT(ring.drained(),
                ElementsAre(CopiedEvent::lost(0x12a), CopiedEvent::sample(bytes({1, 2, 3, 4}))));
  }
}

// With sample_id_all, and TIME, CPU and IDENTIFIER selected, a LOST has 48 bytes.
TEST(KernelRecordsTest, ALostMayCarrySampleIdFields) {
  FakeRing fake{65536, 65536 - 40};
  fake.lost(6, 48);
  fake.sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(drain(*Ring<>::over(fake.page(), fake.data())),
              ElementsAre(CopiedEvent::lost(6), CopiedEvent::sample(bytes({1, 2, 3, 4}))));
}

// A payload of 65540 bytes: header.size and the advance of data_head wrap to 16, raw's size does
// not, and the kernel writes the next record into the payload.
TEST(KernelRecordsTest, DrainContinuesPastOversizePayload) {
  Recorded ring{{9, 0, 0, 0, 1, 0, 16, 0, 4, 0, 1, 0, 0xaa, 0xaa, 0xaa, 0xaa},
                {0, 0, 0, 9, 0, 1, 0, 16, 0, 1, 0, 4, 0xaa, 0xaa, 0xaa, 0xaa}};
  const std::vector<std::byte> record = ring.fake().bytes(0, 16);
  ring.fake().sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(ring.drained(), ElementsAre(CopiedEvent::malformed(Defect::BadSample, record),
                                          CopiedEvent::sample(bytes({1, 2, 3, 4}))));
}

// header.size of a payload of 65525 to 65532 bytes wraps to 8: the next record's type is where the
// raw size would be.
TEST(KernelRecordsTest, AnOversizePayloadMayLeaveAHeaderAlone) {
  Recorded ring{{9, 0, 0, 0, 1, 0, 8, 0}, {0, 0, 0, 9, 0, 1, 0, 8}};
  const std::vector<std::byte> record = ring.fake().bytes(0, 8);
  ring.fake().sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(ring.drained(), ElementsAre(CopiedEvent::malformed(Defect::BadSample, record),
                                          CopiedEvent::sample(bytes({1, 2, 3, 4}))));
}

// A payload of 65540 bytes goes once around a ring of 64 KiB: over four unread records, and over
// its own header. The drain then takes bytes of the payload for a header.
TEST(KernelRecordsTest, HeaderOverwrittenByPayloadEndsDrain) {
  for (const int fill : {0x00, 0xff, 0x01, 0xa5}) {
    FakeRing fake{65536};
    for (unsigned i = 0; i < 4; ++i) fake.sample(testing::payload(12, i));
    fake.advance(16);
    std::ranges::fill(fake.data(), static_cast<std::byte>(fill));
    EXPECT_THAT(drain(*Ring<>::over(fake.page(), fake.data())),
                ElementsAre(CopiedEvent::malformed(Defect::BadSize, fake.bytes(0, 112))))
        << fill;
    EXPECT_EQ(fake.page().data_tail, 112U) << "so that the ring is empty again";
  }
}

// The largest payload that arrives whole: header.size 65528.
TEST(KernelRecordsTest, APayloadOf65516BytesArrivesIntact) {
  FakeRing fake{131072, 131072 - 65536};
  const std::vector<std::byte> payload = testing::payload(65516);
  fake.sample(payload);
  fake.sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(drain(*Ring<>::over(fake.page(), fake.data())),
              ElementsAre(CopiedEvent::sample(payload), CopiedEvent::sample(bytes({1, 2, 3, 4}))));
}

// A kernel uses at most N - 8 bytes of a ring of N: 255 records of 16 bytes in a page.
TEST(KernelRecordsTest, AFullPageIs255RecordsOf16Bytes) {
  for (const std::uint64_t start : {0U, 8U, 16U, 2048U}) {
    FakeRing fake{4096, start};
    for (unsigned i = 0; i < 255; ++i) fake.sample(testing::payload(4, i));
    const std::vector<CopiedEvent> delivered = drain(*Ring<>::over(fake.page(), fake.data()));
    ASSERT_EQ(delivered.size(), 255U);
    for (unsigned i = 0; i < 255; ++i) EXPECT_EQ(delivered[i].bytes, testing::payload(4, i)) << i;
  }
}

}  // namespace
}  // namespace perfring
