// The order of a TimeMerge: records that wait for their order, and records ahead of the clock,
// which do not.

#include "perfring/sampler/time_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "perfring/record/layout.h"
#include "perfring/ring/cursor.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/rings.h"

namespace perfring::event::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kFarAhead = 3'000'000'000;
constexpr std::uint64_t kTimedSize = 32;  // of each record that TimedRings writes
constexpr std::uint64_t kStart = 1'000'000'000'000;

struct MergedRecord {
  std::uint64_t time;
  bool late = false;
  bool ahead = false;

  bool operator==(const MergedRecord&) const = default;
};
std::ostream& operator<<(std::ostream& out, const MergedRecord& merged) {
  return out << merged.time << (merged.late ? " late" : "") << (merged.ahead ? " ahead" : "");
}
MergedRecord ahead(std::uint64_t time) {
  return {time, false, true};
}

perf_event_attr timed_attr() {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  return attr;
}

// Rings of samples with times.
class TimedRings {
 public:
  explicit TimedRings(std::size_t count) {
    merge_.decode_by(layout_);
    for (std::size_t i = 0; i < count; ++i) {
      fakes_.push_back(std::make_unique<perfring::testing::FakeRing>(std::size_t{1} << 16));
      merge_.add(Cursor<>::over(fakes_.back()->page(), fakes_.back()->data()).value());
    }
  }
  void write(std::size_t ring, std::uint64_t time) {
    fakes_[ring]->timed_sample(time, perfring::testing::keyed(time));
  }
  // Sets data_head back by this many records. All records have the same size.
  void back(std::size_t ring, std::uint64_t records) {
    const perfring::testing::FakeRing& fake = *fakes_[ring];
    fake.page().data_head = fake.head() - records * kTimedSize;
  }
  // Runs a round while the clock stands at `now`. Returns up to `limit` records.
  std::vector<MergedRecord> round(std::uint64_t now, std::size_t limit = ~std::size_t{0},
                                  bool all = false) {
    std::vector<MergedRecord> merged;
    merge_.look(now, [now] { return now; });
    while (merged.size() < limit) {
      const auto front = merge_.next(all);
      if (!front) break;
      merged.push_back({front->time, front->late, front->ahead});
    }
    merge_.release();
    return merged;
  }
  TimeMerge& merge() { return merge_; }

 private:
  record::Layout layout_{timed_attr()};
  std::vector<std::unique_ptr<perfring::testing::FakeRing>> fakes_;
  TimeMerge merge_;
};

// Writes 1000 records to each of two rings, within one millisecond. Then runs six rounds, a
// millisecond apart. Returns how many records each round delivers.
std::vector<std::size_t> handed_out(std::uint64_t offset) {
  TimedRings rings{2};
  std::uint64_t now = kStart;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    for (const std::size_t ring : {0U, 1U}) rings.write(ring, now + i + offset);
  }
  std::vector<std::size_t> counts;
  for (int i = 0; i < 6; ++i) counts.push_back(rings.round(now += kMillisecond).size());
  return counts;
}

TEST(TimeMergeTest, ARoundDeliversAllEventsAhead) {
  EXPECT_THAT(handed_out(0), ElementsAre(2000, 0, 0, 0, 0, 0));
  EXPECT_THAT(handed_out(kFarAhead), ElementsAre(2000, 0, 0, 0, 0, 0));
  EXPECT_THAT(handed_out(~std::uint64_t{0} - 2 * kStart), ElementsAre(2000, 0, 0, 0, 0, 0));
}

TEST(TimeMergeTest, EventsAheadComeInTheOrderOfTheirTimes) {
  TimedRings rings{3};
  rings.write(0, kStart + kFarAhead + 1);
  rings.write(0, kStart + kFarAhead + 4);
  rings.write(1, kStart + kFarAhead + 2);
  rings.write(2, kStart + kFarAhead + 3);
  rings.write(2, kStart - kMillisecond);
  EXPECT_THAT(rings.round(kStart),
              ElementsAre(ahead(kStart + kFarAhead + 1), ahead(kStart + kFarAhead + 2),
                          ahead(kStart + kFarAhead + 3), ahead(kStart + kFarAhead + 4),
                          MergedRecord{kStart - kMillisecond}));
}

