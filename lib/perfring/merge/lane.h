#ifndef PERFRING_MERGE_LANE_H_
#define PERFRING_MERGE_LANE_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Lane: one ring of a merge, with the records that were read but not delivered, in the order of
// their keys. Internal to Merge, where the rules M1 to M9 cited here are stated (merge.h). It walks
// the ring with the Walk that Ring and Cursor share (S1 to S11: ring/cursor.h).
// W: measured facts, in the project's harness/RINGS_FACTS.md.
//
// The ring, oldest record first:
//
//   tail_                              at_                 stop_                end_
//     |                                 |                    |                   |
//     |  read: delivered, or in window_ |  unread, one piece |  unread, the rest |
//     |                                 |                    |                   |
//   data_tail                      next to read   ring's end or the mark   data_head, as
//                                                 of LookClock, or end_    look() read it
//
// tail_ and end_ are positions, at_ and stop_ are addresses. release() moves data_tail to the
// oldest record that is still in window_ (or to at_, if window_ is empty).

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "perfring/merge/look_clock.h"
#include "perfring/merge/lost_keys.h"
#include "perfring/merge/pending_event.h"
#include "perfring/merge/window.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

template <Memory M, unsigned kWindow>
class alignas(256) Lane {  // a power of two, so that lanes_[ring] is a shift
  using Walk = internal::Walk<M>;

 public:
  Lane(const RingView& view, std::unique_ptr<std::uint64_t[]> arrays) noexcept
      : window_{std::move(arrays)}, view_{view} {
    reset(0);
  }
  static auto allocate_arrays() { return Window<kWindow>::allocate_arrays(); }

  const RingView& view() const noexcept { return view_; }

  std::uint64_t next_word = 0;  // belongs to Merge: the word of the record after the front

  bool empty() const noexcept { return window_.empty(); }
  std::uint64_t front_key() const noexcept { return window_.front_key(); }
  bool has_next() const noexcept { return window_.has_next(); }
  std::uint64_t next_key() const noexcept { return window_.next_key(); }

  // M1: Reads data_head. `clock` was read just before this call. `previous_clock_after` is the
  // clock that was read after the previous look().
  void look(std::uint64_t clock, std::uint64_t previous_clock_after) {
    const SharedPosition tail = own_tail<M>(*view_.page);
    if (tail != tail_) [[unlikely]]
      reset(tail);
    if (holds_bad_positions_) [[unlikely]]
      return;  // only one fits
    const SharedPosition next = position();
    look_clock_.look(next, end_, previous_clock_after, clock);
    const Position head = read_head<M>(*view_.page);
    const SharedPosition end = next + available(view_.data.size(), next, head);
    // S11: if data_head has gone back, the records found by an earlier look() are still there.
    const bool went_back = positions_valid_ && end % kAlignment == 0 && end - next < end_ - next;
    if (!went_back) end_ = end;
    positions_valid_ = are_valid_positions(view_, tail_, next, end_);
    seek(next);
  }

  // Fills the window. Called once in each run, before the first take().
  template <class RunState>
  void fill(RunState& round) {
    fill(round, kWhole, kWhole);
  }

  // M8: Compares the keys of the records that a flush read but left with the clock, now that there
  // is one.
  template <class RunState>
  [[gnu::noinline]] void check_against_clock(RunState& round) {
    std::uint64_t before = round.newest();
    const std::size_t displaced = window_.change_keys(
        [this](const PendingRecord& a, const PendingRecord& b) {
          return from_tail(a) < from_tail(b);
        },
        [&](const PendingRecord& pending) {
          if (is_sample(pending) && pending.key > round.clock_after) round.count_ahead();
          return before = round.ordering_key(pending.key, LookClock::kUnknown, before);
        });
    for (std::size_t i = 0; i != displaced; ++i) round.count_displaced();
    if (last_key_ > round.clock_after && !window_.empty()) last_key_ = before;
  }

  // Reads another record if necessary. Called before take(). Does not displace the record after the
  // front. Returns true if a third record is known, after the front and the one that follows it. If
  // the key function throws, nothing has changed.
  template <class RunState>
  [[gnu::always_inline]] bool has_lookahead(RunState& round) {
    return window_.has_lookahead() || refill(round);
  }
  [[gnu::always_inline]] PendingRecord take() noexcept { return window_.take(); }
  bool front_is_plain() const noexcept { return window_.front_is_plain(); }
  template <class Visit>
  [[gnu::always_inline]] bool take_while(std::uint64_t until_key, std::uint64_t& limit,
                                         Visit visit) {
    return window_.take_while(until_key, limit, visit);
  }

  PerfEvent event(const PendingRecord& pending) {
    if (pending.kind() == PendingRecord::kSample) return sample(pending);
    if (!is_defect(pending, Defect::BadPositions)) return odd_event_of<M>(view_, pending);
    holds_bad_positions_ = false;
    return bad_positions_;
  }
  // Returns the sample at `pending`. Precondition: it is a sample in one piece.
  [[gnu::always_inline]] Sample sample(const PendingRecord& pending) const {
    return {{view_.data.data() + pending.index() + Walk::kPayloadAt, pending.length()}, {}};
  }

