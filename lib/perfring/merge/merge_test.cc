// Rules M1 to M5 of a merge (merge.h), one by one. merge_keys_test.cc: keys, and the clocks of
// their writers; merge_odd_test.cc: odd events; merge_callback_test.cc: callbacks and bad input;
// proptests/merge_test.cc: any records, written at any time.

#include "perfring/merge/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kKeyedSize;
using testing::late;
using testing::Rings;
using testing::sample;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// Counts the reads of data_head and the writes of data_tail.
struct Counting : DefaultMemory {
  static inline unsigned heads = 0;
  static inline unsigned tails = 0;
  static Position read_once(const SharedPosition& field) {
    ++heads;
    return DefaultMemory::read_once(field);
  }
  static void write_once(SharedPosition& field, SharedPosition value) {
    ++tails;
    DefaultMemory::write_once(field, value);
  }
};

TEST(MergeTest, EventsOfSeveralRingsComeInTheOrderOfTheirKeys) {
  Rings<> rings{3};
  for (const std::uint64_t key : {10U, 40U, 50U}) rings.write(0, key);
  for (const std::uint64_t key : {20U, 60U}) rings.write(2, key);
  rings.write(1, 30);
  EXPECT_THAT(rings.run(1000), ElementsAre(sample(0, 10), sample(2, 20), sample(1, 30),
                                           sample(0, 40), sample(0, 50), sample(2, 60)));
  EXPECT_EQ(rings.end, MergeEnd::Released);
  EXPECT_EQ(rings.merge.counts(), (MergeCounts{.delivered = 6}));
  EXPECT_EQ(rings.tail(0), 3 * kKeyedSize);
  EXPECT_EQ(rings.tail(1), 1 * kKeyedSize);
}

TEST(MergeTest, EqualKeysFollowRingOrder) {
  Rings<> rings{2};
  for (std::uint32_t i = 0; i < 3; ++i) {
    rings.write(1, 7, i);
    rings.write(0, 7, i);
  }
  EXPECT_THAT(rings.run(8), ElementsAre(sample(0, 7, 0), sample(0, 7, 1), sample(0, 7, 2),
                                        sample(1, 7, 0), sample(1, 7, 1), sample(1, 7, 2)));
}

TEST(MergeTest, OneRingIsDeliveredInItsOrderAcrossItsEnd) {
  constexpr std::size_t kSize = 65536;
  Rings<> rings{1, {.slack = 0}, kSize, kSize - 40};
  for (std::uint64_t key = 1; key <= 4; ++key) rings.write(0, key);
  auto merged = rings.run(5);
  ASSERT_EQ(merged.size(), 4U);
  EXPECT_EQ(merged[1].event.head_size, 4U) << "the key straddles the ring's end";
  merged[1].event.head_size = 12;
  EXPECT_THAT(merged, ElementsAre(sample(0, 1), sample(0, 2), sample(0, 3), sample(0, 4)));
}

TEST(MergeTest, AThousandRingsAreMergedInTheOrderOfTheirKeys) {
  constexpr std::size_t kRings = 1024;
  Rings<> rings{kRings};
  for (std::size_t i = 0; i < 3 * kRings; ++i) rings.write(i * 7 % kRings, i + 1);
  const auto merged = rings.run(3 * kRings);
  ASSERT_EQ(merged.size(), 3 * kRings - 1);
  for (std::size_t i = 0; i < merged.size(); ++i)
    ASSERT_EQ(merged[i], sample(i * 7 % kRings, i + 1));
}

TEST(MergeTest, ADrainOfNoRingsEnds) {
  Rings<> rings{0};
  EXPECT_THAT(rings.run(5), IsEmpty());
  EXPECT_THAT(rings.flush(), IsEmpty());
  EXPECT_EQ(rings.end, MergeEnd::Released);
}

TEST(MergeM1Test, EachRingIsLookedAtOnceAfterTheClockIsRead) {
  Rings<Counting> rings{3};
  std::size_t calls = 0;
  std::vector<testing::MergedEvent> merged;
  Counting::heads = 0;
  rings.merge.run(
      KeyAt{},
      [&] {
        if (calls < 3) rings.write(calls, calls);
        return 10 + calls++;
      },
      [&](const Ordered& each) {
        merged.push_back(testing::copy(each));
        rings.write(each.ring, 9);
      });
  EXPECT_EQ(calls, 4U);
  EXPECT_EQ(Counting::heads, 3U);
  EXPECT_THAT(merged, ElementsAre(sample(0, 0), sample(1, 1), sample(2, 2)))
      << "what was there when data_head was read, and not what came later";
}

TEST(MergeM2Test, KeyIsReleasedOnceSlackHasPassed) {
  Rings<> rings{2, {.slack = 100}};
  rings.write(0, 899);
  rings.write(0, 901);
  rings.write(1, 900);
  EXPECT_THAT(rings.run(1000), ElementsAre(sample(0, 899)));
  EXPECT_EQ(rings.tail(0), kKeyedSize);
  EXPECT_EQ(rings.tail(1), 0U);
  EXPECT_THAT(rings.run(1001), ElementsAre(sample(1, 900)));
  EXPECT_THAT(rings.run(1001), IsEmpty());
  EXPECT_THAT(rings.run(1002), ElementsAre(sample(0, 901)));
}

