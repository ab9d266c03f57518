// S1 to S6, S9 and S11 of ring.h, one test or more for each line. (S7 is PerfBuffer's; S8 has
// ring_hostile_test.cc, S10 ring_once_test.cc.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/ring/walk.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::drain;
using ::testing::ElementsAre;
using testing::FakeRing;
using ::testing::IsEmpty;
using testing::payload;
using testing::ring_over;
using ::testing::UnorderedElementsAre;

constexpr std::size_t kSize = 65536;

// Records each access. Consecutive reads of records count as one.
struct TracingMemory : DefaultMemory {
  static inline std::vector<std::string> trace;
  static inline const SharedPosition* tail;

  static Position read_once(const SharedPosition& field) {
    trace.push_back("read_once");
    return DefaultMemory::read_once(field);
  }
  static void write_once(SharedPosition& field, SharedPosition value) {
    trace.push_back("write_once " + std::to_string(value));
    DefaultMemory::write_once(field, value);
  }
  static void fence_after_read_of(const SharedPosition& field) {
    trace.push_back(&field == tail ? "fence after the tail?" : "fence_after_read_of head");
    DefaultMemory::fence_after_read_of(field);
  }
  static void fence_before_write_of(const SharedPosition& field) {
    trace.push_back(&field == tail ? "fence_before_write_of tail" : "fence before the head?");
    DefaultMemory::fence_before_write_of(field);
  }
  template <class T>
  static T read(const std::byte* address) {
    if (address == reinterpret_cast<const std::byte*>(tail)) {
      trace.push_back("read tail");
    } else if (trace.back() != "read") {
      trace.push_back("read");
    }
    return DefaultMemory::read<T>(address);
  }
};

Ring<TracingMemory> traced(const FakeRing& fake) {
  TracingMemory::trace = {"start"};
  TracingMemory::tail = &fake.page().data_tail;
  return ring_over<TracingMemory>(fake);
}

TEST(RingS1Test, ARecordThatArrivesDuringADrainWaitsForTheNext) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 20; ++i) fake.sample(payload(4, i));
  Ring<> ring = ring_over(fake);
  int delivered = 0;
  ring.for_each([&](const PerfEvent&) {
    if (++delivered < 100) fake.sample(payload(4, 100));
  });
  EXPECT_EQ(delivered, 20);
  EXPECT_TRUE(ring.readable());
  EXPECT_EQ(drain(ring).size(), 20U);
}

TEST(RingS2Test, ReadsHeadOnceBeforeWritingTailOnce) {
  FakeRing fake{kSize, 48};
  for (unsigned i = 0; i < 30; ++i) fake.sample(payload(i % 15 == 7 ? 20 : 12, i));
  fake.lost(3);
  traced(fake).for_each([](const PerfEvent&) {});
  EXPECT_THAT(
      TracingMemory::trace,
      ElementsAre("start", "read tail", "read_once", "fence_after_read_of head", "read",
                  "fence_before_write_of tail", "write_once " + std::to_string(fake.head())));
}

TEST(RingS2Test, NothingIsWrittenWhenNothingIsConsumed) {
  FakeRing fake{kSize, 4096};
  traced(fake).for_each([](const PerfEvent&) {});
  EXPECT_THAT(TracingMemory::trace,
              ElementsAre("start", "read tail", "read_once", "fence_after_read_of head"));
}

TEST(RingS2Test, TailIsNotWrittenBeforeTheDrainEnds) {
  FakeRing fake{kSize, 65536 - 64};
  for (unsigned i = 0; i < 100; ++i) fake.sample(payload(12, i));
  ring_over(fake).for_each(
      [&](const PerfEvent&) { EXPECT_EQ(fake.page().data_tail, 65536U - 64); });
  EXPECT_EQ(fake.page().data_tail, fake.head());
}

// S2 and S3 for every event of a ring that exercises all gears: a guessed run, a wrap, a LOST, a
// malformed record.
class RingS3Test : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kStart = kSize - 20 * 24 - 8;  // the 21st sample straddles the end

  RingS3Test() {
    for (unsigned i = 0; i < 40; ++i) add([&] { fake_.sample(payload(12, i)); });
    add([&] { fake_.lost(5); });
    add([&] { fake_.sample(payload(4), 8); });
    for (unsigned i = 0; i < 10; ++i) add([&] { fake_.sample(payload(4 + 8 * i, i)); });
  }

  void add(const std::function<void()>& write) {
    write();
    ends_.push_back(fake_.head());
  }

  void rewind() { fake_.page().data_tail = kStart; }

  FakeRing fake_{kSize, kStart};
  std::vector<std::uint64_t> ends_;  // of each record
};

