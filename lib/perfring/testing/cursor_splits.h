#ifndef PERFRING_TESTING_CURSOR_SPLITS_H_
#define PERFRING_TESTING_CURSOR_SPLITS_H_

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/default_memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/reference_drain.h"

namespace perfring::testing {

// Empties a ring that nobody writes to, by a Cursor, in one of many ways: `seed` determines when it
// looks, when it takes the next record, and when it releases how many of the records that it holds.
template <class M = DefaultMemory>
class CursorSplits {
 public:
  CursorSplits(perf_event_mmap_page& page, Bytes data, std::uint64_t seed)
      : page_{page}, data_{data}, cursor_{*Cursor<M>::over(page, data)}, random_{seed} {}

  // Returns all events, in order. Stops once there are more than `most`.
  std::vector<CopiedEvent> events(std::size_t most = 1'000'000) {
    const std::uint64_t most_unreleased = random_() % 5 == 0 ? ~0ULL : 1 + random_() % 8;
    look();
    while (events_.size() <= most) {
      const std::uint64_t choice = random_() % 16;
      if (choice == 0) look();
      if (choice == 1 || unreleased_.size() >= most_unreleased) {
        release(1 + random_() % most_unreleased);
      }
      const auto record = cursor_.next();
      if (record) {
        events_.push_back(copy(record->event()));
        unreleased_.push_back({*record, events_.back()});
      } else {
        release(1 + random_() % most_unreleased);
        if (unreleased_.empty() && look() == 0) break;
      }
      check_invariants();
    }
    return events_;
  }

  // The first expectation that did not hold, not counting events; nullptr if all held.
  const char* wrong() const { return wrong_; }

 private:
  struct UnreleasedRecord {
    typename Cursor<M>::Record record;
    CopiedEvent event;
  };

  void expect(bool holds, const char* what) {
    if (!holds && wrong_ == nullptr) wrong_ = what;
  }

  std::size_t look() {
    const std::size_t unread = cursor_.look();
    expect(unread == cursor_.unread(), "look() does not return unread()");
    return unread;
  }

  // Releases the oldest `count` records, by the place where they end or where the next one begins.
  void release(std::uint64_t count) {
    for (; count != 0 && !unreleased_.empty(); --count) {
      const UnreleasedRecord oldest = unreleased_.front();
      expect(copy(oldest.record.event()) == oldest.event, "a record changes before it is released");
      unreleased_.pop_front();
      if (count > 1 && !unreleased_.empty()) continue;
      if (unreleased_.empty() && random_() % 2 == 0) return cursor_.release();
      cursor_.release(unreleased_.empty() || random_() % 2 == 0
                          ? oldest.record.end()
                          : unreleased_.front().record.begin());
    }
  }

  // Checks the conditions that hold at any time.
  void check_invariants() {
    const auto place = static_cast<typename Cursor<M>::Place>(page_.data_tail);
    expect(unreleased_.empty() || unreleased_.front().record.begin() == place,
           "data_tail is not where the oldest record begins that is not released");
    const std::uint64_t available =
        ReferenceDrain::unread(data_.size(), page_.data_tail, page_.data_head);
    const std::uint64_t size = std::min<std::uint64_t>(available, data_.size());
    const auto from = static_cast<std::size_t>((page_.data_head - size) % data_.size());
    const std::uint64_t before_end = std::min<std::uint64_t>(size, data_.size() - from);
    const auto [head, tail] = cursor_.bytes();
    expect(cursor_.unread() == size, "unread() is not data_head - data_tail");
    expect(head.size() == before_end && tail.size() == size - before_end &&
               (head.empty() || head.data() == data_.data() + from) &&
               (tail.empty() || tail.data() == data_.data()),
           "bytes() is not [data_tail, data_head)");
  }

  perf_event_mmap_page& page_;
  Bytes data_;
  Cursor<M> cursor_;
  std::mt19937_64 random_;
  std::vector<CopiedEvent> events_;
  std::deque<UnreleasedRecord> unreleased_;
  const char* wrong_ = nullptr;
};

// Returns the first difference between a Cursor and a drain that has just moved data_tail from
// `tail` to its present place and passed `events`; "" if there is none. Splits the Cursor's work in
// as many ways as there are seeds.
template <class M = DefaultMemory>
std::string cursor_difference(perf_event_mmap_page& page, Bytes data, std::uint64_t tail,
                              const std::vector<CopiedEvent>& events, std::uint64_t first_seed = 0,
                              std::uint64_t seeds = 1) {
  const std::uint64_t end = page.data_tail;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    page.data_tail = tail;
    CursorSplits<M> splits{page, data, seed};
    const std::string by = ", by a Cursor, split by seed " + std::to_string(seed);
    if (splits.events(events.size()) != events) return "other events" + by;
    if (splits.wrong() != nullptr) return splits.wrong() + by;
    if (page.data_tail != end) return "data_tail is elsewhere" + by;
  }
  return "";
}

template <class M = DefaultMemory>
Cursor<M> cursor_over(const FakeRing& fake) {
  return *Cursor<M>::over(fake.page(), fake.data());
}

// Returns all records that next() hands out. Releases nothing.
template <class M>
std::vector<typename Cursor<M>::Record> take(Cursor<M>& cursor) {
  std::vector<typename Cursor<M>::Record> records;
  while (const auto record = cursor.next()) records.push_back(*record);
  return records;
}

template <class M>
std::vector<CopiedEvent> events(Cursor<M>& cursor) {
  std::vector<CopiedEvent> copies;
  for (const auto& record : take(cursor)) copies.push_back(copy(record.event()));
  return copies;
}

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_CURSOR_SPLITS_H_
