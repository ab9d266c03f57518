// S8: rings that break the kernel's contract, on which aya, libbpf, Perfetto and cilium/ebpf hang,
// read outside the ring or deliver garbage. Each has two good records, one bad and two good, in 64
// KiB between pages that nobody may touch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/cursor_splits.h"
#include "perfring/testing/fake_ring.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::cursor_difference;
using testing::drain;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::FakeRing;
using ::testing::IsEmpty;
using testing::payload;

constexpr std::size_t kHostileSize = 65536;
constexpr std::size_t kRecord = 24;  // size of a good one

CopiedEvent good(unsigned seed) {
  return CopiedEvent::sample(payload(12, seed));
}

// The events by Ring, which Cursor must hand out, too.
std::vector<CopiedEvent> delivered(const FakeRing& fake) {
  const std::uint64_t tail = fake.page().data_tail;
  auto events = drain(*Ring<>::over(fake.page(), fake.data()), kHostileSize);
  EXPECT_EQ(static_cast<Position>(fake.page().data_tail),
            static_cast<Position>(fake.page().data_head))
      << "everything is consumed";
  EXPECT_THAT(drain(*Ring<>::over(fake.page(), fake.data())), IsEmpty()) << "and stays so";
  EXPECT_EQ(cursor_difference(fake.page(), fake.data(), tail, events, 0, 6), "");
  return events;
}

// Where the ring starts: so that the bad record is away from the ring's end, at it, or across it.
// `run` good records come first, so that each gear meets the bad one.
struct Place {
  std::uint64_t start;
  unsigned run;
};

class RingHostileRecordTest : public ::testing::TestWithParam<Place> {
 protected:
  // Writes the good records, then `bad`, then two good ones.
  void write(const std::function<void()>& bad) {
    for (unsigned i = 0; i < GetParam().run; ++i) fake_.sample(payload(12, i));
    bad_at_ = fake_.head();
    bad();
    bad_end_ = fake_.head();
    for (unsigned i = 0; i < 2; ++i) fake_.sample(payload(12, 100 + i));
  }

  std::vector<CopiedEvent> before() const {
    std::vector<CopiedEvent> events;
    std::uint64_t at = GetParam().start;
    for (unsigned i = 0; i < GetParam().run; ++i, at += kRecord) {
      events.push_back(split(good(i), at + 12));
    }
    return events;
  }

  // Sets the size of the head slice for an event that starts at `position`.
  static CopiedEvent split(CopiedEvent event, std::uint64_t position) {
    const std::size_t to_end = kHostileSize - position % kHostileSize;
    event.head_size = std::min<std::size_t>(event.bytes.size(), to_end);
    return event;
  }

  // Only the bad record is skipped.
  void expect_one_skipped(Defect defect) {
    std::vector<CopiedEvent> expected = before();
    expected.push_back(
        split(CopiedEvent::malformed(defect, fake_.bytes(bad_at_, bad_end_)), bad_at_));
    expected.push_back(split(good(100), bad_end_ + 12));
    expected.push_back(split(good(101), bad_end_ + kRecord + 12));
    EXPECT_THAT(delivered(fake_), ElementsAreArray(expected));
  }

  // Everything from the bad record on is skipped.
  void expect_rest_skipped() {
    std::vector<CopiedEvent> expected = before();
    expected.push_back(split(
        CopiedEvent::malformed(Defect::BadSize, fake_.bytes(bad_at_, fake_.head())), bad_at_));
    EXPECT_THAT(delivered(fake_), ElementsAreArray(expected));
  }

  FakeRing fake_{kHostileSize, GetParam().start};
  std::uint64_t bad_at_ = 0;
  std::uint64_t bad_end_ = 0;
};

// A body with an acceptable raw size, so that only the header before it is bad.
std::vector<std::byte> raw_of_4(std::size_t length) {
  std::vector<std::byte> body = payload(length);
  const std::uint32_t raw = 4;
  if (length >= sizeof(raw)) std::memcpy(body.data(), &raw, sizeof(raw));
  return body;
}

