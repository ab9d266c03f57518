// M6 and M9: events of a merge that are not samples, and rings that break the kernel's contract.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/loser_tree.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kKeyedSize;
using testing::MergedEvent;
using testing::payload;
using testing::Rings;
using testing::sample;

constexpr std::size_t kLostSize = 24;

MergedEvent lost(std::size_t ring, std::uint64_t key, std::uint64_t count) {
  return {ring, key, false, CopiedEvent::lost(count)};
}

TEST(MergeLostTest, ALostTakesTheKeyOfTheNextSampleOfItsRing) {
  Rings<> rings{2};
  rings.write(0, 10);
  rings[0].lost(3);
  rings.write(0, 30);
  rings.write(1, 20);
  rings.write(1, 40);
  EXPECT_THAT(rings.run(50), ElementsAre(sample(0, 10), sample(1, 20), lost(0, 30, 3),
                                         sample(0, 30), sample(1, 40)));
}

TEST(MergeLostTest, ALostIsSortedWithItsDisplacedSample) {
  Rings<> rings{1};
  rings.write(0, 10);
  rings.write(0, 30);
  rings[0].lost(3);
  rings.write(0, 20);
  EXPECT_THAT(rings.run(50),
              ElementsAre(sample(0, 10), lost(0, 20, 3), sample(0, 20), sample(0, 30)));
}

TEST(MergeLostTest, SeveralLostTakeTheKeyOfTheSampleAfterThem) {
  Rings<> rings{2};
  for (std::uint64_t i = 0; i < 20; ++i) rings[0].lost(i);
  rings.write(0, 30);
  rings.write(1, 20);
  const auto merged = rings.run(50);
  ASSERT_EQ(merged.size(), 22U);
  EXPECT_EQ(merged[0], sample(1, 20));
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(merged[i + 1], lost(0, 30, i));
}

TEST(MergeLostTest, ALostWithoutASampleAfterItWaitsForOne) {
  Rings<> rings{1, {.slack = 10}};
  rings[0].lost(3);
  EXPECT_THAT(rings.run(100), IsEmpty());
  EXPECT_EQ(rings.tail(0), 0U);
  rings.write(0, 95);
  EXPECT_THAT(rings.run(110), ElementsAre(lost(0, 95, 3), sample(0, 95)));
}

TEST(MergeLostTest, LostWithoutSampleTakesBoundOfFirstWait) {
  Rings<> rings{2, {.slack = 10, .learns = false}};
  rings[0].lost(3);
  rings.write(1, 89);
  EXPECT_THAT(rings.run(100), ElementsAre(sample(1, 89)));
  rings[0].lost(4);
  rings.write(1, 91);
  EXPECT_THAT(rings.run(105), ElementsAre(lost(0, 90, 3), sample(1, 91)))
      << "the second one waits by itself";
  EXPECT_EQ(rings.tail(0), kLostSize);
  EXPECT_THAT(rings.run(110), ElementsAre(lost(0, 95, 4)));
  EXPECT_EQ(rings.tail(0), 2 * kLostSize);
  EXPECT_EQ(rings.merge.counts().late, 0U);
}

TEST(MergeLostTest, AFlushDoesNotWaitForTheSampleAfterALost) {
  Rings<> rings{2};
  rings.write(0, 20);
  rings[0].lost(3);
  rings.write(1, 10);
  rings.write(1, 30);
  EXPECT_THAT(rings.flush(),
              ElementsAre(sample(1, 10), sample(0, 20), lost(0, 20, 3), sample(1, 30)));
}

TEST(MergeLostTest, ManyLostAreSearchedForASampleOnlyOnce) {
  constexpr std::size_t kSize = std::size_t{1} << 22;
  Rings<> rings{1, {.slack = 0}, kSize};
  while (rings[0].head() + kLostSize <= kSize) rings[0].lost(1);
  const std::size_t all = kSize / kLostSize;
  EXPECT_THAT(rings.run(10), IsEmpty());
  EXPECT_EQ(rings.run(20).size(), all) << "and takes minutes if each looks for a sample anew";
}

