// Rings whose keys come from other clocks than the consumer's: each ring's clock is off by its own
// offset, of either sign. Merged by a Merge, as in RingSet, and by a TimeMerge, as in Sampler.
// However far a clock is off, no event waits for its order longer than twice the slack, and only
// keys of a clock that is behind are late.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event.h"
#include "perfring/record/layout.h"
#include "perfring/ring/cursor.h"
#include "perfring/sampler/time_merge.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/rings.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

constexpr std::uint64_t kFirst = 10'000'000'000'000;  // ns
constexpr std::uint64_t kSlackOfAll = 100'000;
constexpr std::uint64_t kOffsetMost = 4'000'000'000;
constexpr std::int64_t kBeyondAll = std::int64_t{1} << 40;
constexpr std::uint64_t kNoneIsRight = 0;

struct ClockedRecord {
  std::size_t ring;
  std::uint64_t published;
  std::uint64_t key;
  bool is_right;  // the key is from the right clock, whatever the ring's offset
};
// A delivered record.
struct DeliveredRecord {
  std::size_t record;
  bool late;
  bool ahead;
};

// A run looks at all rings, and sees the records published by `clock_after`.
struct ClockedRun {
  std::uint64_t clock;        // before the looks
  std::uint64_t clock_after;  // after them
  std::uint64_t bound(std::uint64_t slack) const { return clock > slack ? clock - slack : 0; }
};

struct Clocked {
  std::vector<std::int64_t> offsets;  // of each ring's clock, except for `is_right` records
  std::vector<ClockedRecord> records;
  std::vector<ClockedRun> runs;
};

std::ostream& operator<<(std::ostream& out, const Clocked& course) {
  out << "offsets";
  for (const std::int64_t offset : course.offsets) out << ' ' << offset;
  for (const ClockedRecord& each : course.records) {
    out << " [" << each.ring << ": " << each.key - kFirst << " at " << each.published - kFirst
        << "]";
  }
  for (const ClockedRun& run : course.runs) {
    out << "\nrun at " << run.clock - kFirst << " to " << run.clock_after - kFirst;
  }
  return out;
}

std::uint64_t number_below(std::uint64_t most) {
  return *rc::gen::inRange<std::uint64_t>(0, most);
}

