#ifndef PERFRING_MERGE_MERGE_H_
#define PERFRING_MERGE_MERGE_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Merge<Memory>: delivers the events of several rings, one for each CPU, in the order of their
// keys. A key is a clock value that the writer read and put into the payload. Events are delivered
// in place, in their rings: delivery copies nothing, allocates nothing and makes no system call.
//
//   Merge<> merge;
//   for (auto& mapping : mappings) merge.add(mapping, page_size);
//   for (;; wait()) {
//     merge.run(KeyAt{0}, monotonic_ns, [](const Ordered& each) { handle(each); });
//   }
//
// W1 and so on are facts measured on a live kernel, and the proof of the rule, in the project's
// harness/RINGS_FACTS.md. D is the slack; h_c is the clock, read before data_head of ring c.
//
//   M1  A run reads the data_head of each ring once, and reads the clock just before it, in program
//       order (a processor may swap the two, by nanoseconds, which any slack but 0 covers). A run
//       delivers the releasable events that were published by then. It never waits for more.
//   M2  An event is released once its key is lower than B = (the smallest h_c) - D, or 0 if that is
//       negative. If no writer takes longer than D from reading its clock to its output, each event
//       is delivered after all older ones (W6). No sound rule releases more. Released events are
//       delivered in the order of their keys. Events with equal keys are delivered in the order of
//       their rings, and within a ring in the ring's order.
//   M3  Within one ring, keys go backward where writers nest (W3, W4). The merge sorts a window of
//       the oldest records of each ring. A window of 8 repairs every inversion that was measured. A
//       record displaced by more than the window is late.
//   M4  Each run moves the data_tail of each ring once, to the oldest undelivered record (W21),
//       even if the callback stops or throws. The event on which it did so counts as delivered. The
//       undelivered records stay in their rings.
//   M5  An event is late if its key is lower than the key of an event delivered before it. A late
//       event is delivered at once, flagged, and counted exactly. No event is dropped.
//   M6  Some events have no key. A Lost takes the key of the next sample in its ring (W10), and
//       waits for that sample. If no sample has followed by the next run, the Lost's key is the
//       bound B of the run in which it first waited; no later sample has a lower key. A Malformed
//       takes the key of the record before it in its ring, or the newest key delivered if there is
//       no such record. So does, in a flush(), a Lost that no sample follows.
//   M7  If a record was not yet published when data_head was read, but its key is older than the
//       clock read before that, the difference proves how long its writer took (W5). longest_delay
//       is the longest such delay. The slack becomes twice the longest delay (W8b), but ignores
//       delays of more than half of slack_most: either the key is wrong, or the writer was stalled
//       (W7) and that slack would hold up everything.
//   M8  A key may be any 64-bit value. When a run has read every data_head, it reads the clock once
//       more. A key that is higher than this clock, in the run that first found its record, is not
//       from this clock. The event is counted as ahead, and it holds nothing up: instead of its own
//       key it gets the key of the record before it in its ring, or the newest key delivered if
//       that is higher. So the run that reads the event releases it, unless the record before it
//       waits, or the slack has just grown (M7) and B has gone back. The event is not late and
//       makes no other event late, and no event waits for its place in the order for longer than 2
//       D, whatever clock its key is from. (If the substitute key is ahead as well, because of a
//       flush() or a clock that jumped back, the event gets B - 1 and is late.) In a flush() no key
//       is ahead: events keep their own keys, and the next run compares the records that flush()
//       read but left with its own clock.
//   M9  Whatever the rings hold, rules S4 to S11 (ring/ring.h, ring/cursor.h) apply to the events
//       delivered from each ring, and the contents of one ring delay no other ring by more than D.
//
// Units: keys, slack and clock() use one clock. Its unit is the nanosecond if it is
// CLOCK_MONOTONIC, like bpf_ktime_get_ns(). Only the defaults rely on that.
// Lifetime: the rings' memory must outlive the Merge. An event is valid until the callback returns.
// Threads: one at a time. The kernel, or other producers, may write meanwhile.
// Errors: only add() refuses anything. add() allocates and may throw std::bad_alloc. Nothing else
// allocates, throws or makes a system call, except the clock, the key function and the callback.
// Their exceptions pass through and lose no event.
//
// Bad input:
//  - A null function pointer ends the program (SIGILL or SIGTRAP) before anything is read.
//  - A limit of 0 delivers nothing. The result is Limit if there is something to deliver.
//  - A clock that stands still releases nothing, except to flush().
//  - A clock that jumps back releases nothing until it has caught up, except events that arrive
//    meanwhile: their keys are ahead of it (M8), so they overtake others.
//  - A clock that jumps forward, or that is not the writers' clock, causes late events, delays or
//    keys ahead. All are counted.
//  - A slack that is too long for the rings' size makes the kernel drop records, which it counts:
//    Lost.
//  - A ring that is added twice, or that overlaps another, is refused.
//  - run() or flush() from within a callback of the same Merge delivers nothing (MergeEnd::Nested).
//  - If the callback drains one of the rings by other means, data_tail does not go back, and the
//    next run treats the ring's undelivered records as consumed. Until the current run ends, the
//    ring's events hold whatever bytes are at their places by then, always inside the ring.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <linux/perf_event.h>

