#ifndef PERFRING_RINGS_LANE_H_
#define PERFRING_RINGS_LANE_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// One ring of a merge: what was read of it and is not delivered, in the order of its keys. Internal
// to Merge, whose header states the rules (M1 to M9) cited here; it goes through the ring by the
// walk that Ring and Cursor share (S1 to S10: ring/cursor.h).
// W: facts that were measured, in the project's harness/RINGS_FACTS.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"
#include "perfring/rings/held_event.h"
#include "perfring/rings/looks.h"
#include "perfring/rings/lost_keys.h"
#include "perfring/rings/stretch.h"
#include "perfring/rings/window.h"

namespace perfring::internal {

template <Memory M, unsigned kWindow>
class alignas(64) Lane {
  using Walk = internal::Walk<M>;

 public:
  explicit Lane(const RingView& view) noexcept : view_{view} { forget(0); }

  const RingView& view() const noexcept { return view_; }

  std::uint64_t next_word = 0;  // Merge's: that of what comes after the front

  // M1: the clock was read before this.
  void look(std::uint64_t clock) {
    const SharedPosition tail = own_tail<M>(*view_.page);
    if (tail != tail_) [[unlikely]]
      forget(tail);
    if (holds_bad_positions_) [[unlikely]]
      return;  // there is room for one
    const SharedPosition next = position();
    looks_.look(next, end_, clock);
    end_ = next + distance(next, read_head<M>(*view_.page));
    positions_ = are_positions(view_, tail_, next, end_);
    seek(next);
  }

  // A front is in the stretch if there is one, else in hot_.
  bool empty() const noexcept { return stretch_.is_none() && hot_.held().is_none(); }
  std::uint64_t front_key() const noexcept {
    return stretch_.is_none() ? hot_.key : stretch_.front_key();
  }
  bool has_next() const noexcept { return hot_.count != 0 || !stretch_.is_none(); }
  std::uint64_t next_key() const noexcept {
    return stretch_.is_none() ? window_.key_at(hot_.first) : stretch_.next_key();
  }

  // Before the first is taken in a run.
  template <class Round>
  void fill(Round& round) {
    tries_ = 1;
    if (!stretch_.is_none()) return;
    while (window_.has_room(hot_)) {
      const Held held = read(round, hot_);
      if (held.is_none()) return;
      if (window_.fill(held, hot_)) round.displaced();
    }
  }

  // M8, of what a flush has read and left: from now on there is a clock.
  template <class Round>
  [[gnu::noinline]] void meets_clock(Round& round) {
    hot_.last_key = smaller(hot_.last_key, round.seen);
    if (!stretch_.is_none()) return stretch_.meets_clock(round);
    if (empty()) return;
    // In the ring's order: so they come if they have one key from now on.
    std::array<Held, kWindow + 1> all;
    unsigned count = 0;
    const auto add = [&](Held held) {
      if (held.key > round.seen) {
        held.key = held.kind() == Held::kSample ? round.ahead() : round.seen;
      }
      unsigned i = count++;
      for (; i != 0 && from_tail(held) < from_tail(all[i - 1]); --i) all[i] = all[i - 1];
      all[i] = held;
    };
    add(hot_.held());
    for (unsigned i = 0; i != hot_.count; ++i) add(window_.at(hot_.first + i));
    hot_.hold(Held::none());
    hot_.count = 0;
    for (unsigned i = 0; i != count; ++i) window_.fill(all[i], hot_);
  }

  // Whether the front, and what comes after it, are even: then take_even() and take_even_while()
  // take it, else take() and take_while(). What is next stays so.
  template <class Round>
  [[gnu::always_inline]] bool is_even(Round& round) {
    if (stretch_.has_more()) [[likely]]
      return true;
    if (stretch_.is_none() && --tries_ != 0) return false;
    return becomes_even(round);
  }
  [[gnu::always_inline]] Sample take_even() noexcept {
    const Sample front{{stretch_.payload(), stretch_.raw()}, {}};
    stretch_.take();
    return front;
  }
  std::uint64_t front_even_key() const noexcept { return stretch_.front_key(); }
  std::uint64_t next_even_key() const noexcept { return stretch_.next_key(); }
  // As take_while().
  template <class Round, class Visit>
  [[gnu::always_inline]] bool take_even_while(std::uint64_t base, std::uint64_t span,
                                              std::uint64_t& limit, Round& round, Visit visit) {
    const std::size_t raw = stretch_.raw();
    const auto visits =
        [&](std::uint64_t key, const std::byte* payload)
            __attribute__((always_inline)) { return visit(key, Sample{{payload, raw}, {}}); };
    do {
      if (!stretch_.take_while(base, span, limit, visits)) return false;
    } while (limit != 0 && stretch_.front_key() - base < span && is_even(round));
    return true;
  }

  // Takes the front, and reads another. If the key throws, nothing has changed.
  template <class Round>
  [[gnu::always_inline]] Held take(Round& round) {
    return take(round, hot_);
  }