TEST(MergeLostTest, ALostMeetsTheClockAsItsSampleDoes) {
  Rings<> rings{1};
  rings[0].lost(3);
  rings.write(0, 1000);
  EXPECT_THAT(rings.run(50),
              ElementsAre(lost(0, 0, 3),
                          MergedEvent{0, 0, false, CopiedEvent::sample(testing::keyed(1000))}));
  EXPECT_EQ(rings.merge.counts().ahead, 1U);
}

TEST(MergeMalformedTest, AMalformedTakesTheKeyOfTheRecordBeforeIt) {
  Rings<> rings{2};
  rings.write(0, 10);
  rings[0].raw_record(77, 16, payload(8), 16);
  rings.write(0, 30);
  rings.write(1, 20);
  const auto merged = rings.run(50);
  ASSERT_EQ(merged.size(), 4U);
  EXPECT_EQ(merged[1].key, 10U);
  EXPECT_EQ(merged[1].event.defect, Defect::UnexpectedType);
  EXPECT_EQ(merged[1].event.bytes, rings[0].bytes(kKeyedSize, kKeyedSize + 16));
  EXPECT_THAT((std::vector<MergedEvent>{merged[0], merged[2], merged[3]}),
              ElementsAre(sample(0, 10), sample(1, 20), sample(0, 30)));
}

TEST(MergeMalformedTest, MalformedAfterManyEventsTakesLastKey) {
  Rings<> rings{1};
  for (std::uint64_t i = 0; i < 30; ++i) rings.write(0, i);
  rings[0].raw_record(77, 16, payload(8), 16);
  const auto merged = rings.run(50);
  ASSERT_EQ(merged.size(), 31U);
  EXPECT_EQ(merged[30].event.kind, CopiedEvent::Kind::Malformed);
  EXPECT_EQ(merged[30].key, 29U);
}

TEST(MergeMalformedTest, MalformedWithoutPredecessorComesNext) {
  Rings<> rings{2};
  rings.write(1, 20);
  rings.run(50);
  rings[0].raw_record(77, 16, payload(8), 16);
  rings.write(1, 60);
  const auto merged = rings.run(70);
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].key, 20U);
  EXPECT_FALSE(merged[0].late);
  EXPECT_EQ(merged[0].event.kind, CopiedEvent::Kind::Malformed);
}

TEST(MergeMalformedTest, BadSizeEndsLookOfItsRingOnly) {
  Rings<> rings{2};
  rings.write(0, 10);
  rings[0].raw_record(9, 12, {}, 64);
  rings.write(0, 15);
  for (const std::uint64_t key : {5U, 20U, 30U}) rings.write(1, key);
  const auto merged = rings.run(50);
  ASSERT_EQ(merged.size(), 5U);
  EXPECT_EQ(merged[2].event, CopiedEvent::malformed(
                                 Defect::BadSize, rings[0].bytes(kKeyedSize, 2 * kKeyedSize + 64)));
  EXPECT_EQ(rings.tail(0), rings[0].head());
  rings.write(0, 60);
  EXPECT_THAT(rings.run(70), ElementsAre(sample(0, 60)));
}

TEST(MergeMalformedTest, RingContinuesAfterBadPositions) {
  Rings<> rings{2};
  rings.write(0, 10);
  rings.run(11);
  rings[0].advance(65536 + 8);
  rings.write(1, 20);
  auto merged = rings.run(30);
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].event.defect, Defect::BadPositions);
  EXPECT_EQ(merged[0].event.bytes.size(), 65536U);
  EXPECT_EQ(merged[1], sample(1, 20));
  EXPECT_EQ(rings.tail(0), rings[0].head());
  rings.write(0, 60);
  EXPECT_THAT(rings.run(70), ElementsAre(sample(0, 60)));
}

