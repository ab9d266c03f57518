#ifndef PERFRING_RINGS_ROUND_H_
#define PERFRING_RINGS_ROUND_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// A round over several rings: which ring has the next turn, how many events a turn delivers, and
// when the round ends (rules C3 and C4). Internal to RingSet.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "perfring/ring/cursor.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"
#include "perfring/rings/ring_set_options.h"

namespace perfring::internal {

// One ring's share in a round: what the ring holds when the round begins, and perhaps more.
template <Memory M = DefaultMemory>
class RoundShare {
 public:
  // `cursor` is a cursor over the ring, used for its positions only. `data_size` is the ring's size
  // in bytes.
  RoundShare(Cursor<M> cursor, std::size_t data_size) noexcept
      : cursor_{std::move(cursor)}, data_size_{data_size} {}

  void begin() {
    end_ = cursor_.data_head();
    is_done_ = available_to(end_) == 0;
  }
  // Called after each turn. `emptied`: whether the drain reached the data_head that it had read.
  void end_turn(bool emptied) {
    const Position left = end_ - static_cast<Position>(cursor_.data_tail());
    is_done_ = emptied || left == 0 || left > data_size_;
  }
  bool is_done() const noexcept { return is_done_; }

  // Returns a number of bytes, which exceeds the ring's size if the positions are invalid.
  Position unread() const { return available_to(cursor_.data_head()); }

 private:
  Position available_to(Position head) const {
    return available(data_size_, cursor_.data_tail(), head);
  }

  Cursor<M> cursor_;
  std::size_t data_size_;
  Position end_ = 0;
  bool is_done_ = true;
};

// Returns the ring that has the next turn, or null if all are done. R has share().
template <class R>
R* next_in_turn(std::span<R> rings, std::size_t last) noexcept {
  for (std::size_t i = 1; i <= rings.size(); ++i) {
    R& each = rings[(last + i) % rings.size()];
    if (!each.share().is_done()) return &each;
  }
  return nullptr;
}
template <class R>
// Returns the ring with the most unread bytes that is not done, or null if all are done.
R* fullest(std::span<R> rings) noexcept {
  R* fullest = nullptr;
  Position most = 0;
  for (R& each : rings) {
    if (each.share().is_done()) continue;
    const Position unread = each.share().unread();
    if (fullest == nullptr || unread > most) {
      fullest = &each;
      most = unread;
    }
  }
  return fullest;
}

// Returns true if `delivered` is a number at which the deadline is checked, and it has passed.
inline bool is_late_after(std::uint64_t delivered, const Limits& limits) {
  constexpr std::uint64_t kEventsPerClock = 64;
  return delivered % kEventsPerClock == 0 && limits.is_late(Limits::Clock::now);
}

// Plays one ring's turn, of at most `left` events. Returns Drained if it is the next ring's turn.
template <class R, class F>
DrainEnd take_turn(R& ring, std::uint64_t& left, const Limits& limits, std::uint64_t& delivered,
                   F& f) {
  DrainEnd end = DrainEnd::Drained;
  const bool emptied = ring.for_each_while([&](const auto& event) {
    --left;
    if (is_late_after(++delivered, limits)) end = DrainEnd::Deadline;
    if (!f(ring, event)) end = DrainEnd::Stopped;
    return end == DrainEnd::Drained && left != 0;
  });
  ring.share().end_turn(emptied);
  return end;
}

// Plays a whole round. Passes events to f(ring, event) -> bool; next(rings) chooses the ring for
// each turn. `turn` is the number of the ring that had the last turn. `delivered` counts the
// events, even if f throws.
template <class R, class Next, class F>
DrainEnd take_turns(std::span<R> rings, Limits limits, std::size_t& turn, std::uint64_t& delivered,
                    Next next, F& f) {
  if (limits.per_ring == 0) limits.per_ring = 1;
  for (R& each : rings) each.begin_round();
  while (R* const ring = next(rings)) {
    if (limits.events == 0) return DrainEnd::Limit;
    if (limits.is_late(Limits::Clock::now)) return DrainEnd::Deadline;
    turn = static_cast<std::size_t>(ring - rings.data());
    const std::uint64_t most = smaller(limits.per_ring, limits.events);
    std::uint64_t left = most;
    const DrainEnd end = take_turn(*ring, left, limits, delivered, f);
    limits.events -= most - left;
    if (end != DrainEnd::Drained) return end;
  }
  return DrainEnd::Drained;
}

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_ROUND_H_
