// Rule M8 of a merge (merge.h): keys ahead of the clock hold no event up, whatever clock they are
// from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using testing::CopiedEvent;
using testing::keyed;
using testing::MergedEvent;
using testing::Rings;
using testing::sample;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kThreeSeconds = 3'000'000'000;
constexpr std::uint64_t kLastOfKeys = ~std::uint64_t{0};
constexpr std::uint64_t kBegin = 1'000'000'000'000;

// A sample with the key `key`, which was ordered by the key `by`.
MergedEvent ordered(std::size_t ring, std::uint64_t by, std::uint64_t key) {
  return {ring, by, false, CopiedEvent::sample(keyed(key))};
}

// Writes `count` samples to each of two rings, within one millisecond. Then runs the merge six
// times, a millisecond apart. Returns how many events each run delivers.
std::vector<std::size_t> delivered_by_runs(std::uint64_t count, std::uint64_t offset) {
  Rings<> rings{2, MergeOptions{}, std::size_t{1} << 20};
  std::uint64_t now = kBegin;
  for (std::uint64_t i = 0; i < count; ++i) {
    for (const std::size_t ring : {0U, 1U}) rings.write(ring, now + i + offset);
  }
  std::vector<std::size_t> delivered;
  for (int run = 0; run < 6; ++run) delivered.push_back(rings.run(now += kMillisecond).size());
  return delivered;
}

TEST(MergeAheadTest, ARunDeliversAllEventsAhead) {
  EXPECT_THAT(delivered_by_runs(1000, 0), ElementsAre(2000, 0, 0, 0, 0, 0));
  EXPECT_THAT(delivered_by_runs(1000, kThreeSeconds), ElementsAre(2000, 0, 0, 0, 0, 0));
  EXPECT_THAT(delivered_by_runs(1000, kLastOfKeys - 2 * kBegin), ElementsAre(2000, 0, 0, 0, 0, 0));
}

TEST(MergeAheadTest, AnEventAheadFollowsTheRecordBeforeIt) {
  Rings<> rings{2, {.slack = 10}};
  rings.write(0, kLastOfKeys);
  rings.write(0, 50);
  rings.write(0, 70);
  rings.write(1, 60);
  rings.write(1, 101);
  rings.write(1, 89);
  EXPECT_THAT(rings.run(100), ElementsAre(ordered(0, 0, kLastOfKeys), sample(0, 50), sample(1, 60),
                                          ordered(1, 60, 101), sample(0, 70), sample(1, 89)));
  EXPECT_EQ(rings.merge.counts(), (MergeCounts{.delivered = 6, .ahead = 2}));
  EXPECT_EQ(rings.tail(0), rings[0].head());
}

TEST(MergeAheadTest, RecordAheadMakesNothingLate) {
  Rings<> rings{2, {.slack = 10}};
  rings.write(0, kLastOfKeys);
  rings.write(1, 80);
  EXPECT_THAT(rings.run(100), ElementsAre(ordered(0, 0, kLastOfKeys), sample(1, 80)));
  rings.write(1, 90);
  rings.write(0, kLastOfKeys);
  EXPECT_THAT(rings.run(120), ElementsAre(ordered(0, 80, kLastOfKeys), sample(1, 90)));
}

TEST(MergeAheadTest, AnEventAheadFollowsAWaitingRecordBeforeIt) {
  Rings<> rings{2, {.slack = 10}};
  rings.write(0, 95);
  for (std::uint32_t i = 0; i < 20; ++i) rings.write(0, kLastOfKeys);
  rings.write(0, 98);
  rings.write(1, 96);
  EXPECT_THAT(rings.run(100), IsEmpty());
  const auto merged = rings.run(109);
  ASSERT_EQ(merged.size(), 23U);
  EXPECT_EQ(merged[0], sample(0, 95));
  for (std::size_t i = 1; i < 21; ++i) EXPECT_EQ(merged[i], ordered(0, 95, kLastOfKeys)) << i;
  EXPECT_EQ(merged[21], sample(1, 96));
  EXPECT_EQ(merged[22], sample(0, 98));
  EXPECT_EQ(rings.merge.counts().late, 0U);
}

// Two programs write to the same rings, each with its own clock.
TEST(MergeAheadTest, RightKeysAmongThoseAheadAreInTheirOrder) {
  Rings<> rings{2, {.slack = 10}};
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::size_t ring = i / 3 % 2;
    rings.write(ring, 1000 + i);
    for (std::uint64_t more = 0; more < i % 5; ++more) rings.write(ring, kThreeSeconds + i);
  }
  std::vector<std::uint64_t> right;
  for (const MergedEvent& each : rings.run(2000)) {
    EXPECT_FALSE(each.late);
    if (each.event == CopiedEvent::sample(keyed(each.key))) right.push_back(each.key);
  }
  EXPECT_EQ(right.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(right));
  EXPECT_EQ(rings.merge.counts().ahead, 200U);
}

TEST(MergeAheadTest, AKeyEqualToTheClockIsNotAheadOfIt) {
  Rings<> rings{1};
  for (std::uint32_t i = 0; i < 20; ++i) rings.write(0, 100, i);
  EXPECT_THAT(rings.run(100), IsEmpty());
  EXPECT_EQ(rings.run(101).size(), 20U);
  EXPECT_EQ(rings.merge.counts().ahead, 0U);
}

