// Merges of rings with delayed writers, of rings with arbitrary keys, and of a hostile ring with a
// sound one.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "harness/faults/memory_faults.h"
#include "harness/oracle/drain_watch.h"
#include "harness/rig/watched_cpu.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/reference_drain.h"
#include "perfring/testing/rings.h"
#include "proptests/hostile_image.h"
#include "proptests/merge_course.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::CopiedEvent;
using testing::keyed;
using testing::MergedEvent;

// Recomputes the counts of late events from the events.
void check_counts(const std::vector<MergedEvent>& delivered, const MergeCounts& counts) {
  std::uint64_t late = 0;
  std::uint64_t worst = 0;
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    std::uint64_t newest = 0;
    for (std::size_t j = 0; j < i; ++j) newest = std::max(newest, delivered[j].key);
    RC_ASSERT(delivered[i].late == (delivered[i].key < newest));
    if (delivered[i].late) {
      ++late;
      worst = std::max(worst, newest - delivered[i].key);
    }
  }
  RC_ASSERT(counts.delivered == delivered.size());
  RC_ASSERT(counts.late == late);
  RC_ASSERT(counts.worst_late == worst);
  RC_ASSERT(counts.ahead == 0U);
}

// Returns the longest delay that the looks prove. The look before the one that first saw a record
// proves that the record was not yet published when the clock was read for that look.
std::uint64_t longest_proved(const Course& course) {
  std::uint64_t longest = 0;
  for (const CourseRecord& each : course.records) {
    std::uint64_t before = 0;
    for (const Turn& turn : course.turns) {
      if (each.published <= turn.clocks[each.ring]) break;
      before = turn.clocks[each.ring];
    }
    if (before > each.key) longest = std::max(longest, before - each.key);
  }
  return longest;
}

// A merge with a window of kWindow delivers the same events as the reference and leaves the same
// tails.
template <unsigned kWindow, unsigned kReferenceWindow = kWindow>
void agrees() {
  const std::uint64_t slack = *one_of<std::uint64_t>({0, 10, 50, 300});
  const Course course = draw_course(0, 100, true);
  RC_LOG() << "slack " << slack << ", " << course;
  testing::Rings<DefaultMemory, kWindow> rings{course.rings, {.slack = slack, .learns = false}};
  ReferenceMerge reference{course.rings, kReferenceWindow};
  Playing playing{course, rings, reference};
  std::vector<MergedEvent> all;
  const auto follows = [&](const std::vector<MergedEvent>& delivered, std::uint64_t bound,
                           std::uint64_t limit) {
    RC_ASSERT_INVARIANT(merged, delivered == reference.run(bound, limit));
    for (std::size_t i = 0; i < course.rings; ++i) {
      RC_ASSERT_INVARIANT(tail_honest, rings.tail(i) == reference.tail(i));
    }
    all.insert(all.end(), delivered.begin(), delivered.end());
  };
  for (const Turn& turn : course.turns) {
    const std::uint64_t smallest = turn.clocks.front();
    const auto delivered = playing.take(turn);
    follows(delivered, smallest > slack ? smallest - slack : 0, turn.limit);
    RC_ASSERT(rings.merge.counts().longest_delay <= longest_proved(course));
  }
  follows(rings.flush(), kNone, kNone);
  check_counts(all, rings.merge.counts());
}

TEST(MergePropertyTest, DeliversWhatTheReferenceDelivers) {
  always(agrees<8>, 600);
}
TEST(MergePropertyTest, WindowOfOneMatchesReference) {
  always(agrees<1>, 300);
}
TEST(MergePropertyTest, WindowOfThreeOr64MatchesReference) {
  always(agrees<3>, 100);
  always(agrees<64>, 100);
}
TEST(MergePropertyTest, FindsAMergeThatTrustsEachRingsOrder) {
  EXPECT_TRUE(counterexample(agrees<1, 8>, Invariant::merged));
}

// A delay of n gaps displaces a record by at most n other records of its ring. Each of them may
// have a LOST before it, which takes a place in the window as well. So the window of 8 repairs a
// delay of 7 gaps without LOSTs, and of 3 gaps with them.
constexpr std::uint64_t kGap = 10;
constexpr std::uint64_t kDelay = 7 * kGap;
constexpr std::uint64_t kDelayWithLosts = 3 * kGap;

template <std::uint64_t kLongest, std::uint64_t kSlack>
void is_in_order() {
  const Course course = draw_course(kGap, kLongest, false, kLongest == kDelayWithLosts);
  RC_LOG() << course;
  testing::Rings<> rings{course.rings, {.slack = kSlack, .learns = false}};
  ReferenceMerge reference{course.rings, 8};
  Playing playing{course, rings, reference};
  for (const Turn& turn : course.turns) playing.take(turn);
  RC_ASSERT_INVARIANT(late, rings.merge.counts().late == 0U);
  RC_ASSERT(rings.merge.counts().longest_delay <= kLongest);
}