TEST(MergeMalformedTest, WaitingBadPositionsStayUnchanged) {
  Rings<> rings{1};
  rings.write(0, 10);
  rings[0].advance(3);
  const auto bytes = rings[0].bytes(0, kKeyedSize + 3);
  EXPECT_THAT(rings.run(11, 0), IsEmpty());
  rings[0].advance(5);
  const auto merged = rings.run(30);
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].event, CopiedEvent::malformed(Defect::BadPositions, bytes));
  EXPECT_EQ(rings.tail(0), kKeyedSize + 3);
}

// The first run reads some of 100 records and consumes 2. Then data_head goes back: among the
// records that were not read, among those that were read, or among those that were consumed.
TEST(MergeM9Test, HeadMovingBackHidesNoRecords) {
  for (const std::uint64_t left : {99U, 50U, 5U, 1U, 0U}) {
    Rings<> rings{1, {.slack = 0}};
    for (std::uint64_t i = 1; i <= 100; ++i) rings.write(0, i);
    EXPECT_THAT(rings.run(200, 2), ElementsAre(sample(0, 1), sample(0, 2)));
    rings[0].page().data_head = left * kKeyedSize;
    const auto merged = rings.run(300);
    ASSERT_EQ(merged.size(), 98U) << left;
    for (std::size_t i = 0; i < 98; ++i) EXPECT_EQ(merged[i], sample(0, i + 3));
    EXPECT_EQ(rings.merge.counts().longest_delay, 0U) << left;
    EXPECT_EQ(rings.tail(0), 100 * kKeyedSize);
    EXPECT_THAT(rings.run(350), IsEmpty()) << "and it is still back";
    EXPECT_EQ(rings.tail(0), 100 * kKeyedSize);
    rings.write(0, 360);
    EXPECT_THAT(rings.run(400), ElementsAre(sample(0, 360)));
  }
}

TEST(MergeMalformedTest, AnUnalignedHeadThatWentBackIsBadPositions) {
  Rings<> rings{1};
  for (std::uint64_t i = 1; i <= 100; ++i) rings.write(0, i);
  EXPECT_THAT(rings.run(200, 1), ElementsAre(sample(0, 1)));
  rings[0].page().data_head = 50 * kKeyedSize + 4;
  const auto merged = rings.run(300);
  ASSERT_FALSE(merged.empty());
  EXPECT_EQ(merged.back().event.defect, Defect::BadPositions);
}

TEST(MergeMalformedTest, ASampleTooShortForItsKeyHasTheLowest) {
  Rings<> rings{1};
  rings[0].sample(payload(4));
  const auto merged = rings.run(10);
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].key, 0U);
}

}  // namespace
}  // namespace perfring

namespace perfring::internal {
namespace {

// With any number of leaves, the winner is the smallest word, and second() is the smallest of the
// other words.
TEST(LoserTreeTest, TheSmallestWins) {
  std::uint64_t random = 1;
  for (std::size_t leaves = 1; leaves <= 70; ++leaves) {
    std::vector<std::uint64_t> words;
    for (std::size_t i = 0; i < leaves; ++i) words.push_back((1000 << 8) + i);
    LoserTree tree;
    tree.reserve(leaves);
    tree.resize(leaves);
    std::uint64_t winner = tree.play([&](std::size_t leaf) { return words[leaf]; });
    for (unsigned step = 0; step < 500; ++step) {
      ASSERT_EQ(winner, *std::min_element(words.begin(), words.end())) << leaves << " leaves";
      const std::size_t leaf = winner & 255;
      words[leaf] = ~std::uint64_t{0};
      ASSERT_EQ(tree.second(leaf), *std::min_element(words.begin(), words.end()));
      random = random * 6364136223846793005U + 1442695040888963407U;
      words[leaf] = (random >> 50) << 8 | leaf;
      winner = tree.replace(leaf, words[leaf]);
    }
  }
}

TEST(LoserTreeTest, ASecondPlayTakesNothingFromTheFirst) {
  LoserTree tree;
  tree.resize(3);
  EXPECT_EQ(tree.play([](std::size_t leaf) { return 10 + leaf; }), 10U);
  EXPECT_EQ(tree.play([](std::size_t leaf) { return 30 - leaf; }), 28U);
}

// M8: for records that a flush has read and left, even if a key goes back by more than the window's
// length.
TEST(MergeOddTest, AKeyMeetsTheClockThoughALowerOneFollows) {
  Rings<DefaultMemory, 1> rings{1};
  rings.write(0, ~std::uint64_t{0}, 1);
  rings.write(0, 5, 2);
  EXPECT_THAT(rings.flush(0), IsEmpty());
  const auto merged = rings.run(1000);
  EXPECT_EQ(rings.merge.counts().ahead, 1U);
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].key, 0U);
  EXPECT_EQ(merged[1], sample(0, 5, 2));
}