std::int64_t draw_offset() {
  const std::uint64_t most =
      *one_of<std::uint64_t>({1, 1'000, kSlackOfAll, 2'000'000, 100'000'000, kOffsetMost});
  const auto offset = static_cast<std::int64_t>(number_below(most));
  return *rc::gen::arbitrary<bool>() ? offset : -offset;
}

// Draws bursts of records on all rings, some of them nested or far apart, and runs between the
// bursts, some of them after a pause. A writer takes at most the slack.
Clocked draw_clocked() {
  Clocked course;
  const auto rings = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<std::uint64_t> delays;
  // If a ring mixes right keys with those of a clock that is ahead, this clock must be ahead of the
  // whole course. Otherwise a window could not repair the order, and right keys would be late.
  const std::uint64_t right_one_in = *one_of<std::uint64_t>({kNoneIsRight, 2, 20});
  for (std::size_t i = 0; i < rings; ++i) {
    const std::int64_t offset = draw_offset();
    const bool is_far = right_one_in != kNoneIsRight && offset > 0;
    course.offsets.push_back(is_far ? offset + kBeyondAll : offset);
    delays.push_back(number_below(kSlackOfAll));
  }
  std::uint64_t now = kFirst;
  const std::uint64_t apart = *one_of<std::uint64_t>({20'000, 300'000, 1'000'000, 5'000'000});
  const auto runs = *rc::gen::inRange<std::size_t>(3, 40);
  for (std::size_t run = 0; run < runs; ++run) {
    const bool is_paused = number_below(16) == 0;
    const std::uint64_t until = now + 1 + number_below(is_paused ? kOffsetMost : apart);
    const std::uint64_t clock_after = until + number_below(50'000);
    const std::uint64_t many = number_below(60);
    for (std::uint64_t i = 0; i < many; ++i) {
      const std::uint64_t at = now + (clock_after - now) * (i + 1) / many;
      const auto ring = static_cast<std::size_t>(number_below(rings));
      const bool is_right = right_one_in != kNoneIsRight && number_below(right_one_in) == 0;
      const auto offset = static_cast<std::uint64_t>(is_right ? 0 : course.offsets[ring]);
      course.records.push_back({ring, at, at - delays[ring] + offset, is_right});
    }
    course.runs.push_back({until, clock_after});
    now = clock_after;
  }
  return course;
}

// Consumes by a Merge, as RingSet does.
template <bool kLearns, bool kClampsKeys = false>
class ClockedMerge {
 public:
  explicit ClockedMerge(std::size_t rings)
      : rings_{rings, {.slack = kSlackOfAll, .learns = kLearns}, std::size_t{1} << 17} {}

  void write(const ClockedRecord& record, std::size_t number) {
    rings_.write(record.ring, record.key, static_cast<std::uint32_t>(number));
  }
  std::vector<DeliveredRecord> run(const ClockedRun& at) {
    std::vector<DeliveredRecord> delivered;
    std::size_t clock_calls = 0;
    const auto clock = [&] {
      return clock_calls++ < rings_.merge.rings() ? at.clock : at.clock_after;
    };
    // The fault kClampsKeys: a key that is ahead becomes the clock's value, which the next run may
    // release.
    const auto key = [&](const Sample& sample) {
      return kClampsKeys ? std::min(KeyAt{}(sample), at.clock_after) : KeyAt{}(sample);
    };
    rings_.merge.run(key, clock, [&](const Ordered& each) { delivered.push_back(copy(each)); });
    return delivered;
  }
  std::vector<DeliveredRecord> flush() {
    std::vector<DeliveredRecord> delivered;
    rings_.merge.flush(KeyAt{}, [&](const Ordered& each) { delivered.push_back(copy(each)); });
    return delivered;
  }
  std::uint64_t slack() const { return rings_.merge.slack(); }
  std::uint64_t ahead() const { return rings_.merge.counts().ahead; }

 private:
  static DeliveredRecord copy(const Ordered& each) {
    const auto& sample = std::get<Sample>(each.event);
    std::uint32_t number = 0;
    std::memcpy(&number, sample.head.data() + sizeof(std::uint64_t), sizeof(number));
    return {number, each.late, each.key != KeyAt{}(sample)};
  }
  testing::Rings<> rings_;
};

// Consumes by a TimeMerge, as Sampler does.
template <bool kKnowsNoClock = false>
class ClockedTimeMerge {
 public:
  explicit ClockedTimeMerge(std::size_t rings) {
    merge_.decode_by(layout_);
    for (std::size_t i = 0; i < rings; ++i) {
      fakes_.push_back(std::make_unique<testing::FakeRing>(std::size_t{1} << 17));
      merge_.add(Cursor<>::over(fakes_.back()->page(), fakes_.back()->data()).value());
    }
  }
  void write(const ClockedRecord& record, std::size_t number) {
    fakes_[record.ring]->timed_sample(record.key, testing::keyed(number));
  }
  std::vector<DeliveredRecord> run(const ClockedRun& at) {
    // The fault kKnowsNoClock: no key is ahead of this clock.
    merge_.look(at.clock, [&] { return kKnowsNoClock ? ~std::uint64_t{0} : at.clock_after; });
    return take(false);
  }
  std::vector<DeliveredRecord> flush() { return take(true); }
  std::uint64_t slack() const { return kSlackOfAll; }
  std::uint64_t ahead() const { return ahead_; }

 private:
  static perf_event_attr attr() {
    perf_event_attr attr{};
    attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
    return attr;
  }
  std::vector<DeliveredRecord> take(bool all) {
    std::vector<DeliveredRecord> delivered;
    while (const auto front = merge_.next(all)) {
      std::uint64_t number = 0;
      std::memcpy(&number, front->bytes.data() + 20, sizeof(number));
      delivered.push_back({static_cast<std::size_t>(number), front->late, front->ahead});
      ahead_ += front->ahead;
    }
    merge_.release();
    return delivered;
  }
  record::Layout layout_{attr()};
  std::vector<std::unique_ptr<testing::FakeRing>> fakes_;
  event::internal::TimeMerge merge_;
  std::uint64_t ahead_ = 0;
};

// Returns the first run, at or after `from`, that releases every key up to `then`.
std::size_t releases(const Clocked& course, std::size_t from, std::uint64_t then,
                     std::uint64_t slack) {
  while (from < course.runs.size() && course.runs[from].bound(slack) <= then) ++from;
  return from;
}

bool has_right(const Clocked& course, std::size_t ring) {
  return std::ranges::any_of(course.records, [ring](const ClockedRecord& each) {
    return each.ring == ring && each.is_right;
  });
}

// Judges a record that was delivered in run `run`; runs.size() is the flush.
void judge_one(const Clocked& course, const DeliveredRecord& delivered, std::size_t run,
               std::uint64_t slack) {
  const ClockedRecord& record = course.records[delivered.record];
  std::size_t saw = 0;
  while (course.runs[saw].clock_after < record.published) ++saw;
  RC_ASSERT_INVARIANT(merged, run >= saw);
  // Its clock is behind, or a flush delivered it, which orders events by their own keys (M8).
  const bool may_be_late = (!record.is_right && course.offsets[record.ring] < 0) ||
                           (run == course.runs.size() && has_right(course, record.ring));
  const bool is_ahead = record.key > course.runs[saw].clock_after;
  RC_ASSERT_INVARIANT(late, !delivered.late || may_be_late);
  const std::size_t one = releases(course, saw, course.runs[saw].clock_after, slack);
  if (record.key <= record.published) {
    // The right clock, or one that is behind: released as soon as nothing older can follow.
    RC_ASSERT_INVARIANT(merged, run <= one);
    RC_ASSERT_INVARIANT(merged, !delivered.ahead);
  } else {
    const std::uint64_t then = one == course.runs.size() ? 0 : course.runs[one].clock_after;
    RC_ASSERT_INVARIANT(merged,
                        one == course.runs.size() || run <= releases(course, one, then, slack));
    RC_ASSERT_INVARIANT(merged, !delivered.ahead || is_ahead);
  }
  // In a ring whose keys are ahead of the whole course, the run that finds the record releases it.
  // If the slack has grown by then, so that the bound went back, the first run whose bound is past
  // that look does.
  const std::int64_t offset = course.offsets[record.ring];
  if (!has_right(course, record.ring) &&
      offset > static_cast<std::int64_t>(course.runs.back().clock_after - kFirst + kSlackOfAll)) {
    RC_ASSERT_INVARIANT(merged, run == saw || (slack > kSlackOfAll && run <= one));
    RC_ASSERT_INVARIANT(merged, delivered.ahead || run == course.runs.size());
  }
}

template <class Consumer>
void keeps_no_event_waiting() {
  const Clocked course = draw_clocked();
  RC_LOG() << course;
  Consumer consumer{course.offsets.size()};
  std::vector<std::pair<std::size_t, DeliveredRecord>> all;
  std::size_t written = 0;
  for (std::size_t run = 0; run <= course.runs.size(); ++run) {
    const bool is_flush = run == course.runs.size();
    for (; !is_flush && written < course.records.size() &&
           course.records[written].published <= course.runs[run].clock_after;
         ++written) {
      consumer.write(course.records[written], written);
    }
    for (const DeliveredRecord& delivered :
         is_flush ? consumer.flush() : consumer.run(course.runs[run])) {
      all.emplace_back(run, delivered);
    }
  }
  std::vector<bool> seen(course.records.size());
  std::vector<std::uint64_t> right;
  std::uint64_t ahead = 0;
  for (const auto& [run, delivered] : all) {
    RC_ASSERT_INVARIANT(once, !seen[delivered.record]);
    seen[delivered.record] = true;
    ahead += run != course.runs.size() && delivered.ahead;
    judge_one(course, delivered, run, consumer.slack());
    const ClockedRecord& record = course.records[delivered.record];
    const bool is_right = record.is_right || course.offsets[record.ring] == 0;
    if (is_right && !delivered.late) right.push_back(record.key);
  }
  RC_ASSERT_INVARIANT(no_loss, written == all.size());
  RC_ASSERT_INVARIANT(merged, std::ranges::is_sorted(right));
  RC_ASSERT_INVARIANT(merged, consumer.ahead() >= ahead);
}

TEST(MergeClocksTest, MergeHoldsNoEventPastTwiceTheSlack) {
  always(keeps_no_event_waiting<ClockedMerge<false>>, 400);
}
TEST(MergeClocksTest, NorDoesOneWhoseSlackLearns) {
  always(keeps_no_event_waiting<ClockedMerge<true>>, 200);
}
TEST(MergeClocksTest, TimeMergeHoldsNoRecordPastTwiceTheSlack) {
  always(keeps_no_event_waiting<ClockedTimeMerge<>>, 400);
}
// A former version of M8.
TEST(MergeClocksTest, FindsAKeyAheadThatBecomesTheClock) {
  EXPECT_TRUE(
      (counterexample(keeps_no_event_waiting<ClockedMerge<false, true>>, Invariant::merged)));
}
TEST(MergeClocksTest, FindsATimeMergeThatKnowsNothingAhead) {
  EXPECT_TRUE((counterexample(keeps_no_event_waiting<ClockedTimeMerge<true>>, Invariant::merged)));
}

// Each run delivers all events so far except those younger than twice the slack, whatever the
// offset of the rings' clock.
template <class Consumer>
void delivers_by_offset(std::int64_t offset) {
  constexpr std::uint64_t kEach = 400;
  Consumer consumer{2};
  std::uint64_t now = kFirst;
  std::size_t written = 0;
  std::size_t delivered = 0;
  for (int run = 0; run < 6; ++run) {
    const std::uint64_t step = 1'000'000;
    for (std::uint64_t i = 0; i < kEach; ++i, ++written) {
      const std::uint64_t at = now + (i + 1) * step / kEach;
      consumer.write({written % 2, at, at + static_cast<std::uint64_t>(offset), false}, written);
    }
    now += step;
    delivered += consumer.run({now, now}).size();
    EXPECT_GE(delivered + kEach / 5 + 1, written) << offset << ", run " << run;
  }
}

TEST(MergeClocksTest, EachRoundDeliversAsManyAsWithTheRightClock) {
  for (const std::int64_t by : {0LL, 1LL, 50'000LL, 3'000'000LL, 3'000'000'000LL}) {
    for (const std::int64_t offset : {by, -by}) {
      delivers_by_offset<ClockedMerge<false>>(offset);
      delivers_by_offset<ClockedTimeMerge<>>(offset);
    }
  }
}

}  // namespace
}  // namespace perfring::proptests