  // M4: Moves data_tail to the oldest undelivered record, unless it is there already (S2, S3).
  void release() {
    if (holds_bad_positions_) [[unlikely]]
      return;
    SharedPosition delivered = position() - tail_;
    // In the ring, records that were read ahead are after all records of the window.
    const std::size_t count = smaller(window_.count(), kWhole);
    for (std::size_t i = 0; i != count; ++i) {
      if (from_tail(window_.at(i)) < delivered) delivered = from_tail(window_.at(i));
    }
    move_tail<M>(*view_.page, tail_, tail_ + delivered);
  }

 private:
  static constexpr std::size_t kWhole = Window<kWindow>::kWhole;
  static constexpr std::size_t kAhead = Window<kWindow>::kAhead;

  // Returns the distance of a record from data_tail. A BadPositions spans everything that is left,
  // so it is always last.
  SharedPosition from_tail(const PendingRecord& pending) const noexcept {
    if (is_defect(pending, Defect::BadPositions)) return ~SharedPosition{0};
    return (pending.index() - tail_) & (view_.data.size() - 1);
  }

  // Returns the position of the next record to read.
  SharedPosition position() const noexcept {
    return stop_position_ - static_cast<SharedPosition>(stop_ - at_);
  }

  // Starts afresh at `tail`.
  void reset(SharedPosition tail) noexcept {
    tail_ = end_ = tail;
    look_clock_.reset(tail);
    lost_keys_.reset(tail);
    window_.clear();
    positions_valid_ = true;
    holds_bad_positions_ = false;
    seek(tail);
  }

  // Sets at_ and stop_ to the piece that read() can process in one go, from `next` up to the end of
  // the ring, or to the mark, after which a different clock applies (M7).
  void seek(SharedPosition next) noexcept {
    at_ = stop_ = view_.data.data();
    stop_position_ = next;
    if (!positions_valid_) return;
    Walk walk{view_};
    at_ = walk.start(view_, next, static_cast<std::size_t>(end_ - next));
    const std::size_t length = look_clock_.seek(next, end_, walk.piece(at_));
    stop_ = at_ + length;
    stop_position_ = next + length;
  }

  template <class RunState>
  [[gnu::noinline]] bool refill(RunState& round) {
    // With less than a whole window, this run has no more records to read.
    if (window_.count() < kWhole) return window_.drain_window();
    return fill(round, kWhole + 1, kWhole + 1 + kAhead);
  }

  // Reads until `wanted` records are held or nothing is left before end_. Reads ahead up to `most`
  // records as long as they are plain samples. If the key function throws, the records held by then
  // stay held.
  template <class RunState>
  bool fill(RunState& round, std::size_t wanted, std::size_t most) {
    if (window_.count() < wanted) window_.make_room();
    while (window_.count() < wanted) {
      read_ahead(round, most - window_.count());
      if (window_.count() >= wanted) break;
      const PendingRecord pending = read(round);
      if (pending.is_none()) return window_.drain_window();
      if (window_.put(pending)) round.count_displaced();
    }
    return window_.keep_window();
  }

  // Reads up to `most` samples from the current piece while their keys do not decrease. Stops
  // before a key that is lower than the clock of the previous look(), which would prove a delay
  // (M7), and before a key that is ahead of the clock (M8).
  template <class RunState>
  [[gnu::always_inline]] void read_ahead(RunState& round, std::size_t most) {
    const std::byte* at = at_;
    const std::byte* const stop = stop_;
    std::uint64_t least = window_.last_key();
    if (least < look_clock_.published_after()) least = look_clock_.published_after();
    const std::uint64_t greatest = round.latest_key(look_clock_.published_by());
    std::size_t count = 0;
    bool keys_ascend = true;
    while (keys_ascend && count != most && at != stop) {
      const std::uint64_t header = Walk::header_at(at);
      const std::size_t size = Walk::size_of(header);
      const auto left = static_cast<std::size_t>(stop - at);
      if (!Walk::is_sample(header) || size > left) break;
      const std::uint32_t raw = Walk::raw_at(at);
      if (raw > size - Walk::kPayloadAt) break;
      // If the first key is ahead, so are all that follow: the loop at the end would drop every
      // record.
      if (count == 0 &&
          round.key_of(Sample{{at + Walk::kPayloadAt, raw}, {}}, at + kTimeAt) > greatest) {
        return;
      }
      // Continue with records that have the same header and the same raw size.
      const std::byte* const last = at + smaller(left, size * (most - count)) - size;
      std::uint64_t place = PendingRecord::place_of(index_of(at), PendingRecord::kSample, raw);
      for (; at <= last && Walk::header_at(at) == header && Walk::raw_at(at) == raw; at += size) {
        const std::uint64_t key =
            round.key_of(Sample{{at + Walk::kPayloadAt, raw}, {}}, at + kTimeAt);
        if (key < least) {
          keys_ascend = false;
          break;
        }
        window_.stage(count++, key, place);
        least = key;
        place += size;
      }
    }
    for (; count != 0 && window_.staged(count - 1).key > greatest; --count) {
      at = view_.data.data() + window_.staged(count - 1).index();
    }
    if (count == 0) return;
    at_ = at;
    has_last_key_ = true;
    last_key_ = window_.staged(count - 1).key;
    window_.append_staged(count);
  }