  // Takes fronts, at least one and at most `limit`, which it counts down, while the next key is
  // less than `span` above `base`, and not lower, and while visit(Held) says true. Returns what it
  // said last.
  template <class Round, class Visit>
  [[gnu::always_inline]] bool take_while(std::uint64_t base, std::uint64_t span,
                                         std::uint64_t& limit, Round& round, Visit visit) {
    Aside aside{*this};
    do {
      --limit;
      if (!visit(take(round, aside.hot))) return false;
    } while (limit != 0 && aside.hot.key - base < span && !aside.hot.held().is_none());
    return true;
  }

  [[gnu::always_inline]] PerfEvent event(const Held& held) {
    if (is_defect(held, Defect::BadPositions)) [[unlikely]] {
      holds_bad_positions_ = false;
      return bad_positions_;
    }
    return event_of<M>(view_, held);
  }

  // M4: data_tail moves to the oldest record that was not delivered, if that is another (S2, S3).
  void release() {
    if (holds_bad_positions_) [[unlikely]]
      return;
    SharedPosition delivered = position() - tail_;
    const auto stops_at = [&](const Held& held) {
      if (from_tail(held) < delivered) delivered = from_tail(held);
    };
    if (!stretch_.is_none()) {
      stops_at(stretch_.template front<Walk>(view_.data.data()));
    } else if (!empty()) {
      stops_at(hot_.held());
    }
    for (unsigned i = 0; i != hot_.count; ++i) stops_at(window_.at(hot_.first + i));
    move_tail<M>(*view_.page, tail_, tail_ + delivered);
  }

 private:
  // The same in registers, for as long as this lasts: also if something is thrown.
  struct Aside {
    explicit Aside(Lane& of) noexcept : lane{of}, hot{of.hot_} {}
    ~Aside() { lane.hot_ = hot; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    Lane& lane;
    Hot hot;
  };

  // How far it lies behind data_tail. That of BadPositions is all that is left, and the last.
  SharedPosition from_tail(const Held& held) const noexcept {
    if (is_defect(held, Defect::BadPositions)) return ~SharedPosition{0};
    return (held.index() - tail_) & (view_.data.size() - 1);
  }

  // Of what is read next.
  SharedPosition position() const noexcept {
    return stop_position_ - static_cast<SharedPosition>(hot_.stop - hot_.at);
  }

  // Begins anew at `tail`.
  void forget(SharedPosition tail) noexcept {
    tail_ = end_ = tail;
    looks_.forget(tail);
    lost_keys_.forget(tail);
    hot_.hold(Held::none());
    hot_.count = 0;
    stretch_.forget();
    positions_ = true;
    holds_bad_positions_ = false;
    seek(tail);
  }

  // hot_.at and hot_.stop around what read() can go through in one piece from `next` on: up to the
  // ring's end, or to the mark, behind which another clock counts (M7).
  void seek(SharedPosition next) noexcept {
    hot_.at = hot_.stop = view_.data.data();
    stop_position_ = next;
    if (!positions_) return;
    Walk walk{view_};
    hot_.at = walk.start(view_, next, static_cast<std::size_t>(end_ - next));
    const std::size_t length = looks_.seek(next, end_, walk.piece(hot_.at));
    hot_.stop = hot_.at + length;
    stop_position_ = next + length;
  }

  // Whether there is a stretch that has more, from now on.
  template <class Round>
  [[gnu::noinline]] bool becomes_even(Round& round) {
    if (stretch_.is_none()) {
      tries_ = kTriesApart;
      if (!stretch_.template begin<Walk>(window_, hot_, view_.data.data(), hot_.at, hot_.stop)) {
        return false;
      }
    }
    // M7: a lower key proves a delay, which is for read() to see.
    stretch_.template extend<Walk>(hot_.at, hot_.stop, hot_.last_key, looks_.after(), round);
    if (stretch_.has_more()) return true;
    stretch_.template end<Walk>(window_, hot_, view_.data.data());
    return false;
  }
  static constexpr unsigned kTriesApart = 32;  // of beginning a stretch

  // The oldest record that was not read: none if there is none in this look, or if it has no key
  // yet.
  template <class Round>
  [[gnu::always_inline]] Held read(Round& round, Hot& hot) {
    if (hot.at == hot.stop) [[unlikely]]
      return slow(round, hot);
    const std::uint64_t header = Walk::header_at(hot.at);
    const std::size_t size = Walk::size_of(header);
    if (Walk::is_sample(header) && size <= static_cast<std::size_t>(hot.stop - hot.at)) [[likely]] {
      const std::uint32_t raw = Walk::raw_at(hot.at);
      if (raw <= size - Walk::kPayloadAt) [[likely]] {
        const std::uint64_t key =
            key_of(Sample{{hot.at + Walk::kPayloadAt, raw}, {}}, hot.at + kTimeAt, round);
        const auto index = static_cast<std::size_t>(hot.at - view_.data.data());
        hot.last_key = key;
        hot.has_last_key = true;
        hot.at += size;
        prefetch(hot.at, size);
        return Held::of(key, index, Held::kSample, raw);
      }
    }
    return slow(header, round, hot);
  }

