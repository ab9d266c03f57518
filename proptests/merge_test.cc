// Merges of rings that writers with chosen delays publish to, of any keys, and of any bytes.

#include "perfring/rings/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "harness/rig/checked_memory.h"
#include "perfring/ring/testing/reference.h"
#include "perfring/rings/testing/rings.h"
#include "proptests/hostile_ring.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::Got;
using testing::keyed;
using testing::Seen;

constexpr std::uint64_t kNone = ~std::uint64_t{0};

// A record, and when it is published. `lost` of them are said to be lost in front of it.
struct Written {
  std::size_t ring;
  std::uint64_t key;
  std::uint64_t published;
  std::uint64_t lost;
  std::uint32_t number;
};

// Looks at all rings, ring i at clocks[i].
struct Turn {
  std::vector<std::uint64_t> clocks;
  std::uint64_t limit;
};

struct Course {
  std::size_t rings;
  std::vector<Written> records;  // of each ring in the order in which they are published
  std::vector<Turn> turns;
};

std::ostream& operator<<(std::ostream& out, const Course& course) {
  out << course.rings << " rings:";
  for (const Written& each : course.records) {
    out << " [" << each.ring << ": " << each.key << " at " << each.published
        << (each.lost != 0 ? " lost]" : "]");
  }
  for (const Turn& turn : course.turns) {
    out << "\nturn of at most " << turn.limit << ":";
    for (const std::uint64_t clock : turn.clocks) out << ' ' << clock;
  }
  return out;
}

// Writers take their clock at least `gap_min` apart, and no longer than `delay_max` to publish.
Course draw_course(std::uint64_t gap_min, std::uint64_t delay_max, bool limited) {
  Course course;
  course.rings = *rc::gen::inRange<std::size_t>(1, 6);
  const auto steps =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  std::uint64_t now = 1000;
  for (const std::uint32_t step : steps) {
    now += gap_min + step % 16;
    const bool slow = step / 16 % 4 == 0;
    course.records.push_back(
        {step / 64 % course.rings, now, now + (slow ? step / 512 % (delay_max + 1) : 0),
         step / 2048 % 16 == 0 ? 3U : 0U, static_cast<std::uint32_t>(course.records.size())});
  }
  // (clang refuses what std::stable_sort uses in C++23.)
  std::ranges::sort(course.records, {},
                    [](const Written& each) { return std::pair{each.published, each.number}; });
  const std::uint64_t end = now + delay_max + 1;
  for (now = 1000; now <= end;) {
    Turn turn{
        {},
        limited && *rc::gen::inRange(0, 3) == 0 ? *rc::gen::inRange<std::uint64_t>(0, 8) : kNone};
    for (std::size_t i = 0; i < course.rings; ++i) {
      turn.clocks.push_back(now += *rc::gen::inRange<std::uint64_t>(0, 8));
    }
    now += *rc::gen::inRange<std::uint64_t>(1, 100);
    course.turns.push_back(std::move(turn));
  }
  return course;
}

// The other merge: what must be delivered, read off the rules one by one: of the oldest `window`
// undelivered events of each ring the lowest, and of these the lowest.
class ReferenceMerge {
 public:
  ReferenceMerge(std::size_t rings, std::size_t window) : window_{window}, rings_(rings) {}

  void publish(const Written& each) {
    Ring& ring = rings_[each.ring];
    if (each.lost != 0) ring.push_back({each.key, Seen::lost(each.lost)});
    ring.push_back({each.key, Seen::sample(keyed(each.key, each.number))});
  }

  std::vector<Got> run(std::uint64_t bound, std::uint64_t limit) {
    std::vector<Got> got;
    while (got.size() < limit) {
      const auto [ring, index] = lowest();
      if (ring == rings_.size() || rings_[ring][index].key >= bound) break;
      Event& event = rings_[ring][index];
      got.push_back({ring, event.key, event.key < newest_, event.seen});
      newest_ = std::max(newest_, event.key);
      event.delivered = true;
      while (!rings_[ring].empty() && rings_[ring].front().delivered) {
        rings_[ring].pop_front();
        ++given_back_[ring];
      }
    }
    return got;
  }

  // data_tail: all records have the same size.
  std::uint64_t tail(std::size_t ring) { return given_back_[ring] * testing::kKeyedSize; }

 private:
  struct Event {
    std::uint64_t key;
    Seen seen;
    bool delivered = false;
  };
  using Ring = std::deque<Event>;