#include "perfring/merge/key_at.h"
#include "perfring/merge/key_words.h"
#include "perfring/merge/lane.h"
#include "perfring/merge/look_clock.h"
#include "perfring/merge/loser_tree.h"
#include "perfring/merge/slack.h"
#include "perfring/merge/window.h"
#include "perfring/perf_event.h"
#include "perfring/ring/callback.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/wire.h"

namespace perfring {

// An event as the callback receives it.
struct Ordered {
  std::size_t ring;   // the number that add() returned
  std::uint64_t key;  // the key by which it was ordered (M6, M8)
  bool late;
  PerfEvent event;
};

// Why a run ended.
enum class MergeEnd {
  Released,  // everything that was there and may be delivered has been delivered
  Limit,
  Stopped,  // the callback returned false
  Nested,   // another run of this Merge was in progress
};

template <Memory M = DefaultMemory, unsigned kWindow = 8>
class Merge {
 public:
  explicit Merge(const MergeOptions& options = {}) noexcept : slack_{options} {}
  // A copy would consume the same rings.
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  static constexpr std::size_t kRingsMax = 65536;

  // Adds a ring, given as for Ring::over(). Returns its number (0, 1, 2 ...). Returns nullopt if it
  // is not a valid ring, if it overlaps a ring that was added before, if there are kRingsMax rings
  // already, or if a run is in progress.
  std::optional<std::size_t> add(perf_event_mmap_page& page, Bytes data) {
    return add(internal::view_of(page, data));
  }
  std::optional<std::size_t> add(std::span<std::byte> mapping, std::size_t page_size) {
    return add(internal::view_of(mapping, page_size));
  }

  // Allocates the memory for one more ring, so that the next add() cannot throw.
  void reserve_one() {
    tree_.reserve(lanes_.size() + 1);
    lanes_.reserve(lanes_.size() + 1);
    if (spare_arrays_ == nullptr) spare_arrays_ = Lane::allocate_arrays();
  }

  std::size_t rings() const noexcept { return lanes_.size(); }
  const MergeCounts& counts() const noexcept { return counts_; }
  // Returns the slack that the next run will use.
  std::uint64_t slack() const noexcept { return slack_.in_force(); }

  // Delivers the released events (M2), at most `limit` of them, to f(const Ordered&), which returns
  // either nothing or whether to continue. key(const Sample&) -> std::uint64_t may be called more
  // than once for a sample, and some time before the sample's turn. It must return the same key for
  // the same bytes. clock() -> std::uint64_t is called once for each ring, and once more.
  template <class Key, class Clock, class F>
  MergeEnd run(Key&& key, Clock&& clock, F&& f, std::uint64_t limit = ~std::uint64_t{0}) {
    internal::expect_callable(key);
    internal::expect_callable(clock);
    internal::expect_callable(f);
    if (running_) return MergeEnd::Nested;
    const RunScope run_scope{*this};
    RunState<std::remove_reference_t<Key> > round{*this, key};
    round.bound = ~std::uint64_t{0};
    const std::uint64_t previous_clock_after = std::exchange(clock_after_, LookClock::kUnknown);
    for (Lane& lane : lanes_) {
      const std::uint64_t now = clock();
      if (now < round.bound) round.bound = now;
      lane.look(now, previous_clock_after);
    }
    round.bound = slack_.bound(round.bound);
    round.clock_after = clock();
    if (round.clock_after < round.bound) round.clock_after = round.bound;
    clock_after_ = round.clock_after;
    if (std::exchange(has_flushed_, false)) {
      for (Lane& lane : lanes_) lane.check_against_clock(round);
    }
    return deliver(round, f, limit);
  }

  // Delivers everything in the rings, whatever the keys and whatever writers have not published
  // yet, in as good an order as that allows. Reads no clock, so records published between this
  // flush and the next run prove no delay (M7).
  template <class Key, class F>
  MergeEnd flush(Key&& key, F&& f, std::uint64_t limit = ~std::uint64_t{0}) {
    internal::expect_callable(key);
    internal::expect_callable(f);
    if (running_) return MergeEnd::Nested;
    const RunScope run_scope{*this};
    RunState<std::remove_reference_t<Key> > round{*this, key};
    round.is_flush = has_flushed_ = true;
    const std::uint64_t previous_clock_after = std::exchange(clock_after_, LookClock::kUnknown);
    for (Lane& lane : lanes_) lane.look(0, previous_clock_after);
    return deliver(round, f, limit);
  }

