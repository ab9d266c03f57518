#ifndef PROPTESTS_MERGE_COURSE_H_
#define PROPTESTS_MERGE_COURSE_H_

// Random courses of the rings of a merge, and a reference merge that follows the rules literally.

#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <ostream>
#include <utility>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/rings.h"

namespace perfring::proptests {

using testing::CopiedEvent;
using testing::keyed;
using testing::MergedEvent;

inline constexpr std::uint64_t kNone = ~std::uint64_t{0};

// A record and the time when it is published. If `lost` is not 0, a LOST with this count precedes
// it.
struct CourseRecord {
  std::size_t ring;
  std::uint64_t key;
  std::uint64_t published;
  std::uint64_t lost;
  std::uint32_t number;
};

// One look at each ring, at ring i when the clock is clocks[i].
struct Turn {
  std::vector<std::uint64_t> clocks;
  std::uint64_t limit;
};

struct Course {
  std::size_t rings;
  std::vector<CourseRecord> records;  // in the order of publication
  std::vector<Turn> turns;
};

inline std::ostream& operator<<(std::ostream& out, const Course& course) {
  out << course.rings << " rings:";
  for (const CourseRecord& each : course.records) {
    out << " [" << each.ring << ": " << each.key << " at " << each.published
        << (each.lost != 0 ? " lost]" : "]");
  }
  for (const Turn& turn : course.turns) {
    out << "\nturn of at most " << turn.limit << ":";
    for (const std::uint64_t clock : turn.clocks) out << ' ' << clock;
  }
  return out;
}

// Writers read their clocks at least `gap_min` apart and take at most `delay_max` to publish. If
// `limited`, some turns have a limit. If `loses`, a LOST precedes some of the records.
inline Course draw_course(std::uint64_t gap_min, std::uint64_t delay_max, bool limited,
                          bool loses = true) {
  Course course;
  course.rings = *rc::gen::inRange<std::size_t>(1, 6);
  const auto steps =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  std::uint64_t now = 1000;
  for (const std::uint32_t step : steps) {
    now += gap_min + step % 16;
    const bool slow = step / 16 % 4 == 0;
    course.records.push_back({step / 64 % course.rings, now,
                              now + (slow ? step / 512 % (delay_max + 1) : 0),
                              loses && step / 2048 % 16 == 0 ? 3U : 0U,
                              static_cast<std::uint32_t>(course.records.size())});
  }
  // Not std::stable_sort: clang rejects its implementation in C++23.
  std::ranges::sort(course.records, {}, [](const CourseRecord& each) {
    return std::pair{each.published, each.number};
  });
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

// The reference merge, which follows the rules one by one. The next event is the lowest of all
// rings' lowest; a ring's lowest is taken from its oldest `window` undelivered events.
class ReferenceMerge {
 public:
  ReferenceMerge(std::size_t rings, std::size_t window) : window_{window}, rings_(rings) {}

  void publish(const CourseRecord& each) {
    Ring& ring = rings_[each.ring];
    if (each.lost != 0) ring.push_back({each.key, CopiedEvent::lost(each.lost)});
    ring.push_back({each.key, CopiedEvent::sample(keyed(each.key, each.number))});
  }

  std::vector<MergedEvent> run(std::uint64_t bound, std::uint64_t limit) {
    std::vector<MergedEvent> delivered;
    while (delivered.size() < limit) {
      const auto [ring, index] = lowest();
      if (ring == rings_.size() || rings_[ring][index].key >= bound) break;
      Event& event = rings_[ring][index];
      delivered.push_back({ring, event.key, event.key < newest_, event.event});
      newest_ = std::max(newest_, event.key);
      event.delivered = true;
      while (!rings_[ring].empty() && rings_[ring].front().delivered) {
        rings_[ring].pop_front();
        ++given_back_[ring];
      }
    }
    return delivered;
  }

  // Returns data_tail, which relies on all records having the same size.
  std::uint64_t tail(std::size_t ring) { return given_back_[ring] * testing::kKeyedSize; }

 private:
  struct Event {
    std::uint64_t key;
    CopiedEvent event;
    bool delivered = false;
  };
  using Ring = std::deque<Event>;

  std::pair<std::size_t, std::size_t> lowest() const {
    std::pair<std::size_t, std::size_t> best{rings_.size(), 0};
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
      std::size_t examined = 0;
      for (std::size_t i = 0; i < rings_[ring].size() && examined < window_; ++i) {
        const Event& event = rings_[ring][i];
        if (event.delivered) continue;
        ++examined;
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

// Writes a course to the rings and to the reference, each record before the look that sees it.
template <class Rings>
class Playing {
 public:
  Playing(const Course& course, Rings& rings, ReferenceMerge& reference)
      : course_{course}, rings_{rings}, reference_{reference} {}

  // Plays one turn and returns the delivered events. For each ring: the merge reads the clock, the
  // records due by then are published, and the merge looks at the ring.
  std::vector<MergedEvent> take(const Turn& turn) {
    std::vector<MergedEvent> delivered;
    std::size_t call = 0;
    const auto clock = [&] {
      if (call == turn.clocks.size()) return turn.clocks.back();
      publish(call, turn.clocks[call]);
      return turn.clocks[call++];
    };
    rings_.merge.run(
        KeyAt{}, clock, [&](const Ordered& each) { delivered.push_back(testing::copy(each)); },
        turn.limit);
    return delivered;
  }

  void publish(std::size_t ring, std::uint64_t until) {
    for (std::size_t i = 0; i < course_.records.size(); ++i) {
      const CourseRecord& each = course_.records[i];
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

}  // namespace perfring::proptests

#endif  // PROPTESTS_MERGE_COURSE_H_
