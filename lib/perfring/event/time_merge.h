#ifndef PERFRING_EVENT_TIME_MERGE_H_
#define PERFRING_EVENT_TIME_MERGE_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// TimeMerge: the records of several rings in the order of their times, whole and typed.
// rings/merge.h does so for samples of raw data alone, which is all that the core's drain knows
// (R13); here each record is decoded first. Internal to Sampler.
//
// A record is released once every ring was looked at after its time, and the slack has passed: a
// writer that takes longer from its clock to its output makes a late record, which says so. With
// one ring the order is the ring's, and nothing waits.
//
// A record whose time is later than the clock was after a look that saw it is ahead, and holds
// nothing up: it comes when it is its ring's next, and makes no other late. Such records of several
// rings come in the order of their times, as far as one look has seen them.
//
// Threads: one at a time. Allocates when a ring is added, and a scratch for the first record of a
// ring that straddles its end.
// R: facts that were measured, in the project's harness/RECORD_FACTS.md.
// W: facts that were measured, in the project's harness/RINGS_FACTS.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfring/record/layouts.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/rings/looks.h"

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
  // Decodes records by one layout, or by the ids of several (R12).
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

  // Looks at all rings. `now` is the records' clock before that, and clock() reads it.
  template <class Clock>
  void look(std::uint64_t now, Clock clock) {
    drop_taken();
    for (Lane& lane : lanes_) lane.look(now, seen_);
    looked_at_ = now;
    seen_ = clock();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (!lanes_[i].record) fetch(i);
    }
  }

  // The oldest record that may be released, or, with `all`, that there is. It is valid until the
  // next call. nullopt: none, until the next look.
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

  // When the oldest record that is held may be released; nullopt: none is held. (Of the ring whose
  // record was handed out last, what comes next is not known yet.)
  std::optional<std::uint64_t> due() const {
    if (heap_.empty()) return std::nullopt;
    const std::uint64_t key = lanes_[heap_.front()].key;
    return key > ~std::uint64_t{0} - kSlack - 1 ? key : key + kSlack + 1;
  }

  // Gives back the room of all that was delivered, the last one as well.
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
  using Looks = perfring::internal::Looks;

  struct Lane {
    explicit Lane(const Cursor<>& at) : cursor{at}, next{cursor.data_tail()}, end{next} {
      looks.forget(next);
    }
    void look(std::uint64_t now, std::uint64_t seen_before) {
      looks.look(next, end, seen_before, now);
      cursor.look();
      const SharedPosition seen = cursor.data_tail() + cursor.unread();
      // data_head may have gone back (S11), but what was there before is not new.
      if (seen - next > end - next) end = seen;
    }
    // The record that the cursor hands out next.
    void hand_out() {
      record = cursor.next();
      if (!record) return;
      const auto begin = static_cast<SharedPosition>(record->begin());
      if (begin != next) looks.forget(begin);  // another consumer's doing
      looks.seek(begin, end, record->size());
      next = static_cast<SharedPosition>(record->end());
    }

    Cursor<> cursor;
    Looks looks;
    SharedPosition next;                     // of the record that the cursor hands out next
    SharedPosition end;                      // of the last look
    std::optional<Cursor<>::Record> record;  // the oldest that is not delivered
    std::optional<record::Any> any;
    Bytes bytes;
    std::uint64_t time = 0;  // its own, or that of the record before it
    std::uint64_t key = 0;   // that it is ordered by, found likewise
    bool ahead = false;
    std::vector<std::byte> scratch;
  };

  // Whether lane `a` comes behind lane `b`.
  struct Later {
    const std::vector<Lane>& lanes;
    bool operator()(std::size_t a, std::size_t b) const {
      return std::tuple{lanes[a].key, lanes[a].time, a} >
             std::tuple{lanes[b].key, lanes[b].time, b};
    }
  };
  std::uint64_t bound() const { return looked_at_ > kSlack ? looked_at_ - kSlack : 0; }

  // The record that was handed out last is done with.
  void drop_taken() {
    if (taken_ == kNone) return;
    const std::size_t lane = std::exchange(taken_, kNone);
    lanes_[lane].record.reset();
    fetch(lane);
  }

  void fetch(std::size_t i) {
    Lane& lane = lanes_[i];
    lane.hand_out();
    if (!lane.record) return;
    if (!lane.record->tail().empty()) lane.scratch.resize(record::kRecordMax + 1);
    lane.bytes = record::whole(lane.record->head(), lane.record->tail(), lane.scratch);
    if (layout_ != nullptr) {
      lane.any.emplace(record::decode(lane.bytes, *layout_));
    } else {
      lane.any.emplace(record::decode(lane.bytes, *layouts_));
    }
    const auto own = time_of(*lane.any);
    lane.ahead = own && *own > std::min(lane.looks.by(), seen_);
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
  std::uint64_t looked_at_ = 0;
  std::uint64_t seen_ = Looks::kUnknown;  // the clock after the last look
  std::uint64_t newest_ = 0;
};

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_EVENT_TIME_MERGE_H_