 private:
  using Lane = internal::Lane<M, kWindow>;
  using LookClock = internal::LookClock;

  // The state of one run, as the lanes use it while they read records.
  template <class Key>
  struct RunState {
    Merge& merge;
    Key& key;
    std::uint64_t number = ++merge.rounds_;
    bool is_flush = false;
    std::uint64_t bound = 0;                        // B
    std::uint64_t clock_after = ~std::uint64_t{0};  // the clock after every data_head was read

    // Returns the key of a sample. `time` points to its TIME, if it has one.
    [[gnu::always_inline]] std::uint64_t key_of(const Sample& sample, const std::byte* time) {
      if constexpr (std::is_same_v<std::remove_cv_t<Key>, EventTime>) {
        static_assert(internal::kBeforeRaw<M> == sizeof(std::uint64_t),
                      "EventTime is for Merge<Timed<M>>");
        return M::template read<std::uint64_t>(time);
      } else {
        return key(sample);
      }
    }
    bool releases(std::uint64_t of) const noexcept { return is_flush || of < bound; }
    std::uint64_t newest() const noexcept { return merge.newest_; }
    // The highest key that a record published by clock `by` may have (M8).
    std::uint64_t latest_key(std::uint64_t by) const noexcept {
      return is_flush ? ~std::uint64_t{0} : internal::smaller(by, clock_after);
    }
    // M8: Returns the key by which to order a record with the key `own_key`. `before` is the key of
    // the record before it.
    std::uint64_t ordering_key(std::uint64_t own_key, std::uint64_t by,
                               std::uint64_t before) const noexcept {
      if (own_key <= latest_key(by)) return own_key;
      const std::uint64_t next = before < newest() ? newest() : before;
      if (next <= clock_after) return next;
      return bound == 0 ? 0 : bound - 1;
    }
    void count_ahead() noexcept { ++merge.counts_.ahead; }
    void count_displaced() noexcept { ++merge.counts_.displaced; }
    void note_delay(std::uint64_t by) noexcept { merge.slack_.note_delay(by, merge.counts_); }
  };

  // M4: Marks the run's scope, so that data_tail moves even if the callback throws.
  struct RunScope {
    explicit RunScope(Merge& of) noexcept : merge{of} { merge.running_ = true; }
    ~RunScope() {
      merge.running_ = false;
      for (Lane& lane : merge.lanes_) lane.release();
    }
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;
    Merge& merge;
  };

  std::uint64_t front_word(const Lane& lane, std::size_t ring) noexcept {
    return lane.empty() ? words_.none(ring) : words_.word(lane.front_key(), ring);
  }
  std::uint64_t next_word(const Lane& lane, std::size_t ring) noexcept {
    return lane.has_next() ? words_.word(lane.next_key(), ring) : words_.none(ring);
  }

  std::optional<std::size_t> add(const std::optional<internal::RingView>& view) {
    if (!view || running_ || lanes_.size() == kRingsMax) return std::nullopt;
    for (const Lane& lane : lanes_) {
      if (internal::overlap(lane.view(), *view)) return std::nullopt;
    }
    reserve_one();  // everything that can throw comes first
    lanes_.emplace_back(*view, std::move(spare_arrays_));
    tree_.resize(lanes_.size());
    words_.set_ring_count(lanes_.size());
    return lanes_.size() - 1;
  }

  template <class Key>
  std::uint64_t play(const RunState<Key>& round) {
    std::uint64_t lowest = ~std::uint64_t{0};
    for (const Lane& lane : lanes_) {
      if (!lane.empty() && lane.front_key() < lowest) lowest = lane.front_key();
    }
    words_.rebase(lowest);
    if (round.is_flush) {
      words_.release_all();
    } else {
      words_.release_below(round.bound);
    }
    return tree_.play([this](std::size_t ring) {
      lanes_[ring].next_word = next_word(lanes_[ring], ring);
      return front_word(lanes_[ring], ring);
    });
  }

  // Returns true if `top` belongs to an event that is to be delivered, if necessary after choosing
  // a new base and replaying the tree, which changes `top`.
  template <class Key>
  [[gnu::noinline]] bool rebase_and_replay(std::uint64_t& top, const RunState<Key>& round) {
    if (!words_.needs_rebase(top)) return false;
    top = play(round);
    return round.releases(lanes_[words_.ring_of(top)].front_key());
  }