TEST(MergeM2Test, TheSmallestClockOfTheLooksCounts) {
  for (const std::size_t smallest : {0U, 1U, 2U}) {
    Rings<> rings{3};
    rings.write(0, 49);
    rings.write(1, 50);
    std::size_t calls = 0;
    std::vector<testing::MergedEvent> merged;
    rings.merge.run(
        KeyAt{}, [&] { return std::uint64_t{calls++ == smallest ? 50U : 60U}; },
        [&](const Ordered& each) { merged.push_back(testing::copy(each)); });
    EXPECT_THAT(merged, ElementsAre(sample(0, 49)));
  }
}

TEST(MergeM2Test, MaximumSlackHoldsEverythingUntilFlush) {
  Rings<> rings{1, {.slack = kMax}};
  rings.write(0, 0);
  EXPECT_THAT(rings.run(kMax), IsEmpty());
  EXPECT_THAT(rings.flush(), ElementsAre(sample(0, 0)));
}

// The key is so far above the previous one that it does not fit in a word, and the tree is
// replayed.
TEST(MergeM2Test, AKeyFarAboveTheOneBeforeItWaitsForItsTimeToo) {
  constexpr std::uint64_t now = ~std::uint64_t{0} - 100;
  Rings<> rings{2, {.slack = 50}};
  rings.write(0, 5);
  rings.write(1, now - 20);
  EXPECT_THAT(rings.run(now), ElementsAre(sample(0, 5)));
  EXPECT_THAT(rings.run(now + 40), ElementsAre(sample(1, now - 20)));
}

TEST(MergeM3Test, WindowRepairsDisplacementsBelowItsLength) {
  Rings<> rings{2};
  for (std::uint64_t key = 2; key <= 8; ++key) rings.write(0, 10 * key);
  rings.write(0, 15);
  rings.write(1, 10);
  const auto merged = rings.run(1000);
  ASSERT_EQ(merged.size(), 9U);
  EXPECT_EQ(merged[1], sample(0, 15));
  EXPECT_EQ(rings.merge.counts(), (MergeCounts{.delivered = 9, .displaced = 1}));
}

TEST(MergeM3Test, AKeyDisplacedByTheWindowsLengthIsLate) {
  Rings<> rings{2};
  for (std::uint64_t key = 2; key <= 9; ++key) rings.write(0, 10 * key);
  rings.write(0, 15);
  rings.write(1, 10);
  const auto merged = rings.run(1000);
  ASSERT_EQ(merged.size(), 10U);
  EXPECT_EQ(merged[1], sample(0, 20));
  EXPECT_EQ(merged[2], late(0, 15));
  EXPECT_EQ(rings.merge.counts().late, 1U);
}

TEST(MergeM3Test, AWindowOfOneRepairsNothing) {
  Rings<DefaultMemory, 1> rings{1};
  for (const std::uint64_t key : {20U, 10U, 40U, 30U, 50U}) rings.write(0, key);
  EXPECT_THAT(rings.run(1000),
              ElementsAre(sample(0, 20), late(0, 10), sample(0, 40), late(0, 30), sample(0, 50)));
  EXPECT_EQ(rings.merge.counts(), (MergeCounts{.delivered = 5, .late = 2, .worst_late = 10}));
}

TEST(MergeM3Test, LowerKeyOvertakesWaitingRecord) {
  Rings<> rings{1, {.slack = 10}};
  rings.write(0, 20);
  EXPECT_THAT(rings.run(25), IsEmpty());
  rings.write(0, 18);
  rings.write(0, 20, 1);
  EXPECT_THAT(rings.run(40), ElementsAre(sample(0, 18), sample(0, 20), sample(0, 20, 1)));
}

TEST(MergeM4Test, TheTailStaysAtTheOldestThatWasNotDelivered) {
  Rings<> rings{1, {.slack = 60}};
  for (const std::uint64_t key : {10U, 60U, 20U, 50U, 30U}) rings.write(0, key);
  EXPECT_THAT(rings.run(100), ElementsAre(sample(0, 10), sample(0, 20), sample(0, 30)));
  EXPECT_EQ(rings.tail(0), 1 * kKeyedSize);
  EXPECT_THAT(rings.run(115), ElementsAre(sample(0, 50)));
  EXPECT_EQ(rings.tail(0), 1 * kKeyedSize) << "60 is in front of it";
  EXPECT_THAT(rings.run(125), ElementsAre(sample(0, 60)));
  EXPECT_EQ(rings.tail(0), 5 * kKeyedSize);
}

TEST(MergeM4Test, TailIsWrittenAtMostOncePerRun) {
  Rings<Counting> rings{2};
  for (std::uint64_t key = 0; key < 30; ++key) rings.write(0, key);
  rings.write(1, 10);
  Counting::tails = 0;
  rings.run(10);
  EXPECT_EQ(Counting::tails, 1U);
  rings.run(10);
  EXPECT_EQ(Counting::tails, 1U);
  rings.flush();
  EXPECT_EQ(Counting::tails, 3U);
}

TEST(MergeM5Test, EventOlderThanDeliveredOneCountsAsLate) {
  Rings<> rings{2, {.slack = 0, .learns = false}};
  rings.write(0, 50);
  rings.run(60);
  rings.write(1, 30);
  rings.write(1, 45);
  rings.write(1, 50);
  rings.write(0, 55);
  EXPECT_THAT(rings.run(60), ElementsAre(late(1, 30), late(1, 45), sample(1, 50), sample(0, 55)));
  EXPECT_EQ(rings.merge.counts(),
            (MergeCounts{.delivered = 5, .late = 2, .worst_late = 20, .longest_delay = 30}));
}

}  // namespace
}  // namespace perfring
