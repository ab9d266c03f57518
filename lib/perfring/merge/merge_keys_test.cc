// Rules M7 and M8 of a merge (merge.h): keys that prove how long their writers took, and keys of
// any value. merge_ahead_test.cc tests keys ahead of the clock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/merge/timed.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kKeyedSize;
using testing::late;
using testing::Rings;
using testing::sample;

constexpr std::uint64_t kLastKey = std::numeric_limits<std::uint64_t>::max();

TEST(MergeM7Test, KeyOlderThanPreviousLookProvesDelay) {
  Rings<> rings{1, {.slack = 50}};
  rings.write(0, 1);
  rings.run(1000);
  EXPECT_EQ(rings.merge.counts().longest_delay, 0U) << "it may have been there for long";
  rings.write(0, 970);
  rings.run(2000);
  EXPECT_EQ(rings.merge.counts().longest_delay, 30U);
  EXPECT_EQ(rings.merge.slack(), 60U);
  rings.write(0, 1999);
  rings.write(0, 1980);
  EXPECT_THAT(rings.run(2040), IsEmpty()) << "1980 and 60 are not less";
  EXPECT_EQ(rings.merge.counts().longest_delay, 30U);
  rings.write(0, 1940);
  rings.run(2500);
  EXPECT_EQ(rings.merge.counts().longest_delay, 100U);
  EXPECT_EQ(rings.merge.slack(), 200U);
  rings.write(0, 2490);
  rings.run(3000);
  EXPECT_EQ(rings.merge.slack(), 200U) << "the longest counts";
}

TEST(MergeM7Test, RecordReadLaterIsMeasuredByLookThatSawIt) {
  Rings<> rings{1};
  rings.run(1000);
  rings.run(2000);
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, 2100 + i);  // published before 3000
  rings.write(0, 1700);                                             // at least 300 late
  rings.run(3000, 0);
  EXPECT_EQ(rings.merge.counts().longest_delay, 0U) << "it was not read yet";
  rings.write(0, 2950);  // at least 50 late
  rings.run(4000);
  EXPECT_EQ(rings.merge.counts().longest_delay, 300U);
}

TEST(MergeM7Test, LooksReadInOneRunAreMeasuredSeparately) {
  Rings<> rings{1, {.slack = 0, .learns = false}};
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, 900 + i);
  EXPECT_THAT(rings.run(1000, 0), IsEmpty()) << "9 are read";
  rings.write(0, 700);  // at least 300 late
  EXPECT_EQ(rings.run(2000).size(), 21U);
  EXPECT_EQ(rings.merge.counts().longest_delay, 300U);
}

TEST(MergeM7Test, RecordAfterFullyReadLookUsesNextLook) {
  Rings<> rings{1, {.slack = 100, .learns = false}};
  for (std::uint64_t i = 0; i < 12; ++i) rings.write(0, i < 3 ? 950 : 990, 0);
  EXPECT_THAT(rings.run(1000), IsEmpty()) << "9 are read";
  rings.write(0, 400);  // at least 600 late
  EXPECT_EQ(rings.run(1060).size(), 3U) << "all of the first look are read";
  EXPECT_THAT(rings.run(1065), IsEmpty());
  EXPECT_EQ(rings.merge.counts().longest_delay, 0U);
  rings.run(1200);
  EXPECT_EQ(rings.merge.counts().longest_delay, 600U);
}

TEST(MergeM7Test, SlackLearnsOnlyAsFarAsAllowed) {
  Rings<> fixed{1, {.slack = 50, .learns = false}};
  Rings<> bounded{1, {.slack = 50, .slack_most = 100}};
  for (Rings<>* rings : {&fixed, &bounded}) {
    rings->run(1000);
    rings->write(0, 949);
    rings->run(2000);
    EXPECT_EQ(rings->merge.counts().longest_delay, 51U);
    EXPECT_EQ(rings->merge.slack(), 50U);
  }
  bounded.write(0, 1950);
  bounded.run(3000);
  EXPECT_EQ(bounded.merge.slack(), 100U);
  bounded.write(0, 0);
  bounded.run(4000);
  EXPECT_EQ(bounded.merge.slack(), 100U);
  EXPECT_EQ(bounded.merge.counts().longest_delay, 3000U);
}

