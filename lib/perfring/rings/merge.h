#ifndef PERFRING_RINGS_MERGE_H_
#define PERFRING_RINGS_MERGE_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Merge<Memory>: the events of several rings, one for each CPU, in the order of their keys. The key
// is a clock that the writer read, and that it put into the payload. Events are delivered where
// they lie in their rings: none is copied, and none costs an allocation or a system call.
//
//   Merge<> merge;
//   for (auto& mapping : mappings) merge.add(mapping, page_size);
//   for (;; wait()) {
//     merge.run(KeyAt{0}, monotonic_ns, [](const Ordered& each) { handle(each); });
//   }
//
// W1 to W44 are facts that were measured on a live kernel, and the proof of the rule (the project's
// harness/RINGS_FACTS.md). D is the slack, h_c the clock, read before data_head of ring c.
//
//   M1  A run looks at each ring once: the clock is read, then data_head, in the program's order (a
//       processor may swap the two, by nanoseconds, which any slack but 0 covers). A run
//       ends when it has delivered what it may of what was published by then, and never waits for
//       more.
//   M2  An event is released once its key is lower than B = (the smallest h_c) - D, B being 0 where
//       that is negative. If no writer takes longer than D from its clock to its output, each
//       event comes after all that are older (W6); no rule that is sound releases more. Released
//       events come in the order of their keys; equal keys in the order of their rings, and in the
//       ring's.
//   M3  Inside one ring keys go back where writers nest (W3, W4). A window of the oldest records of
//       each ring is sorted: 8 of them repair whatever was measured. One that is displaced by more
//       is late.
//   M4  data_tail of each ring moves to its oldest record that was not delivered (W21), once in a
//       run, also when the callback breaks off or throws; the event that it did so on counts as
//       delivered. The other records stay in their rings.
//   M5  An event is late if its key is lower than one that was delivered before. It is delivered at
//       once, says so, and is counted, exactly. None is dropped.
//   M6  Events that have no key. A Lost takes that of the next sample of its ring (W10). Until that
//       is there it waits; if it is still missing in the next run, the Lost takes that run's B
//       in which it waited first, which no later sample's key is lower than. A Malformed takes the
//       key of the record before it in its ring; without one, the newest that was delivered.
//   M7  A record that was not there when data_head was read, and whose key is older than the clock
//       of then, proves how long its writer took (W5). The longest such delay is delay_seen. The
//       slack becomes twice the longest (W8b), but for those of which that exceeds slack_most:
//       the key is wrong, or its writer was stalled (W7), and the slack would hold all up.
//   M8  Keys are any 64 bits. One that is higher than the clock was after a run's looks that saw
//       its record is not of that clock. It is counted (ahead), and holds nothing up: in place of
//       its own the event has the key of the record before it in its ring, or the newest that was
//       delivered if that is higher. So the run that reads it releases it, unless the record before
//       it waits, or the slack has just grown (M7) and B gone back; it is not late, and makes no
//       other so; and no event waits for its order for longer than 2 D, whatever clock its key is
//       of. (If these keys are ahead, too, by a flush() or as the clock has jumped back, it has B -
//       1, and is late.) Of flush() none is ahead: its events have their own keys, and those that
//       it has read and left meet the clock of the next run.
//   M9  Whatever the rings hold, the rules S4 to S11 (ring/ring.h, ring/cursor.h) hold for what is
//       delivered of each, and what one ring holds delays no other by more than D.
//
// Units: keys, slack and what the clock says are of one clock, and nanoseconds if it is
// CLOCK_MONOTONIC, as bpf_ktime_get_ns() is. Only the defaults rely on that.
// Lifetime: the rings' memory must outlive the Merge; an event is valid until the callback returns.
// Threads: one at a time. The kernel, or other producers, may write meanwhile.
// Errors: none but what add() refuses. add() allocates, and may throw std::bad_alloc; nothing else
// allocates, throws or calls the system, but for the clock, the key and the callback. Their
// exceptions pass through, and no event is lost by them.
//
// Bad input. A null pointer to a function ends the program (SIGILL or SIGTRAP), before anything is
// read. A limit of 0 delivers nothing: Limit, if there is something. A clock that stands releases
// nothing (but to flush()); one that jumps back releases nothing until it is where it was, but for
// keys that come meanwhile, which are ahead of it (M8) and so overtake others; one that jumps
// forward, or another one than the writers', makes late events, delays or keys ahead, which are
// counted. A slack that the rings do not last for makes the kernel drop records, which it counts:
// Lost. A ring that is added twice, or overlaps another, is refused. A run or flush() from within a
// callback of the same Merge delivers nothing (MergeEnd::Nested). A callback that drains one of the
// rings by other means: the tail does not go back, what of that ring was not delivered counts as
// consumed by the other at the next run, and until this run ends its events are whatever lies
// there, inside of the ring.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/callback.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/wire.h"
#include "perfring/rings/key_at.h"
#include "perfring/rings/key_words.h"
#include "perfring/rings/lane.h"
#include "perfring/rings/looks.h"
#include "perfring/rings/loser_tree.h"
#include "perfring/rings/slack.h"