TEST(MergePropertyTest, NothingIsLateIfNoDelayIsLongerThanTheSlack) {
  always(is_in_order<kDelay, kDelay>, 600);
  always(is_in_order<kDelayWithLosts, kDelayWithLosts>, 600);
}
TEST(MergePropertyTest, FindsASlackThatIsTooShort) {
  EXPECT_TRUE((counterexample(is_in_order<kDelay, kDelay - 20>, Invariant::late)));
  EXPECT_TRUE(
      (counterexample(is_in_order<kDelayWithLosts, kDelayWithLosts - 20>, Invariant::late)));
}

// If each turn delivers everything that it can, longest_delay is what the looks prove.
TEST(MergePropertyTest, TheLongestProvedDelayIsCounted) {
  always(
      [] {
        const Course course = draw_course(0, 200, false);
        RC_LOG() << course;
        testing::Rings<> rings{course.rings, {.slack = 0, .learns = false}};
        ReferenceMerge reference{course.rings, 8};
        Playing playing{course, rings, reference};
        // Two more turns, so that every record is read.
        std::vector<Turn> turns = course.turns;
        for (const std::uint64_t later : {1000U, 2000U}) {
          turns.push_back(turns.back());
          for (std::uint64_t& clock : turns.back().clocks) clock += later;
        }
        for (const Turn& turn : turns) playing.take(turn);
        RC_ASSERT(rings.merge.counts().longest_delay == longest_proved(course));
      },
      600);
}

// M7, if the first look that sees a record also reads it: the slack becomes twice the longest delay
// proved so far, except for delays that would make it exceed slack_most.
constexpr unsigned kReadsAll = 64;

std::uint64_t slack_of(const MergeOptions& options, Course course, std::size_t turns) {
  course.turns.resize(turns);
  std::uint64_t slack = options.slack;
  for (const CourseRecord& each : course.records) {
    Course alone{course.rings, {each}, course.turns};
    if (each.published > course.turns.back().clocks[each.ring]) continue;  // not seen yet
    const std::uint64_t delay = longest_proved(alone);
    if (2 * delay <= options.slack_most) slack = std::max(slack, 2 * delay);
  }
  return slack;
}

template <bool kLearns>
void learns() {
  const MergeOptions options{.slack = *one_of<std::uint64_t>({0, 10, 50}),
                             .learns = kLearns,
                             .slack_most = *one_of<std::uint64_t>({400, 0, 19, 100, 101})};
  Course course = draw_course(0, 200, false, false);
  course.records.resize(std::min<std::size_t>(course.records.size(), kReadsAll));
  RC_LOG() << "slack " << options.slack << " to " << options.slack_most << ", " << course;
  testing::Rings<DefaultMemory, kReadsAll> rings{course.rings, options};
  ReferenceMerge reference{course.rings, kReadsAll};
  Playing playing{course, rings, reference};
  std::uint64_t slack = options.slack;
  for (std::size_t turn = 0; turn != course.turns.size(); ++turn) {
    const std::uint64_t smallest = course.turns[turn].clocks.front();
    const auto delivered = playing.take(course.turns[turn]);
    RC_ASSERT_INVARIANT(merged,
                        delivered == reference.run(smallest > slack ? smallest - slack : 0, kNone));
    slack = slack_of(options, course, turn + 1);
    RC_ASSERT_INVARIANT(merged, rings.merge.slack() == slack);
  }
}

TEST(MergePropertyTest, TheSlackBecomesTwiceTheLongestDelay) {
  always(learns<true>, 600);
}
TEST(MergePropertyTest, FindsASlackThatDoesNotLearn) {
  EXPECT_TRUE(counterexample(learns<false>, Invariant::merged));
}