TEST_F(RingS3Test, EventThatBreaksIsLastConsumed) {
  const std::vector<CopiedEvent> all = drain(ring_over(fake_));
  ASSERT_EQ(all.size(), ends_.size());
  for (std::size_t last = 0; last < ends_.size(); ++last) {
    rewind();
    auto ring = traced(fake_);
    const std::vector<CopiedEvent> first = drain(ring, last);
    EXPECT_EQ(first,
              std::vector<CopiedEvent>(all.begin(), all.begin() + static_cast<long>(last) + 1));
    EXPECT_EQ(fake_.page().data_tail, ends_[last]);
    EXPECT_EQ(
        std::ranges::count(TracingMemory::trace, std::string_view{"fence_before_write_of tail"}),
        1);
    EXPECT_EQ(drain(ring),
              std::vector<CopiedEvent>(all.begin() + static_cast<long>(last) + 1, all.end()));
  }
}

TEST_F(RingS3Test, EventThatThrowsIsLastConsumed) {
  for (std::size_t last = 0; last < ends_.size(); ++last) {
    rewind();
    auto ring = traced(fake_);
    std::size_t index = 0;
    EXPECT_THROW(ring.for_each([&](const PerfEvent&) {
      if (index++ == last) throw std::runtime_error{"enough"};
    }),
                 std::runtime_error);
    EXPECT_EQ(index, last + 1);
    EXPECT_EQ(fake_.page().data_tail, ends_[last]);
    EXPECT_THAT(TracingMemory::trace.back(), "write_once " + std::to_string(ends_[last]));
    EXPECT_EQ(
        std::ranges::count(TracingMemory::trace, std::string_view{"fence_before_write_of tail"}),
        1);
    EXPECT_EQ(drain(ring).size(), ends_.size() - last - 1);
  }
}

TEST(RingS4Test, ASampleIsItsRawBytesInTheRingItself) {
  FakeRing fake{kSize, 128};
  fake.sample(payload(100));
  int samples = 0;
  ring_over(fake).for_each([&](const PerfEvent& event) {
    ++samples;
    const auto& sample = std::get<Sample>(event);
    EXPECT_EQ(sample.head.data(), fake.data().data() + 128 + 12);
    EXPECT_EQ(sample.head.size(), 100U);
    EXPECT_TRUE(sample.tail.empty());
  });
  EXPECT_EQ(samples, 1);
}

TEST(RingS4Test, OnlyTheRawSizeCountsNotTheRecords) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 20; ++i) fake.sample(payload(i % 13, i), 32);  // fields may follow raw
  const std::vector<CopiedEvent> delivered = drain(ring_over(fake));
  ASSERT_EQ(delivered.size(), 20U);
  for (unsigned i = 0; i < 20; ++i)
    EXPECT_EQ(delivered[i], CopiedEvent::sample(payload(i % 13, i)));
}

TEST(RingS4Test, AStraddlingSampleIsTheTwoEndsOfTheRing) {
  FakeRing fake{kSize, kSize - 32};
  fake.sample(payload(100));
  int samples = 0;
  ring_over(fake).for_each([&](const PerfEvent& event) {
    ++samples;
    const auto& sample = std::get<Sample>(event);
    EXPECT_EQ(sample.head.data(), fake.data().data() + kSize - 20);
    EXPECT_EQ(sample.head.size(), 20U);
    EXPECT_EQ(sample.tail.data(), fake.data().data());
    EXPECT_EQ(sample.tail.size(), 80U);
  });
  EXPECT_EQ(samples, 1);
}

