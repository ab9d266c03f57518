#ifndef PERFRING_RINGS_LANE_H_
#define PERFRING_RINGS_LANE_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// One ring of a merge: what was read of it and is not delivered, in the order of its keys. Internal
// to Merge, whose header states the rules (M1 to M9) cited here; it goes through the ring by the
// walk that Ring and Cursor share (S1 to S10: ring/cursor.h).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

// A record that was read, checked and not delivered; or none. Two words, so that it is returned,
// and kept, in registers.
struct Held {
  // Beside the kinds of Malformed, which are kMalformed + Defect.
  static constexpr std::uint32_t kSample = 0;
  static constexpr std::uint32_t kLost = 1;
  static constexpr std::uint32_t kMalformed = 2;
  static constexpr std::uint32_t kKinds = kAlignment - 1;  // the bits that no index needs

  // `index` is that in the ring's data, `length` that of a Sample's raw bytes, or of a Malformed's.
  static Held of(std::uint64_t key, std::size_t index, std::uint32_t kind, std::size_t length) {
    return {key, std::uint64_t{length} << 32 | index | kind};
  }
  static constexpr Held none() noexcept { return {0, ~std::uint64_t{0}}; }

  bool is_none() const noexcept { return place == none().place; }
  std::size_t index() const noexcept { return static_cast<std::uint32_t>(place) & ~kKinds; }
  std::uint32_t kind() const noexcept { return static_cast<std::uint32_t>(place) & kKinds; }
  std::uint32_t length() const noexcept { return static_cast<std::uint32_t>(place >> 32); }

  std::uint64_t key;
  std::uint64_t place;
};

template <Memory M, unsigned kWindow>
class alignas(64) Lane {
  static_assert(std::has_single_bit(kWindow) && kWindow <= 64,
                "a window is 1, 2, 4 .. or 64 records long");
  using Walk = internal::Walk<M>;

 public:
  explicit Lane(const RingView& view) noexcept : view_{view} { forget(0); }

  const RingView& view() const noexcept { return view_; }

  // M1: the clock was read before this.
  void look(std::uint64_t clock) {
    const SharedPosition tail = own_tail<M>(*view_.page);
    if (tail != tail_) [[unlikely]]
      forget(tail);
    if (holds_bad_positions_) [[unlikely]]
      return;  // there is room for one
    const SharedPosition next = position();
    if (!is_ahead(mark_, next)) {
      after_ = mark_clock_;
      mark_ = end_;
      mark_clock_ = looked_at_;
    }
    looked_at_ = clock;
    end_ = next + distance(next, read_head<M>(*view_.page));
    positions_ = end_ - tail_ <= view_.data.size() && (next | end_) % kAlignment == 0;
    seek(next);
  }

  // What is held: the front, which is delivered next, and behind it the window, in the order of
  // keys. So it is known which record comes after the front before another one is read.
  bool empty() const noexcept { return hot_.front().is_none(); }
  std::uint64_t front_key() const noexcept { return hot_.front_key; }
  bool has_next() const noexcept { return hot_.count != 0; }
  std::uint64_t next_key() const noexcept { return keys_[hot_.first % kWindow]; }

