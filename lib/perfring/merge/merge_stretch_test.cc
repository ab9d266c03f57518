// Rings with many similar records, which a merge reads in one go (lane.h). An odd record among
// them, at any place, must have the same effect as if each record were read by itself.

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
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using testing::kKeyedSize;
using testing::Rings;

constexpr std::uint32_t kCount = 100;
constexpr std::uint64_t kNow = 1'000'000;

// The key of record i, if nothing is odd.
constexpr std::uint64_t key_of(std::uint32_t i) {
  return 1000 + 10 * std::uint64_t{i};
}

template <class R>
void write_even(R& rings, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t i = from; i < to; ++i) rings.write(0, key_of(i), i);
}

std::vector<std::uint64_t> keys_of(const std::vector<testing::MergedEvent>& merged) {
  std::vector<std::uint64_t> keys;
  for (const testing::MergedEvent& each : merged) keys.push_back(each.key);
  return keys;
}

// Writes one record `by` places after the place that its key calls for.
template <unsigned kWindow>
void displace(std::uint32_t place, std::uint32_t by) {
  Rings<DefaultMemory, kWindow> rings{1};
  write_even(rings, 0, place);
  rings.write(0, key_of(place - by) - 5, kCount);
  write_even(rings, place, kCount);
  const auto merged = rings.run(kNow);
  ASSERT_EQ(merged.size(), kCount + 1U);
  const auto& counts = rings.merge.counts();
  if (by < kWindow) {
    EXPECT_TRUE(std::ranges::is_sorted(keys_of(merged))) << place;
    EXPECT_EQ(counts.late, 0U) << place;
    EXPECT_EQ(counts.displaced, 1U) << place;
  } else {
    EXPECT_EQ(counts.late, 1U) << place;
    // The last record delivered before it is kWindow places before it.
    EXPECT_EQ(counts.worst_late, 10 * (by - kWindow) + 5) << place;
  }
  EXPECT_EQ(rings.tail(0), (kCount + 1) * kKeyedSize);
}

TEST(MergeStretchTest, WindowRepairsKeysWithinItsReach) {
  for (std::uint32_t place = 9; place < kCount; ++place) {
    for (const std::uint32_t by : {1U, 7U, 8U, 9U}) displace<8>(place, by);
    for (const std::uint32_t by : {1U, 2U, 3U}) displace<1>(place, by);
  }
}

TEST(MergeStretchTest, OnlyDeliveredRecordsAreReleased) {
  for (const std::uint64_t limit : {1U, 2U, 7U, 8U, 9U, 31U, 63U, 64U, 65U, 66U, 99U}) {
    Rings<> rings{2};
    write_even(rings, 0, kCount);
    std::uint32_t next = 0;
    while (next != kCount) {
      for (const testing::MergedEvent& each : rings.run(kNow, limit)) {
        ASSERT_EQ(each, testing::sample(0, key_of(next), next)) << limit;
        ++next;
      }
      ASSERT_EQ(rings.tail(0), next * kKeyedSize) << limit;
    }
  }
}

TEST(MergeStretchTest, TwoRingsInRunsComeInTheirOrder) {
  for (const std::uint32_t run : {1U, 2U, 3U, 16U, 40U}) {
    Rings<> rings{2};
    for (std::uint32_t i = 0; i != 4 * kCount; ++i) rings.write(i / run % 2, key_of(i), i);
    const auto merged = rings.run(kNow);
    ASSERT_EQ(merged.size(), 4U * kCount);
    for (std::uint32_t i = 0; i != merged.size(); ++i) {
      ASSERT_EQ(merged[i], testing::sample(i / run % 2, key_of(i), i)) << run;
    }
  }
}

TEST(MergeStretchTest, ACallbackMayStopOrThrowAtAnyEvent) {
  for (std::uint32_t at = 0; at != kCount; ++at) {
    Rings<> rings{1};
    write_even(rings, 0, kCount);
    const auto clock = [] { return kNow; };
    std::uint32_t delivered = 0;
    EXPECT_THROW(rings.merge.run(KeyAt{}, clock,
                                 [&](const Ordered&) {
                                   if (delivered++ == at) throw std::runtime_error{"enough"};
                                 }),
                 std::runtime_error);
    ASSERT_EQ(rings.tail(0), (at + 1) * kKeyedSize);
    if (at + 1 == kCount) break;
    EXPECT_EQ(rings.merge.run(KeyAt{}, clock, [](const Ordered&) { return false; }),
              MergeEnd::Stopped);
    ASSERT_EQ(rings.tail(0), (at + 2) * kKeyedSize);
    EXPECT_EQ(rings.run(kNow).size(), kCount - at - 2);
    EXPECT_EQ(rings.merge.counts(), (MergeCounts{.delivered = kCount}));
  }
}

TEST(MergeStretchTest, AKeyThatThrowsLosesNothing) {
  for (std::uint32_t at = 0; at != kCount; ++at) {
    Rings<> rings{1};
    write_even(rings, 0, kCount);
    std::uint32_t delivered = 0;
    const auto take = [&](const Ordered& each) { ASSERT_EQ(each.key, key_of(delivered++)); };
    const auto key = [at](const Sample& each) {
      if (KeyAt{}(each) == key_of(at)) throw std::runtime_error{"no key"};
      return KeyAt{}(each);
    };
    EXPECT_THROW(rings.merge.run(key, [] { return kNow; }, take), std::runtime_error);
    ASSERT_LE(delivered, at);
    ASSERT_EQ(rings.tail(0), delivered * kKeyedSize);
    rings.merge.run(KeyAt{}, [] { return kNow; }, take);
    ASSERT_EQ(delivered, kCount);
    ASSERT_EQ(rings.merge.counts(), (MergeCounts{.delivered = kCount}));
  }
}