TEST(RingS5Test, ALostIsTheCountPastTheId) {
  FakeRing fake{kSize};
  fake.lost(0x0102'0304'0506'0708, 24, 77);
  fake.lost(9, 48);  // sample_id_all appends fields
  EXPECT_THAT(drain(ring_over(fake)),
              ElementsAre(CopiedEvent::lost(0x0102'0304'0506'0708), CopiedEvent::lost(9)));
}

TEST(RingS5Test, ALostMayWrapAfterItsHeaderOrItsId) {
  for (const std::uint64_t start : {kSize - 8, kSize - 16, kSize - 24}) {
    FakeRing fake{kSize, start};
    fake.lost(42);
    EXPECT_THAT(drain(ring_over(fake)), ElementsAre(CopiedEvent::lost(42)));
  }
}

TEST(RingS6Test, ReadableIsThatThePositionsDiffer) {
  FakeRing fake{kSize, 4096};
  const Ring<> ring = ring_over(fake);
  EXPECT_FALSE(ring.readable());
  fake.advance(8);
  EXPECT_TRUE(ring.readable());
  fake.page().data_tail = 4104;
  EXPECT_FALSE(ring.readable());
  fake.page().data_tail = 4112;
  EXPECT_FALSE(ring.readable()) << "S11";
}

// Unlike aya's readable(), which calls data_head() with a fence in it.
TEST(RingS6Test, ReadableReadsPositionsWithoutFence) {
  FakeRing fake{kSize};
  fake.sample(payload(4));
  EXPECT_TRUE(traced(fake).readable());
  EXPECT_THAT(TracingMemory::trace, UnorderedElementsAre("start", "read_once", "read tail"));
}

TEST(RingS9Test, DrainContinuesAcrossPositionBoundaries) {
  for (const std::uint64_t around :
       {std::uint64_t{1} << 31, std::uint64_t{1} << 32, std::uint64_t{5} << 32, std::uint64_t{0}}) {
    for (int before = -4; before <= 4; ++before) {
      const std::uint64_t start = around + static_cast<std::uint64_t>(before * 16);
      FakeRing fake{kSize, start};
      for (unsigned i = 0; i < 40; ++i) fake.sample(payload(4, i));
      EXPECT_EQ(drain(ring_over(fake)).size(), 40U) << start;
      EXPECT_EQ(fake.page().data_tail, fake.head()) << "as aya commits it, bit for bit";
    }
  }
}

// A 32-bit kernel shows 32 bits of its head, while data_tail keeps all 64.
TEST(RingS9Test, AHeadOf32BitsIsFollowedPast4GiB) {
  const std::uint64_t limit = std::uint64_t{1} << 32;
  FakeRing fake{kSize, limit - 32};
  Ring<> ring = ring_over(fake);
  for (unsigned round = 0; round < 10; ++round) {
    const std::uint64_t tail = fake.page().data_tail;
    for (unsigned i = 0; i < 3; ++i) fake.sample(payload(4, 3 * round + i));
    fake.page().data_head = fake.head() & 0xffff'ffff;
    EXPECT_TRUE(ring.readable());
    EXPECT_THAT(drain(ring), ElementsAre(CopiedEvent::sample(payload(4, 3 * round)),
                                         CopiedEvent::sample(payload(4, 3 * round + 1)),
                                         CopiedEvent::sample(payload(4, 3 * round + 2))));
    EXPECT_EQ(fake.page().data_tail, tail + 48);
    EXPECT_FALSE(ring.readable());
    EXPECT_THAT(drain(ring), IsEmpty());
  }
}

// 0 is a position like any other, not a sign that a drain consumed nothing.
TEST(RingS9Test, ATailWhoseLowHalfBecomesZeroIsWritten) {
  for (const std::uint64_t end :
       {std::uint64_t{1} << 32, std::uint64_t{7} << 32, std::uint64_t{0}}) {
    FakeRing fake{kSize, end - 48};
    for (unsigned i = 0; i < 3; ++i) fake.sample(payload(4, i));
    ASSERT_EQ(fake.head(), end);
    Ring<TracingMemory> ring = traced(fake);
    EXPECT_EQ(drain(ring).size(), 3U);
    EXPECT_EQ(TracingMemory::trace.back(), "write_once " + std::to_string(end));
    EXPECT_EQ(fake.page().data_tail, end);
    EXPECT_FALSE(ring.readable());
  }
}

TEST(RingS9Test, ATailOf32BitsServesAHeadPast4GiB) {
  FakeRing fake{kSize, (std::uint64_t{1} << 32) + 64};
  fake.page().data_tail = 64;
  fake.sample(payload(4));
  EXPECT_EQ(drain(ring_over(fake)).size(), 1U);
  EXPECT_EQ(fake.page().data_tail, 80U);
}

// As a kernel before 5.2 shows it: an interrupt published a record, which was then delivered, and
// the output that was interrupted stores the older data_head (K59).
TEST(RingS11Test, DrainRecoversAfterHeadMovesBack) {
  const std::uint64_t limit = std::uint64_t{1} << 32;
  for (const std::uint64_t start : {std::uint64_t{4096}, limit - 24, limit, limit + 24, 5 * limit,
                                    std::uint64_t{0} - 24, std::uint64_t{0}}) {
    for (const std::uint64_t mask : {~std::uint64_t{0}, limit - 1}) {
      for (const std::uint64_t distance : {std::size_t{8}, std::size_t{24}, kSize - 8, kSize}) {
        FakeRing fake{kSize, start};
        fake.sample(payload(12, 1));
        ASSERT_EQ(drain(ring_over(fake)).size(), 1U);
        const std::uint64_t tail = fake.page().data_tail;
        fake.page().data_head = (tail - distance) & mask;
        Ring<TracingMemory> ring = traced(fake);
        EXPECT_FALSE(ring.readable()) << tail << " - " << distance;
        TracingMemory::trace = {"start"};
        EXPECT_THAT(drain(ring), IsEmpty()) << tail << " - " << distance;
        EXPECT_THAT(TracingMemory::trace,
                    ElementsAre("start", "read tail", "read_once", "fence_after_read_of head"));
        EXPECT_EQ(fake.page().data_tail, tail);
        fake.sample(payload(12, 2));
        EXPECT_THAT(drain(ring_over(fake)), ElementsAre(CopiedEvent::sample(payload(12, 2))));
        EXPECT_EQ(fake.page().data_tail, fake.head());
      }
    }
  }
}

// A full ring of 2 GiB, and one whose data_head is 2 GiB behind, have the same positions modulo
// 2^32. Both count as full, so that no byte outside the ring is read.
TEST(RingS11Test, HalfOfAllPositionsAheadIsNotBehind) {
  constexpr std::size_t half = Ring<>::kSizeMax;
  EXPECT_EQ(internal::available(half, 64, 64 + Position{half}), half);
  EXPECT_EQ(internal::available(half, 64, 72 + Position{half}), 0U);
  EXPECT_EQ(internal::available(half, 64, 56), 0U);
}

}  // namespace
}  // namespace perfring