  std::pair<std::size_t, std::size_t> lowest() const {
    std::pair<std::size_t, std::size_t> best{rings_.size(), 0};
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
      std::size_t seen = 0;
      for (std::size_t i = 0; i < rings_[ring].size() && seen < window_; ++i) {
        const Event& event = rings_[ring][i];
        if (event.delivered) continue;
        ++seen;
        if (best.first == rings_.size() || event.key < rings_[best.first][best.second].key) {
          best = {ring, i};
        }
      }
    }
    return best;
  }

  std::size_t window_;
  std::vector<Ring> rings_;
  std::vector<std::uint64_t> given_back_ = std::vector<std::uint64_t>(rings_.size());
  std::uint64_t newest_ = 0;
};

// Writes a course to rings and to the reference, as the looks come to see it.
template <class Rings>
class Playing {
 public:
  Playing(const Course& course, Rings& rings, ReferenceMerge& reference)
      : course_{course}, rings_{rings}, reference_{reference} {}

  // One turn: what is delivered. The clock of ring i is read, then records are published until
  // then, then the ring is looked at.
  std::vector<Got> take(const Turn& turn) {
    std::vector<Got> got;
    std::size_t call = 0;
    const auto clock = [&] {
      if (call == turn.clocks.size()) return turn.clocks.back();
      publish(call, turn.clocks[call]);
      return turn.clocks[call++];
    };
    rings_.merge.run(
        KeyAt{}, clock, [&](const Ordered& each) { got.push_back(testing::copy(each)); },
        turn.limit);
    return got;
  }

  void publish(std::size_t ring, std::uint64_t until) {
    for (std::size_t i = 0; i < course_.records.size(); ++i) {
      const Written& each = course_.records[i];
      if (each.ring != ring || each.published > until || published_[i]) continue;
      published_[i] = true;
      if (each.lost != 0) rings_[ring].lost(each.lost);
      rings_.write(ring, each.key, each.number);
      reference_.publish(each);
    }
  }

 private:
  const Course& course_;
  Rings& rings_;
  ReferenceMerge& reference_;
  std::vector<bool> published_ = std::vector<bool>(course_.records.size());
};

// How many, and by how much: counted anew.
void check_counts(const std::vector<Got>& got, const MergeCounts& counts) {
  std::uint64_t late = 0;
  std::uint64_t worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::uint64_t newest = 0;
    for (std::size_t j = 0; j < i; ++j) newest = std::max(newest, got[j].key);
    RC_ASSERT(got[i].late == (got[i].key < newest));
    if (got[i].late) {
      ++late;
      worst = std::max(worst, newest - got[i].key);
    }
  }
  RC_ASSERT(counts.delivered == got.size());
  RC_ASSERT(counts.late == late);
  RC_ASSERT(counts.worst_late == worst);
  RC_ASSERT(counts.ahead == 0U);
}

// The longest delay that the looks prove: a record was not there at the clock before the look
// before the one that saw it first.
std::uint64_t longest_proved(const Course& course) {
  std::uint64_t longest = 0;
  for (const Written& each : course.records) {
    std::uint64_t before = 0;
    for (const Turn& turn : course.turns) {
      if (each.published <= turn.clocks[each.ring]) break;
      before = turn.clocks[each.ring];
    }
    if (before > each.key) longest = std::max(longest, before - each.key);
  }
  return longest;
}

// A merge with a window of kWindow delivers what the reference delivers, and leaves the tails where
// that does.
template <unsigned kWindow, unsigned kReferenceWindow = kWindow>
void agrees() {
  const std::uint64_t slack = *one_of<std::uint64_t>({0, 10, 50, 300});
  const Course course = draw_course(0, 100, true);
  RC_LOG() << "slack " << slack << ", " << course;
  testing::Rings<DefaultMemory, kWindow> rings{course.rings, {.slack = slack, .learns = false}};
  ReferenceMerge reference{course.rings, kReferenceWindow};
  Playing playing{course, rings, reference};
  std::vector<Got> all;
  const auto follows = [&](const std::vector<Got>& got, std::uint64_t bound, std::uint64_t limit) {
    RC_ASSERT(got == reference.run(bound, limit));
    for (std::size_t i = 0; i < course.rings; ++i) RC_ASSERT(rings.tail(i) == reference.tail(i));
    all.insert(all.end(), got.begin(), got.end());
  };
  for (const Turn& turn : course.turns) {
    const std::uint64_t smallest = turn.clocks.front();
    const auto got = playing.take(turn);
    follows(got, smallest > slack ? smallest - slack : 0, turn.limit);
    RC_ASSERT(rings.merge.counts().delay_seen <= longest_proved(course));
  }
  follows(rings.flush(), kNone, kNone);
  check_counts(all, rings.merge.counts());
}