TEST(TimeMergeTest, AnEventAheadMakesNoOtherLate) {
  TimedRings rings{2};
  rings.write(0, kStart + 1);
  EXPECT_THAT(rings.round(kStart), ElementsAre(ahead(kStart + 1)));
  rings.write(1, kStart - 50'000);
  rings.write(0, kStart + 2 * kMillisecond);
  EXPECT_THAT(rings.round(kStart + kMillisecond),
              ElementsAre(ahead(kStart + 2 * kMillisecond), MergedRecord{kStart - 50'000}));
}

// Two programs write to the same rings, each with its own clock.
TEST(TimeMergeTest, RightTimesAmongThoseAheadAreInTheirOrder) {
  TimedRings rings{2};
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::size_t ring = i / 3 % 2;
    rings.write(ring, kStart + i);
    for (std::uint64_t more = 0; more < i % 5; ++more) rings.write(ring, kStart + kFarAhead + i);
  }
  std::vector<std::uint64_t> right;
  for (const MergedRecord& each : rings.round(kStart + kMillisecond)) {
    EXPECT_FALSE(each.late);
    if (!each.ahead) right.push_back(each.time);
  }
  EXPECT_EQ(right.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(right));
}

TEST(TimeMergeTest, ATimeEqualToTheClockIsNotAheadOfIt) {
  TimedRings rings{2};
  rings.write(0, kStart);
  EXPECT_THAT(rings.round(kStart), IsEmpty());
  EXPECT_EQ(rings.merge().due(), kStart + 100'001);
  EXPECT_THAT(rings.round(kStart + 100'000), IsEmpty());
  EXPECT_THAT(rings.round(kStart + 100'001), ElementsAre(MergedRecord{kStart}));
}

TEST(TimeMergeTest, AnEventAheadWaitsOnlyForTheRecordBeforeIt) {
  TimedRings rings{2};
  rings.write(0, kStart);
  rings.write(0, kStart + kFarAhead);
  EXPECT_THAT(rings.round(kStart), IsEmpty());
  EXPECT_THAT(rings.round(kStart + 100'001),
              ElementsAre(MergedRecord{kStart}, ahead(kStart + kFarAhead)));
}

// When a record is read, its time is in the past. When a look first found it, its time was in the
// future.
TEST(TimeMergeTest, ARecordThatWasSeenBeforeItsTimeIsAhead) {
  TimedRings rings{2};
  const std::uint64_t later = kStart + kFarAhead;
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, later - 20 + i);
  EXPECT_THAT(rings.round(kStart, 1), ElementsAre(ahead(later - 20)));
  rings.write(0, later - 1);
  const auto merged = rings.round(later);
  ASSERT_EQ(merged.size(), 19U) << "all but the last, which may be right";
  for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(merged[i], ahead(later - 19 + i));
  EXPECT_THAT(rings.round(later + kMillisecond), ElementsAre(MergedRecord{later - 1}));
}

// S11: a record that was found before its time is still ahead.
TEST(TimeMergeTest, AHeadThatWentBackMakesNoRecordNew) {
  TimedRings rings{1};
  const std::uint64_t later = kStart + kFarAhead;
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, later - 20 + i);
  EXPECT_THAT(rings.round(kStart, 1), ElementsAre(ahead(later - 20)));
  rings.back(0, 10);
  const auto merged = rings.round(later);
  ASSERT_GE(merged.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(merged[i], ahead(later - 19 + i));
  rings.back(0, 0);
  EXPECT_EQ(merged.size() + rings.round(later + kMillisecond).size(), 19U);
}

TEST(TimeMergeTest, FlushHandsOutAllRecords) {
  TimedRings rings{2};
  rings.write(0, kStart - 1);
  rings.write(1, kStart + kFarAhead);
  rings.write(1, kStart - 2);
  EXPECT_THAT(
      rings.round(kStart, ~std::size_t{0}, true),
      ElementsAre(ahead(kStart + kFarAhead), MergedRecord{kStart - 2}, MergedRecord{kStart - 1}));
}

}  // namespace
}  // namespace perfring::event::internal