constexpr std::uint64_t before_end(unsigned run, std::uint64_t more) {
  return kHostileSize - run * kRecord - more;
}

INSTANTIATE_TEST_SUITE_P(Places, RingHostileRecordTest,
                         ::testing::Values(Place{0, 2}, Place{before_end(2, 8), 2},
                                           Place{before_end(2, 16), 2}, Place{before_end(2, 24), 2},
                                           Place{before_end(2, 0), 2}, Place{0, 8}, Place{0, 9},
                                           Place{0, 10}, Place{0, 30}, Place{before_end(30, 8), 30},
                                           Place{before_end(30, 16), 30},
                                           Place{before_end(30, 0), 30},
                                           Place{kHostileSize - 200, 30}));

TEST_P(RingHostileRecordTest, SizesThatAreNoSizeEndTheDrain) {
  for (const std::size_t size : {0U, 1U, 4U, 7U, 9U, 12U, 17U, 18U, 20U, 25U, 28U, 65535U}) {
    fake_.page().data_tail = GetParam().start;
    fake_.advance(GetParam().start - fake_.head());
    write([&] { fake_.raw_record(PERF_RECORD_SAMPLE, size, raw_of_4(16), 24); });
    expect_rest_skipped();
  }
}

TEST_P(RingHostileRecordTest, ASizeBeyondDataHeadEndsTheDrain) {
  for (const std::uint32_t type : {PERF_RECORD_SAMPLE, PERF_RECORD_LOST, PERF_RECORD_COMM}) {
    fake_.page().data_tail = GetParam().start;
    fake_.advance(GetParam().start - fake_.head());
    // Two records of 24 follow its own 24 bytes.
    write([&] { fake_.raw_record(type, 3 * 24 + 8, raw_of_4(16), 24); });
    expect_rest_skipped();
  }
}