TEST(MergePropertyTest, DeliversWhatTheReferenceDelivers) {
  always(agrees<8>, 600);
}
TEST(MergePropertyTest, DeliversWhatTheReferenceDeliversWithAWindowOfOne) {
  always(agrees<1>, 300);
}
TEST(MergePropertyTest, FindsAMergeThatTrustsEachRingsOrder) {
  EXPECT_TRUE(counterexample(agrees<1, 8>));
}

// Delays of at most 7 gaps displace a record by at most 7 others of its ring.
constexpr std::uint64_t kGap = 10;
constexpr std::uint64_t kDelay = 7 * kGap;

template <std::uint64_t kSlack>
void is_in_order() {
  const Course course = draw_course(kGap, kDelay, false);
  RC_LOG() << course;
  testing::Rings<> rings{course.rings, {.slack = kSlack, .learns = false}};
  ReferenceMerge reference{course.rings, 8};
  Playing playing{course, rings, reference};
  for (const Turn& turn : course.turns) playing.take(turn);
  RC_ASSERT(rings.merge.counts().late == 0U);
  RC_ASSERT(rings.merge.counts().delay_seen <= kDelay);
}

TEST(MergePropertyTest, NothingIsLateIfNoDelayIsLongerThanTheSlack) {
  always(is_in_order<kDelay>, 600);
}
TEST(MergePropertyTest, FindsASlackThatIsTooShort) {
  EXPECT_TRUE(counterexample(is_in_order<kDelay - 20>));
}

// Each proved delay is seen, if all that is there is delivered in each turn.
TEST(MergePropertyTest, TheLongestProvedDelayIsSeen) {
  always(
      [] {
        const Course course = draw_course(0, 200, false);
        RC_LOG() << course;
        testing::Rings<> rings{course.rings, {.slack = 0, .learns = false}};
        ReferenceMerge reference{course.rings, 8};
        Playing playing{course, rings, reference};
        // Two more, by which all is read.
        std::vector<Turn> turns = course.turns;
        for (const std::uint64_t later : {1000U, 2000U}) {
          turns.push_back(turns.back());
          for (std::uint64_t& clock : turns.back().clocks) clock += later;
        }
        for (const Turn& turn : turns) playing.take(turn);
        RC_ASSERT(rings.merge.counts().delay_seen == longest_proved(course));
      },
      600);
}

// Of rings that are in order the flush is the stable sort, whatever their keys are.
TEST(MergePropertyTest, AFlushOfAnyKeysIsTheirStableSort) {
  always(
      [] {
        const auto numbers =
            *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>());
        const auto rings_count = *rc::gen::inRange<std::size_t>(1, 40);
        std::vector<std::vector<std::uint64_t>> keys(rings_count);
        for (const std::uint64_t number : numbers) {
          // From close together to as far apart as can be, from both ends.
          const std::uint64_t key = number >> (number % 64);
          keys[number / 64 % rings_count].push_back(number / 8192 % 2 == 0 ? key : kNone - key);
        }
        testing::Rings<> rings{rings_count};
        std::multimap<std::uint64_t, Got> sorted;  // equal keys in the order in which they came
        for (std::size_t ring = 0; ring < rings_count; ++ring) {
          std::ranges::sort(keys[ring]);
          for (const std::uint64_t key : keys[ring]) {
            const auto number = static_cast<std::uint32_t>(sorted.size());
            rings.write(ring, key, number);
            sorted.emplace(key, testing::sample(ring, key, number));
          }
        }
        std::vector<Got> expected;
        for (const auto& [key, got] : sorted) expected.push_back(got);
        RC_ASSERT(rings.flush() == expected);
        RC_ASSERT(rings.merge.counts().late == 0U);
      },
      600);
}