namespace perfring {

// An event as a callback gets it.
struct Ordered {
  std::size_t ring;   // which add() said
  std::uint64_t key;  // that it was ordered by (M6, M8)
  bool late;
  PerfEvent event;
};

// Why a run ended.
enum class MergeEnd {
  Released,  // all that was there and may be delivered has been
  Limit,
  Stopped,  // by the callback
  Nested,   // a run was under way
};

template <Memory M = DefaultMemory, unsigned kWindow = 8>
class Merge {
 public:
  explicit Merge(const MergeOptions& options = {}) noexcept : slack_{options} {}
  // A copy would consume the same rings.
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  static constexpr std::size_t kRingsMax = 65536;

  // One more ring, as Ring::over() takes it. Returns its number: 0, 1, 2 ..; or nullopt if it is
  // not a ring, shares a byte with one that is there, is one too many, or if a run is under way.
  std::optional<std::size_t> add(perf_event_mmap_page& page, Bytes data) {
    return add(internal::view_of(page, data));
  }
  std::optional<std::size_t> add(std::span<std::byte> mapping, std::size_t page_size) {
    return add(internal::view_of(mapping, page_size));
  }

  // Memory for one more ring, so that the next add() cannot throw.
  void reserve_one() {
    tree_.reserve(lanes_.size() + 1);
    lanes_.reserve(lanes_.size() + 1);
    if (room_ == nullptr) room_ = Lane::room();
  }

  std::size_t rings() const noexcept { return lanes_.size(); }
  const MergeCounts& counts() const noexcept { return counts_; }
  // The slack of the next run.
  std::uint64_t slack() const noexcept { return slack_.in_force(); }

  // Delivers what is released (M2), `limit` events at most, by f(const Ordered&), which returns
  // nothing, or whether to go on. key(const Sample&) -> std::uint64_t may be called more than once
  // for a sample, some time before its turn, and must say the same of the same bytes. clock() ->
  // std::uint64_t is called once for each ring, and once more.
  template <class Key, class Clock, class F>
  MergeEnd run(Key&& key, Clock&& clock, F&& f, std::uint64_t limit = ~std::uint64_t{0}) {
    internal::expect_callable(key);
    internal::expect_callable(clock);
    internal::expect_callable(f);
    if (running_) return MergeEnd::Nested;
    const Running running{*this};
    Round<std::remove_reference_t<Key> > round{*this, key};
    round.bound = ~std::uint64_t{0};
    const std::uint64_t seen_before = std::exchange(seen_, Looks::kUnknown);
    for (Lane& lane : lanes_) {
      const std::uint64_t now = clock();
      if (now < round.bound) round.bound = now;
      lane.look(now, seen_before);
    }
    round.bound = slack_.bound(round.bound);
    round.seen = clock();
    if (round.seen < round.bound) round.seen = round.bound;
    seen_ = round.seen;
    if (std::exchange(has_flushed_, false)) {
      for (Lane& lane : lanes_) lane.meets_clock(round);
    }
    return deliver(round, f, limit);
  }

  // Delivers all that is there, whatever its key and whatever may be on its way; in order, as far
  // as that goes. No clock is read, so that no delay is learned of what comes between it and the
  // next run.
  template <class Key, class F>
  MergeEnd flush(Key&& key, F&& f, std::uint64_t limit = ~std::uint64_t{0}) {
    internal::expect_callable(key);
    internal::expect_callable(f);
    if (running_) return MergeEnd::Nested;
    const Running running{*this};
    Round<std::remove_reference_t<Key> > round{*this, key};
    round.takes_all = has_flushed_ = true;
    const std::uint64_t seen_before = std::exchange(seen_, Looks::kUnknown);
    for (Lane& lane : lanes_) lane.look(0, seen_before);
    return deliver(round, f, limit);
  }

 private:
  using Lane = internal::Lane<M, kWindow>;
  using Looks = internal::Looks;

  // A run as it reads records.
  template <class Key>
  struct Round {
    Merge& merge;
    Key& key;
    std::uint64_t number = ++merge.rounds_;
    bool takes_all = false;
    std::uint64_t bound = 0;                 // B
    std::uint64_t seen = ~std::uint64_t{0};  // the clock after all looks

    // `time` is where the TIME is of a sample that has one.
    [[gnu::always_inline]] std::uint64_t key_of(const Sample& sample, const std::byte* time) {
      if constexpr (std::is_same_v<std::remove_cv_t<Key>, EventTime>) {
        static_assert(internal::kBeforeRaw<M> == sizeof(std::uint64_t),
                      "EventTime is for Merge<Timed<M>>");
        return M::template read<std::uint64_t>(time);
      } else {
        return key(sample);
      }
    }
    bool releases(std::uint64_t of) const noexcept { return takes_all || of < bound; }
    std::uint64_t newest() const noexcept { return merge.newest_; }
    // The highest key that a record may have which was published by that clock (M8).
    std::uint64_t latest(std::uint64_t by) const noexcept {
      return takes_all ? ~std::uint64_t{0} : internal::smaller(by, seen);
    }
    // M8: the key to order it by; `before` is that of the record before it.
    std::uint64_t believed(std::uint64_t its, std::uint64_t by,
                           std::uint64_t before) const noexcept {
      if (its <= latest(by)) return its;
      const std::uint64_t next = before < newest() ? newest() : before;
      if (next <= seen) return next;
      return bound == 0 ? 0 : bound - 1;
    }
    void counts_ahead() noexcept { ++merge.counts_.ahead; }
    void displaced() noexcept { ++merge.counts_.displaced; }
    void delayed(std::uint64_t by) noexcept { merge.slack_.delayed(by, merge.counts_); }
  };