TEST_P(RingHostileRecordTest, ARawSizeBeyondTheRecordIsABadSample) {
  for (const std::uint32_t raw :
       {13U, 16U, 100U, 65524U, 200000U, 0x7fff'ffffU, 0xffff'ffffU, 0xffff'fff4U}) {
    fake_.page().data_tail = GetParam().start;
    fake_.advance(GetParam().start - fake_.head());
    write([&] {
      std::vector<std::byte> body = payload(16);
      std::memcpy(body.data(), &raw, sizeof(raw));
      fake_.raw_record(PERF_RECORD_SAMPLE, 24, body, 24);
    });
    expect_one_skipped(Defect::BadSample);
  }
}

// A real kernel emits this for payloads of 65525 to 65532 bytes.
TEST_P(RingHostileRecordTest, ASampleOfSize8IsABadSample) {
  write([&] { fake_.raw_record(PERF_RECORD_SAMPLE, 8, {}, 8); });
  expect_one_skipped(Defect::BadSample);
}

TEST_P(RingHostileRecordTest, ALostTooShortForItsCountIsABadLost) {
  for (const std::size_t size : {8U, 16U}) {
    fake_.page().data_tail = GetParam().start;
    fake_.advance(GetParam().start - fake_.head());
    write([&] { fake_.lost(7, size); });
    expect_one_skipped(Defect::BadLost);
  }
}

TEST_P(RingHostileRecordTest, AnotherTypeIsUnexpected) {
  for (const std::uint32_t type : {0U, 1U, 3U, 8U, 10U, 2U + 0x1'0000U, 9U + 0x1'0000U,
                                   9U + 0x100'0000U, 9U + 0x8000'0000U, 0xffff'ffffU}) {
    for (const std::size_t size : {8U, 16U, 24U, 4096U}) {
      fake_.page().data_tail = GetParam().start;
      fake_.advance(GetParam().start - fake_.head());
      write([&] { fake_.raw_record(type, size, raw_of_4(size - 8), size); });
      expect_one_skipped(Defect::UnexpectedType);
    }
  }
}

// header.size 12: the next header would straddle the ring's end, and loading it would read outside.
TEST(RingHostileTest, RefusesSizeThatSplitsNextHeader) {
  FakeRing fake{kHostileSize, kHostileSize - 16};
  fake.raw_record(PERF_RECORD_SAMPLE, 12, payload(4), 12);
  fake.raw_record(PERF_RECORD_SAMPLE, 16, payload(8), 20);
  EXPECT_THAT(delivered(fake),
              ElementsAre(CopiedEvent::malformed(
                  Defect::BadSize, fake.bytes(kHostileSize - 16, kHostileSize + 16), 16)));
}

TEST(RingHostileTest, NothingIsReadPastShortRecordAtRingEnd) {
  for (const std::uint32_t type : {PERF_RECORD_SAMPLE, PERF_RECORD_LOST}) {
    FakeRing fake{kHostileSize, kHostileSize - 8};
    fake.raw_record(type, 8, {}, 8);
    const Defect defect = type == PERF_RECORD_SAMPLE ? Defect::BadSample : Defect::BadLost;
    EXPECT_THAT(delivered(fake), ElementsAre(CopiedEvent::malformed(
                                     defect, fake.bytes(kHostileSize - 8, kHostileSize))));
  }
}

TEST(RingHostileTest, AFullRingIsAtMostOneEventForEach8Bytes) {
  FakeRing fake{kHostileSize, 4096};
  for (std::size_t i = 0; i < kHostileSize / 8; ++i) fake.raw_record(0, 8, {}, 8);
  EXPECT_EQ(delivered(fake).size(), kHostileSize / 8);
}

TEST(RingHostileTest, ARecordMayFillTheRing) {
  FakeRing fake{4096, 256};
  fake.sample(payload(4084));
  EXPECT_THAT(delivered(fake), ElementsAre(CopiedEvent::sample(payload(4084), 4096 - 256 - 12)));
}

TEST(RingHostileTest, PositionsMoreThanRingApartSkipToHead) {
  for (const std::uint64_t distance : {kHostileSize + 8, 2 * kHostileSize, std::size_t{0x7fff'fff8},
                                       std::size_t{0x8000'0000}, std::size_t{0xfffe'fff8}}) {
    FakeRing fake{kHostileSize, 64};
    fake.put(0, payload(kHostileSize).data(), kHostileSize);
    fake.advance(distance);
    const std::uint64_t head = 64 + distance;
    const std::size_t to_end = kHostileSize - head % kHostileSize;
    EXPECT_THAT(delivered(fake),
                ElementsAre(CopiedEvent::malformed(Defect::BadPositions,
                                                   fake.bytes(head - kHostileSize, head), to_end)));
    EXPECT_EQ(fake.page().data_tail, 64 + distance);
  }
}

// A head that is behind by less is S11's case, unless it is not a multiple of 8.
TEST(RingHostileTest, AHeadMoreThanTheRingBehindTheTailIsImpossible) {
  for (const std::uint64_t distance : {kHostileSize + 8, 2 * kHostileSize, std::size_t{0x7fff'fff8},
                                       std::size_t{4}, kHostileSize - 1}) {
    FakeRing fake{kHostileSize, std::uint64_t{1} << 33};
    fake.page().data_head -= distance;
    EXPECT_TRUE(Ring<>::over(fake.page(), fake.data())->readable());
    const std::vector<CopiedEvent> events = delivered(fake);
    ASSERT_EQ(events.size(), 1U) << distance;
    EXPECT_EQ(events[0].defect, Defect::BadPositions);
    EXPECT_EQ(events[0].bytes.size(), kHostileSize);
  }
}

TEST(RingHostileTest, UnalignedPositionsAreImpossible) {
  for (const std::uint64_t off : {1U, 2U, 4U, 7U}) {
    FakeRing head{kHostileSize, 4096};
    head.sample(payload(12));
    head.advance(off);
    EXPECT_THAT(delivered(head), ElementsAre(CopiedEvent::malformed(
                                     Defect::BadPositions, head.bytes(4096, 4096 + 24 + off))));
    FakeRing tail{kHostileSize, 4096};
    tail.sample(payload(12));
    tail.page().data_tail = 4096 + off;
    EXPECT_THAT(delivered(tail), ElementsAre(CopiedEvent::malformed(
                                     Defect::BadPositions, tail.bytes(4096 + off, 4096 + 24))));
    FakeRing both{kHostileSize, 4096 + off};
    EXPECT_THAT(delivered(both), IsEmpty()) << "nothing is there, wherever it is";
    both.sample(payload(12));
    EXPECT_THAT(delivered(both), ElementsAre(CopiedEvent::malformed(
                                     Defect::BadPositions, both.bytes(4096 + off, 4120 + off))));
  }
}

TEST(RingHostileTest, ABreakOnAMalformedEndsTheDrainAfterIt) {
  FakeRing fake{kHostileSize};
  fake.raw_record(77, 16, {}, 16);
  fake.sample(payload(12));
  Ring<> ring = *Ring<>::over(fake.page(), fake.data());
  EXPECT_THAT(drain(ring, 0),
              ElementsAre(CopiedEvent::malformed(Defect::UnexpectedType, fake.bytes(0, 16))));
  EXPECT_EQ(fake.page().data_tail, 16U);
  EXPECT_THAT(drain(ring), ElementsAre(good(0)));
}

TEST(RingOverTest, RefusesBadSizeOrMisalignedAddress) {
  perf_event_mmap_page page{};
  alignas(8) static std::byte bytes[64];
  for (const std::size_t size : {0U, 1U, 4U, 7U, 9U, 12U, 24U, 63U}) {
    EXPECT_FALSE(Ring<>::over(page, Bytes{bytes, size}).has_value()) << size;
  }
  for (const std::size_t size : {8U, 16U, 32U, 64U}) {
    EXPECT_TRUE(Ring<>::over(page, Bytes{bytes, size}).has_value()) << size;
  }
  EXPECT_FALSE(Ring<>::over(page, Bytes{bytes + 4, 16}).has_value()) << "misaligned";
  // over() accepts 2 GiB and refuses 4 GiB, and touches neither. The page is before the data, as in
  // a mapping: elsewhere, in 32 bits, the data might overlap it.
  alignas(8) static struct {
    perf_event_mmap_page page;
    std::byte data[64];
  } mapping;
  EXPECT_TRUE(Ring<>::over(mapping.page, Bytes{mapping.data, std::size_t{1} << 31}).has_value());
  if constexpr (sizeof(std::size_t) > 4) {
    EXPECT_FALSE(
        Ring<>::over(mapping.page, Bytes{mapping.data, std::size_t{1} << 31 << 1}).has_value());
  }
}

TEST(RingOverTest, DrainCrashesOnReadOnlyPage) {
  FakeRing fake{4096};
  fake.sample(payload(12));
  const auto page = reinterpret_cast<std::uintptr_t>(&fake.page());
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const first = reinterpret_cast<void*>(page / size * size);
  ASSERT_EQ(::mprotect(first, size, PROT_READ), 0);
  Ring<> ring = *Ring<>::over(fake.page(), fake.data());
  EXPECT_TRUE(ring.readable());
  EXPECT_DEATH(static_cast<void>(drain(ring)), "");
  ASSERT_EQ(::mprotect(first, size, PROT_READ | PROT_WRITE), 0);
  EXPECT_THAT(drain(ring), ElementsAre(good(0)));
}

TEST(RingEmptyTest, ADrainDeliversNothing) {
  Ring<> ring = Ring<>::empty();
  EXPECT_FALSE(ring.readable());
  EXPECT_THAT(drain(ring), IsEmpty());
}

}  // namespace
}  // namespace perfring