TEST(MergeOddTest, MalformedTakesAdjustedKeyOfPredecessor) {
  Rings<> rings{1};
  rings.write(0, 7);
  EXPECT_EQ(rings.run(10).size(), 1U);
  rings.write(0, 1000);
  EXPECT_THAT(rings.flush(0), IsEmpty());
  rings[0].raw_record(77, 16, payload(8), 16);
  const auto merged = rings.run(50);
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].key, 7U) << "the newest that was delivered";
  EXPECT_EQ(merged[1].key, 7U);
}

TEST(MergeOddTest, KeyEqualToClockIsNotAheadAfterFlush) {
  Rings<> rings{1};
  rings.write(0, 50);
  EXPECT_THAT(rings.flush(0), IsEmpty());
  EXPECT_THAT(rings.run(50), IsEmpty());
  EXPECT_THAT(rings.run(51), ElementsAre(sample(0, 50)));
  EXPECT_EQ(rings.merge.counts().ahead, 0U);
}

// A ring may be written to during a run. A ring that had no further record in this run gets none
// until the next run, so the record that was found to be next remains next.
TEST(MergeOddTest, LostThatBecomesSampleWaitsForNextRun) {
  Rings<> rings{1};
  rings.write(0, 10);
  rings.write(0, 20);
  rings[0].lost(1);
  const auto become_sample = [&] {
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, kKeyedSize};
    const std::uint32_t raw = 12;
    const std::uint64_t key = 15;
    std::byte* const record = rings[0].data().data() + 2 * kKeyedSize;
    std::memcpy(record, &header, sizeof(header));
    std::memcpy(record + 8, &raw, sizeof(raw));
    std::memcpy(record + 12, &key, sizeof(key));
  };
  std::vector<std::uint64_t> keys;
  const auto take = [&](const Ordered& each) {
    keys.push_back(each.key);
    become_sample();
  };
  const auto clock = [] { return std::uint64_t{1000}; };
  rings.merge.run(KeyAt{}, clock, take);
  EXPECT_THAT(keys, ElementsAre(10, 20));
  rings.merge.run(KeyAt{}, clock, take);
  EXPECT_THAT(keys, ElementsAre(10, 20, 15));
}

// The keys are so far apart that no base suits both.
TEST(MergeOddTest, AKeyFarBelowTheOneBeforeItEndsNothing) {
  Rings<DefaultMemory, 1> rings{2};
  rings.write(0, 5);
  rings.write(1, ~std::uint64_t{0});
  rings.write(1, 7);
  EXPECT_THAT(rings.flush(),
              ElementsAre(sample(0, 5), sample(1, ~std::uint64_t{0}), testing::late(1, 7)));
  EXPECT_EQ(rings.end, MergeEnd::Released);
  EXPECT_EQ(rings.merge.counts().delivered, 3U);
  // The same in a run of events from one ring.
  rings.write(1, ~std::uint64_t{0});
  rings.write(1, 7);
  EXPECT_EQ(rings.flush().size(), 2U);
  EXPECT_EQ(rings.end, MergeEnd::Released);
}

}  // namespace
}  // namespace perfring::internal