  template <class Key, class F>
  MergeEnd deliver(RunState<Key>& round, F& f, std::uint64_t limit) {
    if (lanes_.empty()) return MergeEnd::Released;
    for (Lane& lane : lanes_) lane.fill(round);
    std::uint64_t top = play(round);
    std::uint64_t turns = 0;  // until the next attempt to deliver a run of events from one ring
    Lane* const lanes = lanes_.data();
    for (;;) {
      // rebase_and_replay() and deliver_run() take references. Pass copies, so that `top` and
      // `limit` themselves stay in registers.
      if (!words_.is_released(top)) [[unlikely]] {
        std::uint64_t anew = top;
        if (!rebase_and_replay(anew, round)) return MergeEnd::Released;
        top = anew;
      }
      const std::size_t ring = words_.ring_of(top);
      Lane& lane = lanes[ring];
      if (turns-- == 0) {
        if (limit == 0) return MergeEnd::Limit;
        std::uint64_t left = limit;
        if (!deliver_run(ring, lane, round, left, f)) return MergeEnd::Stopped;
        const bool paid = limit - left >= kRunMin;
        backoff_ = paid ? 0 : internal::smaller(2 * backoff_ + 1, kBackoffMax);
        turns = internal::smaller<std::uint64_t>(backoff_, left);
        limit = left - turns;
        lane.next_word = next_word(lane, ring);
        top = front_word(lane, ring);
      } else {
        top = lane.next_word;
        const bool has_lookahead = lane.has_lookahead(round);
        const internal::PendingRecord pending = lane.take();
        if (has_lookahead && pending.kind() == internal::PendingRecord::kSample) [[likely]] {
          lane.next_word = words_.word(lane.next_key(), ring);
          if (!deliver_event(ring, pending.key, lane.sample(pending), f)) return MergeEnd::Stopped;
        } else {
          lane.next_word = next_word(lane, ring);
          if (!deliver_odd(ring, lane, pending, f)) return MergeEnd::Stopped;
        }
      }
      top = tree_.replace(ring, top);
    }
  }

  // The same idea as guess() in ring/drain.h: the less often it pays, the less often it is tried.
  static constexpr std::uint64_t kRunMin = 3;
  static constexpr unsigned kBackoffMax = 63;

  // Delivers events of one ring until another ring has a lower key, without playing any match
  // meanwhile (W18). Returns false if the callback stopped.
  template <class Key, class F>
  [[gnu::always_inline]] bool deliver_run(std::size_t ring, Lane& lane, RunState<Key>& round,
                                          std::uint64_t& limit, F& f) {
    const std::uint64_t until_key = words_.key_at(tree_.second(ring), ring);
    const auto visit = [&](const internal::PendingRecord& pending) __attribute__((always_inline)) {
      return deliver_event(ring, pending.key, lane.sample(pending), f);
    };
    do {
      if (lane.has_lookahead(round) && lane.front_is_plain()) {
        if (!lane.take_while(until_key, limit, visit)) return false;
      } else {
        --limit;
        if (!deliver_odd(ring, lane, lane.take(), f)) return false;
      }
    } while (limit != 0 && !lane.empty() && lane.front_key() < until_key);
    return true;
  }

  template <class F>
  [[gnu::noinline]] bool deliver_odd(std::size_t ring, Lane& lane, internal::PendingRecord pending,
                                     F& f) {
    return deliver_event(ring, pending.key, lane.event(pending), f);
  }
  template <class Event, class F>
  [[gnu::always_inline]] bool deliver_event(std::size_t ring, std::uint64_t key, const Event& event,
                                            F& f) {
    ++counts_.delivered;
    const bool late = key < newest_;
    if (late) [[unlikely]] {
      ++counts_.late;
      if (newest_ - key > counts_.worst_late) counts_.worst_late = newest_ - key;
    } else {
      newest_ = key;
    }
    const Ordered ordered{ring, key, late, event};
    if constexpr (std::is_void_v<decltype(f(ordered))>) {
      f(ordered);
      return true;
    } else {
      return f(ordered);
    }
  }

  internal::Slack slack_;
  MergeCounts counts_;
  std::uint64_t newest_ = 0;  // the highest key delivered
  std::uint64_t rounds_ = 0;
  std::uint64_t clock_after_ =
      LookClock::kUnknown;  // the clock after the last run's reads of data_head
  std::vector<Lane> lanes_;
  std::unique_ptr<std::uint64_t[]> spare_arrays_;  // for the next lane
  internal::LoserTree tree_;
  internal::KeyWords words_;
  unsigned backoff_ = 0;  // turns between two attempts at deliver_run()
  bool running_ = false;
  bool has_flushed_ = false;  // since the last run
};

}  // namespace perfring

#endif
#endif  // PERFRING_MERGE_MERGE_H_