  // M4: runs when the callback throws, too.
  struct Running {
    explicit Running(Merge& of) noexcept : merge{of} { merge.running_ = true; }
    ~Running() {
      merge.running_ = false;
      for (Lane& lane : merge.lanes_) lane.release();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
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
    reserve_one();  // what can throw comes first
    lanes_.emplace_back(*view, std::move(room_));
    tree_.resize(lanes_.size());
    words_.have_rings(lanes_.size());
    return lanes_.size() - 1;
  }

  template <class Key>
  std::uint64_t play(const Round<Key>& round) {
    std::uint64_t lowest = ~std::uint64_t{0};
    for (const Lane& lane : lanes_) {
      if (!lane.empty() && lane.front_key() < lowest) lowest = lane.front_key();
    }
    words_.rebase(lowest);
    if (round.takes_all) {
      words_.release_all();
    } else {
      words_.release_below(round.bound);
    }
    return tree_.play([this](std::size_t ring) {
      lanes_[ring].next_word = next_word(lanes_[ring], ring);
      return front_word(lanes_[ring], ring);
    });
  }

  // Whether `top` is that of an event to be delivered: as it is, or after the base was chosen anew.
  template <class Key>
  [[gnu::noinline]] bool plays_on(std::uint64_t& top, const Round<Key>& round) {
    if (!words_.are_old(top)) return false;
    top = play(round);
    return round.releases(lanes_[words_.ring_of(top)].front_key());
  }

  template <class Key, class F>
  MergeEnd deliver(Round<Key>& round, F& f, std::uint64_t limit) {
    if (lanes_.empty()) return MergeEnd::Released;
    for (Lane& lane : lanes_) lane.fill(round);
    std::uint64_t top = play(round);
    std::uint64_t turns = 0;  // until a run of one ring's events is tried
    Lane* const lanes = lanes_.data();
    for (;;) {
      // Copies are what others have a reference to: the rest is in registers.
      if (!words_.is_released(top)) [[unlikely]] {
        std::uint64_t anew = top;
        if (!plays_on(anew, round)) return MergeEnd::Released;
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
        const bool knows_on = lane.knows_on(round);
        const internal::Held held = lane.take();
        if (knows_on && held.kind() == internal::Held::kSample) [[likely]] {
          lane.next_word = words_.word(lane.next_key(), ring);
          if (!deliver_event(ring, held.key, lane.sample(held), f)) return MergeEnd::Stopped;
        } else {
          lane.next_word = next_word(lane, ring);
          if (!deliver_odd(ring, lane, held, f)) return MergeEnd::Stopped;
        }
      }
      top = tree_.replace(ring, top);
    }
  }

  // As a drain guesses (ring/drain.h): the less it pays, the less often it is tried.
  static constexpr std::uint64_t kRunMin = 3;
  static constexpr unsigned kBackoffMax = 63;

  // One ring's events, until it is another's turn: no match is played meanwhile (W18). Returns
  // whether to go on.
  template <class Key, class F>
  [[gnu::always_inline]] bool deliver_run(std::size_t ring, Lane& lane, Round<Key>& round,
                                          std::uint64_t& limit, F& f) {
    const std::uint64_t until_key = words_.key_at(tree_.second(ring), ring);
    const auto visit = [&](const internal::Held& held) __attribute__((always_inline)) {
      return deliver_event(ring, held.key, lane.sample(held), f);
    };
    do {
      if (lane.knows_on(round) && lane.front_is_plain()) {
        if (!lane.take_while(until_key, limit, visit)) return false;
      } else {
        --limit;
        if (!deliver_odd(ring, lane, lane.take(), f)) return false;
      }
    } while (limit != 0 && !lane.empty() && lane.front_key() < until_key);
    return true;
  }

  template <class F>
  [[gnu::noinline]] bool deliver_odd(std::size_t ring, Lane& lane, internal::Held held, F& f) {
    return deliver_event(ring, held.key, lane.event(held), f);
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
  std::uint64_t newest_ = 0;  // of the keys delivered
  std::uint64_t rounds_ = 0;
  std::uint64_t seen_ = Looks::kUnknown;  // the clock after the last looks
  std::vector<Lane> lanes_;
  std::unique_ptr<std::uint64_t[]> room_;  // of the next one
  internal::LoserTree tree_;
  internal::KeyWords words_;
  unsigned backoff_ = 0;  // how many turns there are between runs
  bool running_ = false;
  bool has_flushed_ = false;  // since the last run
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_MERGE_H_
