// Payloads above 65516 bytes, whose header.size the kernel truncates to 16 bits (K6 to K10).

#include <linux/perf_event.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>

#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"

namespace perfring::live {
namespace {

class OversizeTest : public LiveTest {
 protected:
  static constexpr std::size_t kRoomy = 524288;

  static std::size_t pages(std::size_t size) {
    return std::max<std::size_t>(1, size / os::page_size());
  }

  void emit_good(std::size_t size, unsigned seed) {
    fill_payload(size, seed);
    ASSERT_EQ(emit(size), 0);
  }
};

// The figures of K6. Records of size 0 are below.
struct Truncated {
  std::size_t payload;
  std::size_t size;
  std::uint32_t raw;
};
constexpr Truncated kTruncated[] = {
    {65525, 8, 65532},  {65532, 8, 65532},       {65533, 16, 65540},
    {65540, 16, 65540}, {131052, 65528, 131052}, {200000, 3408, 200004},
};

// K4, K6, K8
TEST_F(OversizeTest, MalformedOversizeRecordHasHeaderSize) {
  for (const Truncated& record : kTruncated) {
    SCOPED_TRACE(record.payload);
    auto buffer = open(pages(kRoomy));
    fill_payload(record.payload);
    ASSERT_EQ(emit(record.payload), 0);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 1u);
    ASSERT_TRUE(delivered[0].is_malformed(Defect::BadSample)) << testing::PrintToString(delivered);
    ASSERT_EQ(delivered[0].bytes.size(), record.size);

    perf_event_header header;
    std::memcpy(&header, delivered[0].bytes.data(), sizeof(header));
    EXPECT_EQ(header.type, static_cast<std::uint32_t>(PERF_RECORD_SAMPLE));
    EXPECT_EQ(header.size, record.size);
    if (record.size < 16) continue;  // K8: nothing follows the header
    std::uint32_t raw = 0;
    std::memcpy(&raw, delivered[0].bytes.data() + sizeof(header), sizeof(raw));
    EXPECT_EQ(raw, record.raw);
  }
}

// K9: records stay walkable, however many are bad and wherever they lie.
TEST_F(OversizeTest, TheRecordsAroundAnOversizeOneAreDelivered) {
  for (const Truncated& record : kTruncated) {
    SCOPED_TRACE(record.payload);
    auto buffer = open(pages(kRoomy));
    for (int lap = 0; lap < 20; ++lap) {
      emit_good(100, 1);
      fill_payload(record.payload, 7);
      ASSERT_EQ(emit(record.payload), 0);
      emit_good(13, 2);
      emit_good(4096, 3);
      const auto delivered = drain(buffer);
      ASSERT_EQ(delivered.size(), 4u) << testing::PrintToString(delivered);
      EXPECT_TRUE(delivered[1].is_malformed(Defect::BadSample))
          << testing::PrintToString(delivered);
      EXPECT_EQ(delivered[1].bytes.size(), record.size);
      EXPECT_TRUE(is_payload(delivered[3], 4096));
      fill_payload(100, 1);
      EXPECT_TRUE(is_payload(delivered[0], 100));
      fill_payload(13, 2);
      EXPECT_TRUE(is_payload(delivered[2], 13));
      EXPECT_FALSE(buffer.readable());
    }
  }
}

// K7
TEST_F(OversizeTest, ARecordOfSizeZeroIsInvisible) {
  for (const std::size_t payload : std::initializer_list<std::size_t>{65517, 65524}) {
    auto buffer = open(pages(kRoomy));
    fill_payload(payload, 7);
    ASSERT_EQ(emit(payload), 0);
    EXPECT_FALSE(buffer.readable());
    EXPECT_TRUE(drain(buffer).empty());
    emit_good(100, 1);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 1u);  // not even a Lost
    EXPECT_TRUE(is_payload(delivered[0], 100));
  }
}

// K7
TEST_F(OversizeTest, ZeroSizeRecordAfterLossesLeavesOnlyLost) {
  auto buffer = open(pages(kRoomy));
  while (emit(65516) == 0) {
  }
  EXPECT_EQ(emit(65516), -ENOSPC);
  drain(buffer);
  ASSERT_EQ(emit(65520), 0);
  auto delivered = drain(buffer);
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_TRUE(delivered[0].is_lost(2)) << testing::PrintToString(delivered);
  emit_good(100, 1);
  delivered = drain(buffer);
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_TRUE(is_payload(delivered[0], 100));
}

// K10: 65536 bytes of payload go once around the ring, over four unread records and their own
// header. So the payload decides what a drain reads there.
TEST_F(OversizeTest, ADrainOfOverwrittenRecordsEnds) {
  const std::size_t page_count = pages(65536);
  if (page_count * os::page_size() != 65536) GTEST_SKIP() << "no ring of 64 KiB on this machine";
  for (const unsigned fill : {0x00u, 0xffu, 0x01u, 0xa5u}) {
    SCOPED_TRACE(fill);
    auto buffer = open(page_count);
    emit_good(4, 0);
    const MappedRing ring{drain(buffer).at(0), page_count};
    for (int i = 0; i < 4; ++i) emit_good(5, 0);
    std::ranges::fill(emitter().payload(), static_cast<std::byte>(fill));
    ASSERT_EQ(emit(65540), 0);
    EXPECT_EQ(ring.page.data_head - ring.page.data_tail, 4u * 24 + 16);

    const auto delivered = drain(buffer);
    // None of these bytes makes a plausible header.size.
    ASSERT_EQ(delivered.size(), 1u);
    EXPECT_TRUE(delivered[0].is_malformed(Defect::BadSize)) << testing::PrintToString(delivered);
    EXPECT_EQ(delivered[0].bytes.size(), 4u * 24 + 16);
    EXPECT_EQ(ring.page.data_head, ring.page.data_tail);

    emit_good(100, 1);
    const auto after = drain(buffer);
    ASSERT_EQ(after.size(), 1u);
    EXPECT_TRUE(is_payload(after[0], 100));
  }
}

// K10, in general: after any sequence of such payloads a drain ends, stays in the ring and consumes
// everything, and the next good record is delivered.
TEST_F(OversizeTest, ADrainOfAnyMixtureOfSizesEndsInTheRing) {
  const std::size_t page_count = pages(65536);
  auto buffer = open(page_count);
  emit_good(4, 0);
  const MappedRing ring{drain(buffer).at(0), page_count};
  std::mt19937 random{20240229};  // NOLINT: the same every time
  std::size_t malformed = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    for (auto i = random() % 8; i-- > 0;) {
      const std::size_t limit = random() % 2 == 0 ? 300 : Emitter::kPayloadMax;
      fill_payload(64, static_cast<unsigned>(random()));
      const int rc = emit(random() % limit);
      ASSERT_TRUE(rc == 0 || rc == -ENOSPC) << rc;
    }
    const auto delivered = drain(buffer);
    ASSERT_LE(delivered.size(), ring.data.size() / 8);
    for (const DeliveredEvent& event : delivered) {
      ASSERT_TRUE(ring.contains(event.head) && ring.contains(event.tail));
      malformed += event.kind == DeliveredEvent::Kind::Malformed;
    }
    ASSERT_EQ(ring.page.data_head, ring.page.data_tail);
    ASSERT_NO_FATAL_FAILURE(emit_good(100, 1));
    const auto after = drain(buffer);  // a Lost may precede it
    ASSERT_FALSE(after.empty());
    ASSERT_TRUE(is_payload(after.back(), 100));
  }
  EXPECT_GT(malformed, 0u);
}

}  // namespace
}  // namespace perfring::live
