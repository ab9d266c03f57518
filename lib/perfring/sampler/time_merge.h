#ifndef PERFRING_SAMPLER_TIME_MERGE_H_
#define PERFRING_SAMPLER_TIME_MERGE_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// TimeMerge: the records of several rings in the order of their times, whole and typed.
// merge/merge.h does this only for samples of raw data, the only ones that the core's drain decodes
// (R13). Here each record is decoded first. Internal to Sampler.
//
// A record is released once every ring was read after the record's time, and the slack has passed.
// A writer that takes longer than the slack from its clock to its output causes a late record,
// which is marked. With one ring the order is the ring's, and nothing waits.
//
// A record is ahead if its time is later than the clock read after the look that found it. It holds
// nothing up: it is delivered when it is next in its ring, and makes no other record late. If
// several rings have such records, they are delivered in the order of their times, as far as one
// look has found them.
//
// Threads: one at a time. Allocates when a ring is added, and a scratch buffer at the first record
// in a ring that straddles the ring's end.
// R: measured facts, in the project's harness/RECORD_FACTS.md.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/merge/look_clock.h"
#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/layouts.h"
#include "perfring/record/sample.h"
#include "perfring/record/view.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"

namespace perfring::event::internal {

inline std::optional<std::uint64_t> time_of(const record::Any& record) {
  return std::visit(
      [](const auto& view) -> std::optional<std::uint64_t> {
        using View = std::remove_cvref_t<decltype(view)>;
        if constexpr (std::is_same_v<View, record::Sample>) return view.time();
        if constexpr (std::is_base_of_v<record::SideBand, View>) return view.sample_id().time();
        return std::nullopt;
      },
      record);
}

class TimeMerge {
 public:
  // Sets how to decode records: by one layout, or by the ids of several (R12).
  void decode_by(const record::Layout& layout) noexcept { layout_ = &layout; }
  void decode_by(const record::Layouts& layouts) noexcept { layouts_ = layouts; }

  void add(const Cursor<>& cursor) {
    lanes_.emplace_back(cursor);
    heap_.reserve(lanes_.size());
  }

  struct Front {
    const record::Any* record;
    Bytes bytes;
    std::uint64_t time;
    bool late;
    bool ahead;
  };

  // Reads the data_head of all rings. `now` is the records' clock before that; clock() reads it
  // again afterwards.
  template <class Clock>
  void look(std::uint64_t now, Clock clock) {
    drop_taken();
    for (Lane& lane : lanes_) lane.look(now, clock_after_);
    clock_before_ = now;
    clock_after_ = clock();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (!lanes_[i].record) fetch(i);
    }
  }

  // Returns the oldest record that may be released, or, with `all`, the oldest there is. It is
  // valid until the next call. Returns nullopt if there is none until the next look().
  std::optional<Front> next(bool all) {
    drop_taken();
    if (heap_.empty()) return std::nullopt;
    const std::size_t oldest = heap_.front();
    const Lane& lane = lanes_[oldest];
    const bool may = all || lanes_.size() == 1 || lane.ahead || lane.key < bound();
    if (!may) return std::nullopt;
    std::ranges::pop_heap(heap_, Later{lanes_});
    heap_.pop_back();
    taken_ = oldest;
    const bool late = lane.time < newest_;
    newest_ = std::max(newest_, lane.key);
    return Front{&*lane.any, lane.bytes, lane.time, late, lane.ahead};
  }

  // Returns when the oldest held record may be released; nullopt if none is held. (The next record
  // of the ring that delivered last is not known yet.)
  std::optional<std::uint64_t> due() const {
    if (heap_.empty()) return std::nullopt;
    const std::uint64_t key = lanes_[heap_.front()].key;
    return key > ~std::uint64_t{0} - kSlack - 1 ? key : key + kSlack + 1;
  }

  // Gives back the room of all delivered records, including the last one.
  void release() {
    drop_taken();
    for (Lane& lane : lanes_) {
      if (lane.record) {
        lane.cursor.release(lane.record->begin());
      } else {
        lane.cursor.release();
      }
    }
  }

 private:
  static constexpr std::uint64_t kSlack = 100'000;  // ns: W6 to W8
  static constexpr std::size_t kNone = ~std::size_t{0};
  using LookClock = perfring::internal::LookClock;

  struct Lane {
    explicit Lane(const Cursor<>& at) : cursor{at}, next{cursor.data_tail()}, end{next} {
      look_clock.reset(next);
    }
    void look(std::uint64_t now, std::uint64_t previous_clock_after) {
      look_clock.look(next, end, previous_clock_after, now);
      cursor.look();
      const SharedPosition look_end = cursor.data_tail() + cursor.unread();
      // data_head may have gone back (S11), but records that were there before are not new.
      if (look_end - next > end - next) end = look_end;
    }
    // Fetches the next record from the cursor.
    void fetch_record() {
      record = cursor.next();
      if (!record) return;
      const auto begin = static_cast<SharedPosition>(record->begin());
      if (begin != next) look_clock.reset(begin);  // another consumer moved data_tail
      look_clock.seek(begin, end, record->size());
      next = static_cast<SharedPosition>(record->end());
    }

    Cursor<> cursor;
    LookClock look_clock;
    SharedPosition next;                     // of the cursor's next record
    SharedPosition end;                      // where the last look ended
    std::optional<Cursor<>::Record> record;  // the oldest undelivered one
    std::optional<record::Any> any;
    Bytes bytes;
    std::uint64_t time = 0;  // its own, or else that of the record before it
    std::uint64_t key = 0;   // orders the records; inherited like the time
    bool ahead = false;
    std::vector<std::byte> scratch;
  };

  // Returns true if lane `a` comes after lane `b`.
  struct Later {
    const std::vector<Lane>& lanes;
    bool operator()(std::size_t a, std::size_t b) const {
      return std::tuple{lanes[a].key, lanes[a].time, a} >
             std::tuple{lanes[b].key, lanes[b].time, b};
    }
  };
  std::uint64_t bound() const { return clock_before_ > kSlack ? clock_before_ - kSlack : 0; }

  // Ends the use of the record that was delivered last.
  void drop_taken() {
    if (taken_ == kNone) return;
    const std::size_t lane = std::exchange(taken_, kNone);
    lanes_[lane].record.reset();
    fetch(lane);
  }

  void fetch(std::size_t i) {
    Lane& lane = lanes_[i];
    lane.fetch_record();
    if (!lane.record) return;
    if (!lane.record->tail().empty()) lane.scratch.resize(record::kRecordMax + 1);
    lane.bytes = record::whole(lane.record->head(), lane.record->tail(), lane.scratch);
    if (layout_ != nullptr) {
      lane.any.emplace(record::decode(lane.bytes, *layout_));
    } else {
      lane.any.emplace(record::decode(lane.bytes, *layouts_));
    }
    const auto own = time_of(*lane.any);
    lane.ahead = own && *own > std::min(lane.look_clock.published_by(), clock_after_);
    if (own) {
      lane.time = *own;
      lane.key = lane.ahead ? newest_ : *own;
    }
    heap_.push_back(i);
    std::ranges::push_heap(heap_, Later{lanes_});
  }

  const record::Layout* layout_ = nullptr;
  std::optional<record::Layouts> layouts_;
  std::vector<Lane> lanes_;
  std::vector<std::size_t> heap_;
  std::size_t taken_ = kNone;
  std::uint64_t clock_before_ = 0;
  std::uint64_t clock_after_ = LookClock::kUnknown;  // the clock after the last look
  std::uint64_t newest_ = 0;
};

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_SAMPLER_TIME_MERGE_H_