// When the record is read, its key is in the past. When a look first found the record, the key was
// in the future.
TEST(MergeAheadTest, ARecordThatWasSeenBeforeItsKeyIsAhead) {
  Rings<> rings{1, {.slack = 10}};
  for (std::uint32_t i = 0; i < 20; ++i) rings.write(0, 995, i);
  rings[0].lost(3);
  rings.write(0, 996);
  EXPECT_THAT(rings.run(100, 0), IsEmpty());
  rings.write(0, 994);
  EXPECT_EQ(rings.run(1000).size(), 22U) << "all but the last, which may be right";
  EXPECT_EQ(rings.merge.counts().ahead, 21U);
  EXPECT_THAT(rings.run(1005), ElementsAre(sample(0, 994)));
}

// The look that found the record read a later clock than the look before, and nothing else is
// known.
TEST(MergeAheadTest, ARecordSeenByALookWhoseClockThrewIsNotAhead) {
  Rings<> rings{1, {.slack = 10}};
  EXPECT_THAT(rings.run(100), IsEmpty());
  rings.write(0, 250);
  int calls = 0;
  const auto clock = [&calls]() -> std::uint64_t {
    if (calls++ == 1) throw std::runtime_error{"no clock"};
    return 300;
  };
  EXPECT_THROW(rings.merge.run(KeyAt{}, clock, [](const Ordered&) {}), std::runtime_error);
  EXPECT_THAT(rings.run(400), ElementsAre(sample(0, 250)));
  EXPECT_EQ(rings.merge.counts().ahead, 0U);
}
TEST(MergeAheadTest, ARecordSeenByAFlushIsNotAhead) {
  Rings<> rings{1, {.slack = 10}};
  EXPECT_THAT(rings.run(100), IsEmpty());
  for (std::uint32_t i = 0; i < 80; ++i) rings.write(0, 250, i);
  EXPECT_THAT(rings.flush(0), IsEmpty());
  EXPECT_EQ(rings.run(400).size(), 80U);
  EXPECT_EQ(rings.merge.counts().ahead, 0U);
}

// A slack longer than the clock holds everything: B is 0.
TEST(MergeAheadTest, AnEventAheadWaitsWhileTheBoundIs0) {
  Rings<> rings{1, {.slack = 1000}};
  for (std::uint32_t i = 0; i < 20; ++i) rings.write(0, kLastOfKeys);
  EXPECT_THAT(rings.run(100), IsEmpty());
  EXPECT_EQ(rings.run(1001).size(), 20U);
  EXPECT_EQ(rings.merge.counts().ahead, 20U);
}

// flush() has read the record, without a clock.
TEST(MergeAheadTest, AKeyAheadThatAFlushLeavesStopsNoRing) {
  Rings<> rings{1, {.slack = 10}};
  rings.write(0, 50);
  rings[0].lost(7);
  for (const std::uint64_t key : {kLastOfKeys, kLastOfKeys - 1, std::uint64_t{60}}) {
    rings.write(0, key);
  }
  EXPECT_THAT(rings.flush(1), ElementsAre(sample(0, 50)));
  EXPECT_THAT(rings.run(100), ElementsAre(MergedEvent{0, 50, false, CopiedEvent::lost(7)},
                                          ordered(0, 50, kLastOfKeys),
                                          ordered(0, 50, kLastOfKeys - 1), sample(0, 60)))
      << "equal keys come in the ring's order";
  EXPECT_EQ(rings.merge.counts().ahead, 2U);
  EXPECT_EQ(rings.tail(0), rings[0].head());
}

TEST(MergeAheadTest, WhatAFlushLeavesFollowsTheRecordThatWaits) {
  Rings<> rings{1, {.slack = 10}};
  for (const std::uint64_t key : {kLastOfKeys, std::uint64_t{95}, kLastOfKeys - 1}) {
    rings.write(0, key);
  }
  EXPECT_THAT(rings.flush(0), IsEmpty());
  rings.write(0, kLastOfKeys);
  EXPECT_THAT(rings.run(100), ElementsAre(ordered(0, 0, kLastOfKeys)));
  EXPECT_THAT(rings.run(106), ElementsAre(sample(0, 95), ordered(0, 95, kLastOfKeys - 1),
                                          ordered(0, 95, kLastOfKeys)));
}

// A Malformed takes the key of the record before it, or the newest key delivered, which was ahead.
TEST(MergeAheadTest, AMalformedAfterAFlushAheadStopsNoRing) {
  Rings<> rings{2, {.slack = 10}};
  rings.write(0, kLastOfKeys);
  EXPECT_EQ(rings.flush().size(), 1U);
  for (const std::size_t ring : {0U, 1U}) {
    rings[ring].raw_record(77, 16, testing::payload(8), 16);
    const auto merged = rings.run(100);
    ASSERT_EQ(merged.size(), 1U) << ring;
    EXPECT_EQ(merged[0].key, 89U) << ring;
    EXPECT_TRUE(merged[0].late) << ring;
  }
}

TEST(MergeAheadTest, ManyKeysAheadLeftByFlushStopNoRing) {
  for (const std::uint64_t limit : {1U, 2U, 11U, 12U, 30U}) {
    Rings<> rings{1};
    for (std::uint32_t i = 0; i < 40; ++i) rings.write(0, i < 20 ? i : kLastOfKeys - 100 + i, i);
    EXPECT_EQ(rings.flush(limit).size(), limit);
    EXPECT_EQ(rings.run(1000).size(), 40U - limit);
    EXPECT_EQ(rings.merge.counts().ahead, 40 - std::max(limit, std::uint64_t{20}));
    EXPECT_EQ(rings.merge.counts().late, limit > 20 ? 40 - limit : 0) << "than what was flushed";
  }
}

}  // namespace
}  // namespace perfring