// The same with a second look, begun when part of the first has been read; and where the ring
// wraps.
TEST(MergeStretchTest, KeyThrowingAcrossLooksLosesNothing) {
  constexpr std::size_t kRing = 4096;
  for (const std::uint32_t before_end : {0U, 20U, 50U}) {
    for (std::uint32_t at = 0; at != kCount; ++at) {
      Rings<> rings{1, {.slack = 0, .learns = false}, kRing, kRing - before_end * kKeyedSize};
      const std::uint64_t start = rings.tail(0);
      std::uint32_t delivered = 0;
      const auto take = [&](const Ordered& each) { ASSERT_EQ(each.key, key_of(delivered++)); };
      const auto key = [at](const Sample& each) {
        if (KeyAt{}(each) == key_of(at)) throw std::runtime_error{"no key"};
        return KeyAt{}(each);
      };
      const auto run = [&](auto by, std::uint64_t limit) {
        try {
          rings.merge.run(by, [] { return kNow; }, take, limit);
        } catch (const std::runtime_error&) {
        }
        ASSERT_EQ(rings.tail(0), start + delivered * kKeyedSize) << at;
      };
      write_even(rings, 0, 40);
      run(key, 5);
      write_even(rings, 40, kCount);
      run(key, kCount);
      run(KeyAt{}, kCount);
      ASSERT_EQ(delivered, kCount) << at;
      ASSERT_EQ(rings.merge.counts().delivered, kCount);
      ASSERT_EQ(rings.merge.counts().late, 0U);
    }
  }
}

TEST(MergeStretchTest, ARecordOfAnotherLengthMayBeAnywhere) {
  for (std::uint32_t at = 0; at != kCount; ++at) {
    Rings<> rings{1};
    write_even(rings, 0, at);
    auto longer = testing::keyed(key_of(at), at);
    longer.resize(36);
    rings[0].sample(longer);
    write_even(rings, at + 1, kCount);
    const auto merged = rings.run(kNow);
    ASSERT_EQ(merged.size(), kCount);
    for (std::uint32_t i = 0; i != kCount; ++i) {
      if (i == at) {
        ASSERT_EQ(merged[i].key, key_of(at));
        ASSERT_EQ(merged[i].event, testing::CopiedEvent::sample(longer));
      } else {
        ASSERT_EQ(merged[i], testing::sample(0, key_of(i), i)) << at;
      }
    }
  }
}

// Records end exactly at the ring's end. Some are read before others wrap to its start.
TEST(MergeStretchTest, AStretchEndsWithTheRing) {
  constexpr std::size_t kRing = 4096;
  constexpr std::size_t kSize = 32;
  for (std::uint32_t first = 9; first != kCount; ++first) {
    for (const std::uint64_t limit : {1U, 2U, 8U, 30U}) {
      Rings<> rings{1, {.slack = 0}, kRing, kRing - first * kSize};
      const auto write = [&](std::uint32_t from, std::uint32_t to) {
        for (std::uint32_t i = from; i != to; ++i) {
          auto payload = testing::keyed(key_of(i), i);
          payload.resize(20);
          rings[0].sample(payload);
        }
      };
      write(0, first);
      auto merged = rings.run(key_of(first), limit);
      write(first, kCount);
      for (const auto& each : rings.run(kNow)) merged.push_back(each);
      ASSERT_EQ(merged.size(), kCount);
      for (std::uint32_t i = 0; i != kCount; ++i) {
        auto payload = testing::keyed(key_of(i), i);
        payload.resize(20);
        ASSERT_EQ(merged[i].key, key_of(i)) << first << " " << limit;
        ASSERT_EQ(merged[i].event, testing::CopiedEvent::sample(payload)) << first << " " << limit;
      }
    }
  }
}

// M8: only a key that is read while the clock is below it is ahead.
TEST(MergeStretchTest, AKeyAheadOfTheClockEndsAStretch) {
  for (std::uint32_t at = 0; at != kCount; ++at) {
    Rings<> rings{1};
    write_even(rings, 0, at);
    rings.write(0, 2 * kNow, at);
    write_even(rings, at + 1, kCount);
    std::size_t delivered = rings.run(kNow).size();
    EXPECT_EQ(rings.merge.counts().ahead, 1U) << at;
    delivered += rings.flush().size();
    EXPECT_EQ(delivered, kCount);
    EXPECT_EQ(rings.tail(0), kCount * kKeyedSize);
  }
}

// Another consumer moves the ring's data_tail.
TEST(MergeStretchTest, ATailThatIsMovedForgetsWhatWasRead) {
  for (const std::uint32_t to : {20U, 21U, 40U, 60U, kCount}) {
    Rings<> rings{1};
    write_even(rings, 0, kCount);
    ASSERT_EQ(rings.run(kNow, 20).size(), 20U);
    rings[0].page().data_tail = to * kKeyedSize;
    const auto merged = rings.run(kNow);
    ASSERT_EQ(merged.size(), kCount - to);
    for (std::uint32_t i = to; i != kCount; ++i) {
      ASSERT_EQ(merged[i - to], testing::sample(0, key_of(i), i));
    }
  }
}

}  // namespace
}  // namespace perfring