// If each ring is in order, a flush is a stable sort of all rings, whatever the keys.
TEST(MergePropertyTest, AFlushOfAnyKeysIsTheirStableSort) {
  always(
      [] {
        const auto numbers =
            *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>());
        const auto rings_count = *rc::gen::inRange<std::size_t>(1, 40);
        std::vector<std::vector<std::uint64_t>> keys(rings_count);
        for (const std::uint64_t number : numbers) {
          // Keys of every magnitude, counted from either end of the range.
          const std::uint64_t key = number >> (number % 64);
          keys[static_cast<std::size_t>(number / 64 % rings_count)].push_back(
              number / 8192 % 2 == 0 ? key : kNone - key);
        }
        testing::Rings<> rings{rings_count};
        std::multimap<std::uint64_t, MergedEvent>
            sorted;  // keeps equal keys in the order of insertion
        for (std::size_t ring = 0; ring < rings_count; ++ring) {
          std::ranges::sort(keys[ring]);
          for (const std::uint64_t key : keys[ring]) {
            const auto number = static_cast<std::uint32_t>(sorted.size());
            rings.write(ring, key, number);
            sorted.emplace(key, testing::sample(ring, key, number));
          }
        }
        std::vector<MergedEvent> expected;
        for (const auto& [key, delivered] : sorted) expected.push_back(delivered);
        RC_ASSERT(rings.flush() == expected);
        RC_ASSERT(rings.merge.counts().late == 0U);
      },
      600);
}

// Checks that each byte that is read was unread in one of the rings.
class OnlyUnread final : public rig::MemoryObserver {
 public:
  void watch(const perf_event_mmap_page& page, Bytes data) {
    parts_.push_back({&page, data});
    parts_.back().begin_drain();
  }
  void on_commit(SharedPosition) override {}
  void on_read(const std::byte* address, std::size_t size) override {
    const auto holds = [&](const oracle::Readable& part) { return part.holds(address, size); };
    violated |= std::ranges::none_of(parts_, holds);
  }
  bool violated = false;

 private:
  std::vector<oracle::Readable> parts_;
};

// A hostile ring next to a sound one: the merge delivers the events of the hostile ring that Ring
// would deliver, and all events of the sound ring, in order.
template <class M>
void stays_inside() {
  const HostileImage hostile = *hostile_images(one_of<std::size_t>({4096, 8, 64, 1024, 16384}));
  perf_event_mmap_page page{};
  std::vector<std::uint64_t> words(hostile.size / 8);
  const auto data = std::as_writable_bytes(std::span{words});
  hostile.write_to(page, data);
  testing::Rings<M> rings{1, {.slack = 0, .learns = false}};
  rings.merge.add(page, data);
  const auto many = *rc::gen::inRange<std::uint32_t>(0, 100);
  for (std::uint32_t i = 0; i < many; ++i) rings.write(0, std::uint64_t{i} << 56, i);
  OnlyUnread watch;
  watch.watch(rings[0].page(), rings[0].data());
  watch.watch(page, data);
  auto expected = testing::ReferenceDrain{data, page.data_tail, page.data_head}.events();
  {
    const rig::ObserverScope observing{watch};
    std::vector<MergedEvent> delivered;
    const auto take = [&](std::vector<MergedEvent> some) {
      delivered.insert(delivered.end(), some.begin(), some.end());
    };
    const std::uint64_t clock = *one_of<std::uint64_t>({0, 1, kNone / 2, kNone});
    const auto bounded = *rc::gen::inRange<std::uint64_t>(0, 200);
    take(rings.run(clock, bounded));
    take(rings.run(clock));
    take(rings.flush());
    std::uint32_t next = 0;
    for (const MergedEvent& each : delivered) {
      if (each.ring == 0) {
        RC_ASSERT(each.event == CopiedEvent::sample(keyed(std::uint64_t{next} << 56, next)));
        ++next;
        continue;
      }
      const auto at = std::ranges::find(expected, each.event);
      RC_ASSERT_INVARIANT(no_invention, at != expected.end());
      expected.erase(at);
    }
    RC_ASSERT_INVARIANT(no_loss, next == many);
  }
  RC_ASSERT_INVARIANT(no_loss, expected.empty());
  RC_ASSERT_INVARIANT(in_ring, !watch.violated);
  RC_ASSERT(static_cast<Position>(page.data_tail) == static_cast<Position>(page.data_head));
}

TEST(MergeHostileTest, MergeWithHostileRingReadsNothingOutside) {
  always(stays_inside<rig::CheckedMemory>, 1000);
}
TEST(MergeHostileTest, FindsAMemoryThatOverreads) {
  EXPECT_TRUE(
      counterexample(stays_inside<faults::Overreads<rig::CheckedMemory>>, Invariant::in_ring));
}
TEST(MergeHostileTest, FindsAMemoryThatUnderreads) {
  EXPECT_TRUE(
      counterexample(stays_inside<faults::Underreads<rig::CheckedMemory>>, Invariant::in_ring));
}
TEST(MergeHostileTest, FindsAMemoryThatIgnoresTheTopSizeBit) {
  EXPECT_TRUE(counterexample(stays_inside<faults::IgnoresTopSizeBit<rig::CheckedMemory>>,
                             Invariant::no_invention));
}

}  // namespace
}  // namespace perfring::proptests