// Bad input: the clocks that merge.h lists.
TEST(MergeClockTest, AClockThatStandsReleasesNothingExceptToAFlush) {
  Rings<> rings{1, {.slack = 10}};
  rings.write(0, 95);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(rings.run(100), IsEmpty());
  EXPECT_THAT(rings.flush(), ElementsAre(sample(0, 95)));
}

TEST(MergeClockTest, RewoundClockReleasesNothingUntilCaughtUp) {
  Rings<> rings{1, {.slack = 10}};
  rings.write(0, 85);
  rings.write(0, 95);
  EXPECT_THAT(rings.run(100), ElementsAre(sample(0, 85)));
  EXPECT_THAT(rings.run(20), IsEmpty());
  EXPECT_THAT(rings.run(104), IsEmpty());
  EXPECT_THAT(rings.run(106), ElementsAre(sample(0, 95)));
  EXPECT_EQ(rings.merge.counts(), (MergeCounts{.delivered = 2}));
}

TEST(MergeClockTest, RecordAheadOfRewoundClockIsLate) {
  Rings<> rings{1, {.slack = 10}};
  rings.write(0, 85);
  EXPECT_THAT(rings.run(100), ElementsAre(sample(0, 85)));
  rings.write(0, 97);
  EXPECT_THAT(rings.run(20), ElementsAre(testing::MergedEvent{
                                 0, 9, true, testing::CopiedEvent::sample(testing::keyed(97))}));
  EXPECT_EQ(rings.merge.counts().ahead, 1U);
  EXPECT_EQ(rings.merge.counts().late, 1U);
}

// The clock goes back between the read of this ring's data_head and the last read of the clock. A
// released key is not ahead.
TEST(MergeClockTest, AClockThatJumpsBackWithinARunSetsTheBound) {
  Rings<> rings{1};
  rings.write(0, 80);
  std::vector<testing::MergedEvent> merged;
  std::uint64_t now = 150;
  rings.merge.run(
      KeyAt{}, [&now] { return now -= 50; },
      [&](const Ordered& each) { merged.push_back(testing::copy(each)); });
  EXPECT_THAT(merged, ElementsAre(sample(0, 80)));
  EXPECT_EQ(rings.merge.counts().ahead, 0U);
}