  // The same where that is not all. What `hot` has of reading is put back for as long.
  template <class Round>
  [[gnu::always_inline]] Held slow(Round& round, Hot& hot) {
    hot_.continue_from(hot);
    const Held held = read_across(round);
    return hot.resume(hot_, held);
  }
  template <class Round>
  [[gnu::always_inline]] Held slow(std::uint64_t header, Round& round, Hot& hot) {
    hot_.continue_from(hot);
    const Held held = read_odd(header, round);
    return hot.resume(hot_, held);
  }
  template <class Round>
  [[gnu::noinline]] Held read_across(Round& round) {
    if (position() == end_) return Held::none();
    if (!positions_) return read_bad_positions(round);
    Crossing crossing{*this, position()};
    seek(crossing.from);
    const Held held = read(round, hot_);
    crossing.is_done = true;
    return held;
  }
  // If the key throws, the caller's copy of hot_ knows nothing of the next piece: the lane forgets
  // it, too.
  struct Crossing {
    ~Crossing() {
      if (is_done) return;
      lane.hot_.at = lane.hot_.stop;
      lane.stop_position_ = from;
    }
    Lane& lane;
    const SharedPosition from;
    bool is_done = false;
  };

  // Takes the front, and reads another. If the key throws, nothing has changed.
  template <class Round>
  [[gnu::always_inline]] Held take(Round& round, Hot& hot) {
    const Held another = read(round, hot);
    const Held front = hot.held();
    if (window_.advance(another, hot)) [[unlikely]]
      round.displaced();
    return front;
  }

  // W18: with many rings, each next record is a cache miss.
  [[gnu::always_inline]] static void prefetch(const std::byte* at, std::size_t size) noexcept {
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) + kPrefetched * size));
  }
  static constexpr std::size_t kPrefetched = 4;

  // M7: it was not there when data_head was read before, so that it was published after the clock
  // of then.
  template <class Round>
  [[gnu::always_inline]] std::uint64_t key_of(const Sample& sample, const std::byte* time,
                                              Round& round) {
    const std::uint64_t key = round.key_of(sample, time);
    if (key < looks_.after()) [[unlikely]]
      round.delayed(looks_.after() - key);
    if (key > round.seen) [[unlikely]]
      return round.ahead();
    return key;
  }

  template <class Round>
  std::uint64_t key_before(const Round& round) const noexcept {
    return hot_.has_last_key ? hot_.last_key : round.newest();
  }

  // Whatever read() does not see through at once. `header` is what it loaded (S10).
  template <class Round>
  [[gnu::noinline]] Held read_odd(std::uint64_t header, Round& round) {
    const SharedPosition next = position();
    Walk walk{view_};
    const auto at = walk.start(view_, next, static_cast<std::size_t>(end_ - next));
    const std::size_t in_header = Walk::size_of(header);
    const std::size_t size = walk.believable(at, in_header) ? in_header : walk.left(at);
    const PerfEvent event = walk.interpret(at, Walk::decode(header));
    const auto index = static_cast<std::size_t>(at - view_.data.data());
    Held held;
    if (const auto* const sample = std::get_if<Sample>(&event)) {
      held = Held::of(key_of(*sample, walk.address(at, kTimeAt), round), index, Held::kSample,
                      sample->size());
    } else if (const auto* const malformed = std::get_if<Malformed>(&event)) {
      held = Held::of(key_before(round), index, kind_of(malformed->defect), malformed->size());
    } else {
      const auto key = lost_keys_.key_of(view_, next + size, end_, key_before(round), round);
      if (!key) return Held::none();
      held = Held::of(*key, index, Held::kLost, 0);
    }
    hot_.last_key = held.key;
    hot_.has_last_key = true;
    seek(next + size);
    return held;
  }

  template <class Round>
  [[gnu::noinline]] Held read_bad_positions(const Round& round) {
    Walk walk{view_};
    walk.stop_ = end_;
    auto at = view_.data.data();
    const SharedPosition length = smaller<SharedPosition>(end_ - position(), view_.data.size());
    bad_positions_ = walk.bad_positions(at, static_cast<std::size_t>(length));
    holds_bad_positions_ = true;
    seek(end_);
    return Held::of(key_before(round), 0, kind_of(Defect::BadPositions), 0);
  }

  Hot hot_;
  SharedPosition stop_position_;  // of hot_.stop
  Looks looks_;
  RingView view_;
  Window<kWindow> window_;
  Stretch<kWindow> stretch_;
  unsigned tries_ = 1;  // takes until a stretch may begin

  // S9: all 64 bits, as Cursor has them.
  SharedPosition tail_;  // data_tail, as this left it
  SharedPosition end_;   // data_head, when look() read it
  LostKeys<M> lost_keys_;
  Malformed bad_positions_{};
  bool positions_;            // are those of a ring
  bool holds_bad_positions_;  // in the window
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_LANE_H_
