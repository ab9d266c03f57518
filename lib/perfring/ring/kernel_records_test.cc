// Records as kernels were seen to write them, byte for byte, in both byte orders.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <initializer_list>
#include <vector>

#include "perfring/ring/ring.h"
#include "perfring/ring/testing/fake_ring.h"
#include "perfring/ring/testing/seen.h"

namespace perfring {
namespace {

using testing::drain;
using ::testing::ElementsAre;
using testing::FakeRing;
using testing::Seen;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// A ring that holds these bytes, at `start`.
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
  std::vector<Seen> drained() { return drain(*Ring<>::over(fake_.page(), fake_.data())); }

 private:
  FakeRing fake_;
};

// bpf_perf_event_output() of 1 2 3 4 5: seven bytes of padding, which keep what was there before.
TEST(KernelRecordsTest, APayloadOf5BytesComesWithItsPadding) {
  Recorded ring{{9, 0, 0, 0, 1, 0,    0x18, 0,    0x0c, 0,    0,    0,
                 1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee},
                {0, 0, 0, 9, 0, 1,    0,    0x18, 0,    0,    0,    0x0c,
                 1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee}};
  EXPECT_THAT(
      ring.drained(),
      ElementsAre(Seen::sample(bytes({1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee}))));
}

// An empty payload leaves padding alone.
TEST(KernelRecordsTest, AnEmptyPayloadIsFourBytesOfPadding) {
  Recorded ring{{9, 0, 0, 0, 2, 0, 16, 0, 4, 0, 0, 0, 0xee, 0xee, 0xee, 0xee},
                {0, 0, 0, 9, 0, 2, 0, 16, 0, 0, 0, 4, 0xee, 0xee, 0xee, 0xee}};
  EXPECT_THAT(ring.drained(), ElementsAre(Seen::sample(bytes({0xee, 0xee, 0xee, 0xee}))));
}

// LOST comes in the same reservation as the next record that fits.
TEST(KernelRecordsTest, ALostAndTheSampleThatBroughtIt) {
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{65536 - 24}}) {
    Recorded ring{{2, 0, 0, 0, 0, 0, 24, 0, 77, 0, 0,  0, 0, 0, 0, 0, 0x2a, 1, 0, 0,
                   0, 0, 0, 0, 9, 0, 0,  0, 1,  0, 16, 0, 4, 0, 0, 0, 1,    2, 3, 4},
                  {0, 0, 0, 2,    0, 0, 0, 24, 0, 0, 0, 0,  0, 0, 0, 77, 0, 0, 0, 0,
                   0, 0, 1, 0x2a, 0, 0, 0, 9,  0, 1, 0, 16, 0, 0, 0, 4,  1, 2, 3, 4},
                  start};
    EXPECT_THAT(ring.drained(), ElementsAre(Seen::lost(0x12a), Seen::sample(bytes({1, 2, 3, 4}))));
  }
}

// With sample_id_all, and TIME, CPU and IDENTIFIER selected, a LOST has 48 bytes.
TEST(KernelRecordsTest, ALostMayCarrySampleIdFields) {
  FakeRing fake{65536, 65536 - 40};
  fake.lost(6, 48);
  fake.sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(drain(*Ring<>::over(fake.page(), fake.data())),
              ElementsAre(Seen::lost(6), Seen::sample(bytes({1, 2, 3, 4}))));
}

// A payload of 65540 bytes: header.size and the head's advance wrap to 16, raw does not, and the
// next record is written into the payload.
TEST(KernelRecordsTest, AnOversizePayloadIsABadSampleAndTheNextRecordIsFound) {
  Recorded ring{{9, 0, 0, 0, 1, 0, 16, 0, 4, 0, 1, 0, 0xaa, 0xaa, 0xaa, 0xaa},
                {0, 0, 0, 9, 0, 1, 0, 16, 0, 1, 0, 4, 0xaa, 0xaa, 0xaa, 0xaa}};
  const std::vector<std::byte> record = ring.fake().bytes(0, 16);
  ring.fake().sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(ring.drained(), ElementsAre(Seen::malformed(Defect::BadSample, record),
                                          Seen::sample(bytes({1, 2, 3, 4}))));
}

// One of 65525 to 65532 bytes wraps to 8: the next record's type stands where raw's size would.
TEST(KernelRecordsTest, AnOversizePayloadMayLeaveAHeaderAlone) {
  Recorded ring{{9, 0, 0, 0, 1, 0, 8, 0}, {0, 0, 0, 9, 0, 1, 0, 8}};
  const std::vector<std::byte> record = ring.fake().bytes(0, 8);
  ring.fake().sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(ring.drained(), ElementsAre(Seen::malformed(Defect::BadSample, record),
                                          Seen::sample(bytes({1, 2, 3, 4}))));
}

// The largest payload that arrives whole: header.size 65528.
TEST(KernelRecordsTest, APayloadOf65516BytesArrivesWhole) {
  FakeRing fake{131072, 131072 - 65536};
  const std::vector<std::byte> payload = testing::payload(65516);
  fake.sample(payload);
  fake.sample(bytes({1, 2, 3, 4}));
  EXPECT_THAT(drain(*Ring<>::over(fake.page(), fake.data())),
              ElementsAre(Seen::sample(payload), Seen::sample(bytes({1, 2, 3, 4}))));
}

// N - 8 bytes are the most that a kernel ever uses of a ring: 255 records of 16 in a page.
TEST(KernelRecordsTest, AFullPageIs255RecordsOf16Bytes) {
  for (const std::uint64_t start : {0U, 8U, 16U, 2048U}) {
    FakeRing fake{4096, start};
    for (unsigned i = 0; i < 255; ++i) fake.sample(testing::payload(4, i));
    const std::vector<Seen> seen = drain(*Ring<>::over(fake.page(), fake.data()));
    ASSERT_EQ(seen.size(), 255U);
    for (unsigned i = 0; i < 255; ++i) EXPECT_EQ(seen[i].bytes, testing::payload(4, i)) << i;
  }
}

}  // namespace
}  // namespace perfring