  // Before the first is taken in a run. The front is the lowest of as many as the window is long.
  template <class Round>
  void fill(Round& round) {
    while (hot_.count != kWindow) {
      const Held held = read(round, hot_);
      if (held.is_none()) return;
      if (empty()) {
        hot_.set_front(held);
      } else if (hot_.count + 1 != kWindow && held.key < hot_.front_key) {
        set(--hot_.first, hot_.front());
        hot_.set_front(held);
        ++hot_.count;
        round.displaced();
      } else {
        put(held, round, hot_);
      }
    }
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
    } while (limit != 0 && aside.hot.front_key - base < span && !aside.hot.front().is_none());
    return true;
  }

  [[gnu::always_inline]] PerfEvent event(const Held& held) {
    const std::size_t from = held.index() + kPayloadAt;
    if (held.kind() == Held::kSample && from + held.length() <= view_.data.size()) [[likely]]
      return Sample{{view_.data.data() + from, held.length()}, {}};
    return odd_event(held);
  }

  // M4: data_tail moves to the oldest record that was not delivered, if that is another (S2, S3).
  void release() {
    if (holds_bad_positions_) [[unlikely]]
      return;
    SharedPosition delivered = position() - tail_;
    const auto stops_at = [&](const Held& held) {
      const SharedPosition before = (held.index() - tail_) & (view_.data.size() - 1);
      if (before < delivered) delivered = before;
    };
    if (!empty()) stops_at(hot_.front());
    for (unsigned i = 0; i != hot_.count; ++i) stops_at(at(hot_.first + i));
    // As Cursor: what another consumer has consumed is not given back again.
    if (delivered == 0 || own_tail<M>(*view_.page) != tail_) return;
    tail_ += delivered;
    M::fence_before_write_of(view_.page->data_tail);
    M::write_once(view_.page->data_tail, tail_);
  }

 private:
  // What changes with each record.
  struct Hot {
    const std::byte* at;    // of what is read next
    const std::byte* stop;  // where its piece ends
    // The front, its words apart, as those of the window are.
    std::uint64_t front_key;
    std::uint64_t last_key = 0;  // of what was read last
    std::uint64_t front_place;
    unsigned first = 0;  // of the window, modulo its length
    unsigned count = 0;  // in the window
    bool has_last_key = false;

    Held front() const noexcept { return {front_key, front_place}; }
    void set_front(const Held& held) noexcept {
      front_key = held.key;
      front_place = held.place;
    }
  };

  // The same in registers, for as long as this lasts: also if something is thrown.
  struct Aside {
    explicit Aside(Lane& of) noexcept : lane{of}, hot{of.hot_} {}
    ~Aside() { lane.hot_ = hot; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    Lane& lane;
    Hot hot;
  };

  // Of what is read next.
  SharedPosition position() const noexcept {
    return stop_position_ - static_cast<SharedPosition>(hot_.stop - hot_.at);
  }
  // Whether `place` lies behind `next` and not behind end_. (All positions that are kept lie in
  // what is or was unread.)
  bool is_ahead(SharedPosition place, SharedPosition next) const noexcept {
    return place != next && place - next <= end_ - next;
  }

  // Begins anew at `tail`.
  void forget(SharedPosition tail) noexcept {
    tail_ = end_ = mark_ = scanned_ = waited_to_ = tail;
    after_ = mark_clock_ = looked_at_ = 0;
    hot_.set_front(Held::none());
    hot_.count = 0;
    positions_ = true;
    holds_bad_positions_ = found_ = false;
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
    std::size_t length = walk.piece(hot_.at);
    if (is_ahead(mark_, next)) {
      length = smaller(length, static_cast<std::size_t>(mark_ - next));
    } else {
      after_ = mark_clock_;
    }
    hot_.stop = hot_.at + length;
    stop_position_ = next + length;
  }

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
      if (raw <= size - kPayloadAt) [[likely]] {
        const std::uint64_t key = key_of(Sample{{hot.at + kPayloadAt, raw}, {}}, round);
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
    put_back(hot);
    const Held held = read_across(round);
    return resume(held, hot);
  }
  template <class Round>
  [[gnu::always_inline]] Held slow(std::uint64_t header, Round& round, Hot& hot) {
    put_back(hot);
    const Held held = read_odd(header, round);
    return resume(held, hot);
  }
  [[gnu::always_inline]] void put_back(const Hot& hot) noexcept {
    hot_.at = hot.at;
    hot_.stop = hot.stop;
    hot_.last_key = hot.last_key;
    hot_.has_last_key = hot.has_last_key;
  }
  [[gnu::always_inline]] Held resume(const Held& held, Hot& hot) const noexcept {
    hot.at = apart(hot_.at);
    hot.stop = apart(hot_.stop);
    hot.last_key = apart(hot_.last_key);
    hot.has_last_key = hot_.has_last_key;
    return {apart(held.key), apart(held.place)};
  }
  // Keeps g++ from making vectors of words that stand side by side, which it then has to take apart
  // again for each record: 1.25 times as long in runs.
  template <class T>
  static T apart(T word) noexcept {
    asm("" : "+r"(word));
    return word;
  }

  template <class Round>
  [[gnu::noinline]] Held read_across(Round& round) {
    if (position() == end_) return Held::none();
    if (!positions_) return read_bad_positions(round);
    seek(position());
    return read(round, hot_);
  }

  // Takes the front, and reads another. If the key throws, nothing has changed.
  template <class Round>
  [[gnu::always_inline]] Held take(Round& round, Hot& hot) {
    const Held another = read(round, hot);
    const Held front = hot.front();
    const unsigned first = hot.first;
    if (hot.count == kWindow && !another.is_none() &&
        (kWindow == 1 || another.key >= keys_[(first - 1) % kWindow])) [[likely]] {
      // The window's first leaves its place to the one that is its last from now on.
      hot.set_front(at(first));
      set(first, another);
      hot.first = first + 1;
    } else if (hot.count != 0) {
      hot.set_front(at(hot.first++));
      --hot.count;
      if (!another.is_none()) [[likely]]
        put(another, round, hot);
    } else {
      hot.set_front(another);
    }
    return front;
  }

  // In the window, where its key belongs: behind those that are equal.
  template <class Round>
  [[gnu::always_inline]] void put(const Held& held, Round& round, Hot& hot) noexcept {
    unsigned place = hot.first + hot.count++;
    if (place != hot.first && held.key < keys_[(place - 1) % kWindow]) [[unlikely]] {
      round.displaced();
      do {
        set(place, at(place - 1));
        --place;
      } while (place != hot.first && held.key < keys_[(place - 1) % kWindow]);
    }
    set(place, held);
  }

  // Of the window.
  Held at(unsigned i) const noexcept { return {keys_[i % kWindow], places_[i % kWindow]}; }
  void set(unsigned i, const Held& held) noexcept {
    keys_[i % kWindow] = held.key;
    places_[i % kWindow] = held.place;
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
  [[gnu::always_inline]] std::uint64_t key_of(const Sample& sample, Round& round) {
    const std::uint64_t key = round.key(sample);
    if (key < after_) [[unlikely]]
      round.delayed(after_ - key);
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
      held = Held::of(key_of(*sample, round), index, Held::kSample, sample->size());
    } else if (const auto* const malformed = std::get_if<Malformed>(&event)) {
      held = Held::of(key_before(round), index, kind_of(malformed->defect), malformed->size());
    } else {
      const auto key = key_of_lost(next + size, round);
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

  static std::uint32_t kind_of(Defect defect) noexcept {
    return Held::kMalformed + static_cast<std::uint32_t>(defect);
  }

  // M6, of a LOST that ends at `behind`. nullopt: it waits.
  template <class Round>
  std::optional<std::uint64_t> key_of_lost(SharedPosition behind, Round& round) {
    if (scanned_ != behind && !is_ahead(scanned_, behind)) {
      scanned_ = behind;
      found_ = false;
    }
    if (!found_) scan(round);
    if (found_) return sample_key_;
    if (round.takes_all) return key_before(round);
    if (waited_to_ != behind && !is_ahead(waited_to_, behind)) {
      waited_to_ = end_;
      waited_in_ = round.number;
      waited_bound_ = round.bound;
    }
    if (waited_in_ == round.number) return std::nullopt;
    return waited_bound_;
  }

  // Goes from scanned_ on to the next sample, whose key it takes. What it meets is read, and
  // checked, anew when it is that record's turn.
  template <class Round>
  void scan(Round& round) {
    while (scanned_ != end_) {
      Walk walk{view_};
      const auto at = walk.start(view_, scanned_, static_cast<std::size_t>(end_ - scanned_));
      const std::uint64_t header = Walk::header_at(at);
      const std::size_t size = Walk::size_of(header);
      if (!walk.believable(at, size)) {
        scanned_ = end_;
        return;
      }
      const PerfEvent event = walk.interpret(at, Walk::decode(header));
      if (const auto* const sample = std::get_if<Sample>(&event)) {
        sample_key_ = smaller<std::uint64_t>(round.key(*sample), round.seen);
        found_ = true;
        return;
      }
      scanned_ += size;
    }
  }

  [[gnu::noinline]] PerfEvent odd_event(const Held& held) {
    Walk walk{view_};
    if (held.kind() == Held::kSample) {
      const auto at = walk.start(view_, held.index(), kPayloadAt + held.length());
      return Sample{walk.head_of(at, kPayloadAt, held.length()),
                    walk.tail_of(at, kPayloadAt, held.length())};
    }
    if (held.kind() == Held::kLost) {
      const auto at = walk.start(view_, held.index(), kLostSizeMin);
      return Lost{M::template read<std::uint64_t>(walk.address(at, kLostCountAt))};
    }
    const auto defect = static_cast<Defect>(held.kind() - Held::kMalformed);
    if (defect == Defect::BadPositions) {
      holds_bad_positions_ = false;
      return bad_positions_;
    }
    return walk.malformed(defect, walk.start(view_, held.index(), held.length()), held.length());
  }

  Hot hot_;
  SharedPosition stop_position_;  // of hot_.stop
  std::uint64_t after_;           // what is read next was published after this
  RingView view_;
  // The window: apart, or compilers copy both words by way of vectors.
  std::array<std::uint64_t, kWindow> keys_;
  std::array<std::uint64_t, kWindow> places_;

  // S9: all 64 bits, as Cursor has them.
  SharedPosition tail_;  // data_tail, as this left it
  SharedPosition end_;   // data_head, when look() read it
  // Where an earlier look ended, and the clock before it.
  SharedPosition mark_;
  std::uint64_t mark_clock_;
  std::uint64_t looked_at_;  // the clock before the last look
  // Up to where no sample follows; or, if one was found, where it is and what its key is.
  SharedPosition scanned_;
  std::uint64_t sample_key_;
  // The end of the look that the LOSTs before it waited in, its number and its bound.
  SharedPosition waited_to_;
  std::uint64_t waited_in_ = 0;
  std::uint64_t waited_bound_ = 0;
  Malformed bad_positions_{};
  bool positions_;  // are those of a ring
  bool found_;
  bool holds_bad_positions_;  // in the window
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_LANE_H_