TEST(MergeClockTest, ForwardClockJumpMakesEventsLate) {
  Rings<> rings{2, {.slack = 10, .learns = false}};
  rings.write(0, 95);
  EXPECT_THAT(rings.run(100'000), ElementsAre(sample(0, 95)));
  rings.write(1, 90);
  EXPECT_THAT(rings.run(105), ElementsAre(late(1, 90)));
  EXPECT_EQ(rings.merge.counts().late, 1U);
  EXPECT_EQ(rings.merge.counts().worst_late, 5U);
}

TEST(MergeM8Test, KeysOfAnyValueAreFlushedInTheirOrder) {
  Rings<> rings{3};
  rings.write(0, 0);
  rings.write(0, kLastKey / 2);
  rings.write(0, kLastKey);
  rings.write(1, 1);
  rings.write(1, kLastKey - 1);
  rings.write(2, kLastKey / 2 + 1);
  rings.write(2, kLastKey);
  EXPECT_THAT(rings.flush(), ElementsAre(sample(0, 0), sample(1, 1), sample(0, kLastKey / 2),
                                         sample(2, kLastKey / 2 + 1), sample(1, kLastKey - 1),
                                         sample(0, kLastKey), sample(2, kLastKey)));
  rings.write(1, 0);
  rings.write(1, kLastKey);
  EXPECT_THAT(rings.flush(), ElementsAre(late(1, 0), sample(1, kLastKey)));
  EXPECT_EQ(rings.merge.counts().worst_late, kLastKey);
}

// Both keys are too far above the lowest key for a word of the tree, in which they differ only by
// their rings. The first ring's key is not released, but that decides nothing about the second
// ring's.
TEST(MergeM8Test, AFarKeyThatStaysHoldsNoOtherBack) {
  Rings<> rings{2};
  rings.write(0, kLastKey - 1);
  rings.write(1, 0);
  rings.write(1, kLastKey - 3);
  EXPECT_THAT(rings.run(kLastKey - 1), ElementsAre(sample(1, 0), sample(1, kLastKey - 3)));
  EXPECT_EQ(rings.run(kLastKey).size(), 1U);
}

TEST(MergeM8Test, ALowKeyAmongHighOnesIsNext) {
  Rings<> rings{2};
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, kLastKey - 100 + i);
  rings.write(0, 3);
  rings.write(1, kLastKey - 50);
  const auto merged = rings.flush();
  ASSERT_EQ(merged.size(), 22U);
  EXPECT_EQ(merged[13], late(0, 3)) << "as soon as the window has it";
}

// Records with the kernel's time, straddling the ring's end at every possible place.
TEST(MergeTimedTest, KeyIsEventTimeNotPayload) {
  constexpr std::size_t kSize = 65536;
  for (std::uint64_t start = kSize - 40; start <= kSize; start += 8) {
    Rings<Timed<>> rings{2, {.slack = 0}, kSize, start};
    rings[0].timed_sample(20, testing::keyed(7, 1));
    rings[1].timed_sample(10, testing::keyed(9, 2));
    rings[1].lost(3);
    rings[1].timed_sample(30, testing::keyed(8, 3));
    std::vector<std::pair<std::uint64_t, testing::CopiedEvent>> merged;
    rings.merge.run(
        EventTime{}, [] { return std::uint64_t{31}; },
        [&](const Ordered& each) { merged.emplace_back(each.key, testing::copy(each.event)); });
    ASSERT_EQ(merged.size(), 4U) << start;
    const auto is = [&](std::size_t i, std::uint64_t key, std::uint64_t word,
                        std::uint32_t number) {
      auto event = testing::CopiedEvent::sample(testing::keyed(word, number));
      event.head_size = merged[i].second.head_size;
      EXPECT_EQ(merged[i], std::pair(key, event)) << start;
    };
    is(0, 10, 9, 2);
    is(1, 20, 7, 1);
    EXPECT_EQ(merged[2], std::pair(std::uint64_t{30}, testing::CopiedEvent::lost(3)));
    is(3, 30, 8, 3);
  }
}

TEST(MergeTimedTest, ThePayloadMayHaveTheKeyAllTheSame) {
  Rings<Timed<>> rings{1};
  rings[0].timed_sample(20, testing::keyed(7));
  EXPECT_THAT(rings.run(30), ElementsAre(sample(0, 7)));
}

TEST(MergeTimedTest, ASampleTooShortForItsTimeIsMalformed) {
  Rings<Timed<>> rings{1};
  rings.write(0, 5);  // 24 bytes: the first 4 of its payload are taken for the raw size
  rings[0].sample({}, 16);
  const auto merged = rings.flush();
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[1].event.defect, Defect::BadSample);
}

TEST(TimedTest, PayloadStartsAfterTime) {
  testing::FakeRing fake{65536};
  fake.timed_sample(20, testing::keyed(7));
  auto cursor = Cursor<Timed<>>::over(fake.page(), fake.data()).value();
  cursor.look();
  EXPECT_EQ(testing::copy(cursor.next().value().event()),
            testing::CopiedEvent::sample(testing::keyed(7)));
  auto ring = Ring<Timed<>>::over(fake.page(), fake.data()).value();
  std::vector<testing::CopiedEvent> delivered;
  ring.for_each([&](const PerfEvent& event) { delivered.push_back(testing::copy(event)); });
  EXPECT_THAT(delivered, ElementsAre(testing::CopiedEvent::sample(testing::keyed(7))));
}

constexpr std::size_t kLast = std::numeric_limits<std::size_t>::max();

std::array<std::byte, 16> payload() {
  std::array<std::byte, 16> bytes;
  for (std::size_t i = 0; i != bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0x11 * i);
  return bytes;
}

// Copies the two pieces to separate memory, so that a sanitizer detects reads outside them.
std::uint64_t key_of(Bytes payload, std::size_t in_head, std::size_t offset) {
  const std::vector<std::byte> head(payload.begin(), payload.begin() + std::ptrdiff_t(in_head));
  const std::vector<std::byte> tail(payload.begin() + std::ptrdiff_t(in_head), payload.end());
  return KeyAt{offset}(Sample{head, tail});
}

TEST(KeyAtTest, ReadsKeyWhereverPayloadStraddles) {
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