  // Reads the oldest unread record. Returns PendingRecord::none() if nothing is left before end_,
  // or if the record is a LOST and its key is not known yet. If the key function throws, nothing
  // has changed.
  template <class RunState>
  PendingRecord read(RunState& round) {
    if (at_ == stop_) {
      if (position() == end_) return PendingRecord::none();
      if (!positions_valid_) return read_bad_positions(round);
      seek(position());
    }
    const SharedPosition next = position();
    Walk walk{view_};
    const auto at = walk.start(view_, next, static_cast<std::size_t>(end_ - next));
    // The header is loaded once (S10).
    const std::uint64_t header = Walk::header_at(at);
    const std::size_t in_header = Walk::size_of(header);
    const std::size_t size = walk.has_valid_size(at, in_header) ? in_header : walk.left(at);
    const PerfEvent event = walk.interpret(at, Walk::decode(header));
    PendingRecord pending;
    if (const auto* const sample = std::get_if<Sample>(&event)) {
      const bool is_split = index_of(at) + Walk::kPayloadAt + sample->size() > view_.data.size();
      pending = {key_of(*sample, walk.address(at, kTimeAt), round),
                 PendingRecord::place_of(index_of(at),
                                         is_split ? PendingRecord::kSplit : PendingRecord::kSample,
                                         sample->size())};
    } else if (const auto* const malformed = std::get_if<Malformed>(&event)) {
      pending = {
          key_before(round),
          PendingRecord::place_of(index_of(at), kind_of(malformed->defect), malformed->size())};
    } else {
      const auto key =
          lost_keys_.key_of(view_, next + size, end_, key_before(round), look_clock_, round);
      if (!key) return PendingRecord::none();
      pending = {*key, PendingRecord::place_of(index_of(at), PendingRecord::kLost, 0)};
    }
    last_key_ = pending.key;
    has_last_key_ = true;
    seek(next + size);
    return pending;
  }

  std::size_t index_of(const std::byte* at) const noexcept {
    return static_cast<std::size_t>(at - view_.data.data());
  }

  // M7: An earlier look() did not find the record, so the record was published after that look()'s
  // clock.
  template <class RunState>
  [[gnu::always_inline]] std::uint64_t key_of(const Sample& sample, const std::byte* time,
                                              RunState& round) {
    const std::uint64_t key = round.key_of(sample, time);
    if (key < look_clock_.published_after()) [[unlikely]]
      round.note_delay(look_clock_.published_after() - key);
    if (key > round.latest_key(look_clock_.published_by())) [[unlikely]] {
      round.count_ahead();
      return round.ordering_key(key, look_clock_.published_by(), key_before(round));
    }
    return key;
  }

  // M6. ordering_key() checks last_key_ and newest() too, because a flush may have delivered a key
  // that is ahead.
  template <class RunState>
  std::uint64_t key_before(const RunState& round) const noexcept {
    const std::uint64_t key = has_last_key_ ? last_key_ : round.newest();
    return round.ordering_key(key, LookClock::kUnknown, key);
  }

  template <class RunState>
  PendingRecord read_bad_positions(const RunState& round) {
    Walk walk{view_};
    walk.stop_ = end_;
    auto at = view_.data.data();
    const SharedPosition length = smaller<SharedPosition>(end_ - position(), view_.data.size());
    bad_positions_ = walk.bad_positions(at, static_cast<std::size_t>(length));
    holds_bad_positions_ = true;
    seek(end_);
    return {key_before(round), PendingRecord::place_of(0, kind_of(Defect::BadPositions), 0)};
  }

  Window<kWindow> window_;

  const std::byte* at_;    // next record to read
  const std::byte* stop_;  // end of the piece that at_ is in
  SharedPosition stop_position_;
  std::uint64_t last_key_ = 0;  // of the record that was read last
  bool has_last_key_ = false;
  LookClock look_clock_;
  RingView view_;

  // S9: all 64 bits, as in Cursor.
  SharedPosition tail_;  // data_tail, as last read or written here
  SharedPosition end_;   // data_head, as look() read it
  LostKeys<M> lost_keys_;
  Malformed bad_positions_{};
  bool positions_valid_;      // whether they can be a ring's (S8)
  bool holds_bad_positions_;  // whether window_ holds a BadPositions
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_LANE_H_
