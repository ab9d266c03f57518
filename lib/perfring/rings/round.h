#ifndef PERFRING_RINGS_ROUND_H_
#define PERFRING_RINGS_ROUND_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// A round over several rings: whose turn it is, how much a turn takes, and when the round ends
// (rules C3 and C4). Internal to RingSet.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "perfring/ring/cursor.h"
#include "perfring/ring/walk.h"
#include "perfring/rings/ring_set_options.h"

namespace perfring::internal {

// One ring's part in a round: what the ring holds when the round begins, and perhaps more.
template <Memory M = DefaultMemory>
class RoundShare {
 public:
  // A cursor over the ring, for its positions alone; `data_size` is the ring's, in bytes.
  RoundShare(Cursor<M> cursor, std::size_t data_size) noexcept
      : cursor_{std::move(cursor)}, data_size_{data_size} {}

  void begin() {
    end_ = cursor_.data_head();
    is_done_ = available_to(end_) == 0;
  }
  // After each turn; `emptied`: the drain has reached the data_head that it read.
  void end_turn(bool emptied) {
    const Position left = end_ - static_cast<Position>(cursor_.data_tail());
    is_done_ = emptied || left == 0 || left > data_size_;
  }
  bool is_done() const noexcept { return is_done_; }

  // Bytes; more than the ring's size if the positions are wrong.
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

// The ring whose turn is next, or null: all are done. R has share().
template <class R>
R* next_in_turn(std::span<R> rings, std::size_t last) noexcept {
  for (std::size_t i = 1; i <= rings.size(); ++i) {
    R& each = rings[(last + i) % rings.size()];
    if (!each.share().is_done()) return &each;
  }
  return nullptr;
}
template <class R>
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

// Whether `delivered` is a number at which the deadline is looked at, and has passed.
inline bool is_late_after(std::uint64_t delivered, const Limits& limits) {
  constexpr std::uint64_t kEventsPerClock = 64;
  return delivered % kEventsPerClock == 0 && limits.is_late(Limits::Clock::now);
}

// One ring's turn: of `left` events at most. Drained: it is another's.
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

// A whole round by f(ring, event) -> bool, each turn that of next(rings). `turn` is the number of
// the ring that had the last one, `delivered` counts events, also if f throws.
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