// What is read lies in what was unread of one of the rings.
class OnlyUnread final : public rig::MemoryObserver {
 public:
  void watch(const testing::FakeRing& ring) {
    parts_.push_back({&ring, ring.page().data_tail, ring.page().data_head});
  }
  void watch(perf_event_mmap_page& page, std::span<std::byte> data) {
    hostile_ = {&page, data, page.data_tail, page.data_head};
  }
  void on_commit(SharedPosition) override {}
  void on_read(const std::byte* address, std::size_t size) override {
    const auto in = [&](const auto* from, std::size_t length) {
      const auto* begin = reinterpret_cast<const std::byte*>(from);
      return address >= begin && address + size <= begin + length;
    };
    bool inside = hostile_.reads(address, size) ||
                  in(&hostile_.page->data_tail, sizeof(hostile_.page->data_tail));
    for (const Part& part : parts_) {
      inside |=
          in(&part.ring->page().data_tail, sizeof(part.ring->page().data_tail)) ||
          in(part.ring->data().data() + part.tail, static_cast<std::size_t>(part.head - part.tail));
    }
    violated |= !inside;
  }
  bool violated = false;

 private:
  struct Part {
    const testing::FakeRing* ring;
    std::uint64_t tail;
    std::uint64_t head;
  };
  struct Hostile {
    perf_event_mmap_page* page;
    std::span<std::byte> data;
    std::uint64_t tail;
    std::uint64_t head;
    bool reads(const std::byte* address, std::size_t size) const {
      if (address < data.data() || address + size > data.data() + data.size()) return false;
      const auto index = static_cast<std::uint64_t>(address - data.data());
      const std::uint32_t unread = static_cast<std::uint32_t>(head - tail);
      if (unread > data.size()) return true;
      return ((index - tail) & (data.size() - 1)) + size <= unread;
    }
  };
  std::vector<Part> parts_;
  Hostile hostile_{};
};

// Looks at what follows, too.
struct ReadsAhead : rig::CheckedMemory {
  template <class T>
  static T read(const std::byte* address) {
    if (observer != nullptr) observer->on_read(address, 2 * sizeof(T));
    return DefaultMemory::read<T>(address);
  }
};

// A hostile ring beside a sound one: of the first all that Ring delivers, of the second all, and in
// order.
template <class M>
void stays_inside() {
  const RingImage hostile = *ring_images(one_of<std::size_t>({4096, 8, 64, 1024, 16384}));
  perf_event_mmap_page page{};
  std::vector<std::uint64_t> words(hostile.size / 8);
  const auto data = std::as_writable_bytes(std::span{words});
  hostile.write_to(page, data);
  testing::Rings<M> rings{1, {.slack = 0, .learns = false}};
  rings.merge.add(page, data);
  const auto many = *rc::gen::inRange<std::uint32_t>(0, 100);
  for (std::uint32_t i = 0; i < many; ++i) rings.write(0, std::uint64_t{i} << 56, i);
  OnlyUnread watch;
  watch.watch(rings[0]);
  watch.watch(page, data);
  auto expected = testing::Reference{data, page.data_tail, page.data_head}.events();
  {
    const rig::Observing observing{watch};
    std::vector<Got> got;
    const auto take = [&](std::vector<Got> some) {
      got.insert(got.end(), some.begin(), some.end());
    };
    const std::uint64_t clock = *one_of<std::uint64_t>({0, 1, kNone / 2, kNone});
    const auto bounded = *rc::gen::inRange<std::uint64_t>(0, 200);
    take(rings.run(clock, bounded));
    take(rings.run(clock));
    take(rings.flush());
    std::uint32_t next = 0;
    for (const Got& each : got) {
      if (each.ring == 0) {
        RC_ASSERT(each.seen == Seen::sample(keyed(std::uint64_t{next} << 56, next)));
        ++next;
        continue;
      }
      const auto at = std::ranges::find(expected, each.seen);
      RC_ASSERT(at != expected.end());
      expected.erase(at);
    }
    RC_ASSERT(next == many);
  }
  RC_ASSERT(expected.empty());
  RC_ASSERT(!watch.violated);
  RC_ASSERT(static_cast<Position>(page.data_tail) == static_cast<Position>(page.data_head));
}

TEST(MergeHostileTest, AHostileRingBesideASoundOne) {
  always(stays_inside<rig::CheckedMemory>, 1000);
}
TEST(MergeHostileTest, FindsAMemoryThatReadsAhead) {
  EXPECT_TRUE(counterexample(stays_inside<ReadsAhead>));
}

}  // namespace
}  // namespace perfring::proptests
