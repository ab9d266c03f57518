#ifndef PERFRING_RINGS_RING_SET_H_
#define PERFRING_RINGS_RING_SET_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// RingSet: a ring for each online CPU, drained by one thread.
//
//   auto set = RingSet::open(*array);
//   if (!set) return std::puts(set.error().explain().c_str());
//   while (set->wait() != Woken::Stop) {
//     set->drain([](std::uint32_t cpu, const PerfEvent& event) { handle(cpu, event); });
//   }
//
// The rules, beside those of a drain (ring/ring.h), a wait (rings/waiter.h) and a merge
// (rings/merge.h); W1 to W44 are facts that were measured on a live kernel (the project's
// harness/RINGS_FACTS.md):
//
//   C1  The index of a map entry is its CPU, always (W42).
//   C2  Each ring is watched before its map entry is filled, and the first wait() says Report at
//       once: no record is overlooked (W22).
//   C3  A round (drain(), drain_fullest(), merge(), flush()) delivers what was in the rings when it
//       began, unless a limit or the callback ends it, and never waits for more: of each ring it
//       may take up to per_ring events that came later. If it leaves records in the rings, the
//       next wait() says Report at once.
//   C4  A ring's turn takes at most per_ring events, after which their room is given back: the
//       bound loses fewer records than any order of the rings (W31).
//   C5  flush(Visible) delivers what had been output before it by a program that ran outside of
//       interrupts, and that returned: one round is enough for that (W15). flush(Complete) first
//       waits for every program that is under way on any CPU (W12, W13: WriterBarrier), 8 ms and
//       more. Neither delivers the number of records that a ring lost after its last one, for which
//       there is no LOST yet (W16): lost() has it. Before Linux 6.0 it is to be had by one output
//       more on each CPU, after a flush, so that there is room for it: the Lost comes in front of
//       it (K14, K16).
//   C6  A CPU that goes: its ring is read as before. One that comes back outputs to the same ring,
//       by a new event, since the old one is dead (W39, W40); one that was never there gets a ring.
//       wait() learns of it from the kernel's uevents (W41), and from the list of online CPUs,
//       which it reads once a second, where no uevents come: there a CPU that comes back within
//       that second is not noticed.
//   C7  With a latency, wait() holds it by the cheapest means (WakeupChoice): a wakeup for each
//       record, or a timer and none (W27), chosen anew by each round; both events output to the
//       same ring, and a switch puts one or the other into the map entry (W28). A round that leaves
//       nothing is then followed by another one within that latency of its beginning. A ring must
//       last for twice the latency. A wakeup that the kernel fails to give (K30) costs up to
//       longest_wait.
//
// Another loop (epoll, poll, libuv, Asio, io_uring) watches fd() for reading, and until
// next_deadline(); after each report and each deadline it calls poll(), and drains, whatever poll()
// said. Only poll()'s Stop ends such a loop. Asio's async_wait() is called before poll(), not after
// the drain (waiter.h).
//
// Units: time is std::chrono::steady_clock's, which is the kernel's CLOCK_MONOTONIC; a merge's keys
// are nanoseconds of that clock (bpf_ktime_get_ns()). Page counts are of data pages. In a time
// namespace (time_namespaces(7)) steady_clock is off by its offset, and the keys are not (W43):
// where the offset is negative, all are ahead; where it is positive, all are old, and each proves a
// delay (M7), which the slack learns if twice of it is within slack_most. Keys by boot time or TAI
// are ahead as well. Nothing is held up by it, but rings are merged by no more than their own
// order; to have it by the keys, subtract the difference of the clocks in the key function.
// Lifetime: move-only, but not during a round. It keeps the map's open file alive, as
// PerfEventArrayBuffer does, and leaves the entries when it is destroyed. Moved from, it has no
// ring: rounds say Drained, wait() says Stop. Assigned to itself, it is as it was. Events are valid
// until the callback returns. fork(2): as PerfBuffer's: in a forked child, rounds end the program
// with an assertion, or are undefined with NDEBUG; nor may it wait, as it would take the parent's
// reports.
// Threads: one at a time; stop() and is_stopped() any, and signal handlers.
// Errors: open(), add(), cpu_changed() and flush(Complete) alone fail; what open() and add() fail
// at leaves nothing behind. Where memory runs out, those throw std::bad_alloc, and so do wait() and
// poll() as they follow a CPU (C6): no ring or event is lost by it, and a CPU that was not
// followed is, when the list of CPUs is read again within a second.
// Callbacks: f(cpu, event) returns nothing, or whether to go on; the event that it stopped or threw
// on counts as delivered. From within it every round says Nested, wait() does not sleep and says
// Timeout, add() and cpu_changed() fail with EBUSY; stop() may be called.
//
// Bad input. A null pointer to a function ends the program (SIGILL or SIGTRAP), before anything is
// read. Another consumer of one of the rings: data_tail never goes back, and each event
// reaches one of the two or both; a wakeup may be the other's (N4). A CPU that is added twice, that
// does not exist or has no entry in the map is refused. Keys of another clock, keys that go back, 0
// and 2^64 - 1 are delivered, counted as late or ahead, and stop no ring (M5, M8, W44). A slack
// that the rings do not last for makes the kernel drop records, which a Lost counts; one of years
// holds everything until flush(). A latency or a longest_wait of less than 0 counts as 0.
// K: facts that were measured, in the project's harness/KERNEL_FACTS.md.

#include <cassert>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/merge.h"
#include "perfring/rings/output_ring.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/rings/round.h"
#include "perfring/rings/timed.h"
#include "perfring/rings/uevents.h"
#include "perfring/rings/waiter.h"
#include "perfring/rings/writer_barrier.h"

namespace perfring {

class PERFRING_EXPORT RingSet {
 public:
  using Clock = Waiter::Clock;

  // Opens a ring on each online CPU, or on those of options.cpus, and makes it that entry of the
  // map, in place of what was there. Where it fails, the entries that it has filled are empty.
  // Errors: PerfBufferError as PerfEventArray::open (a CPU that does not exist, a map with fewer
  // entries); OnlineCpusError; SyscallError (EMFILE and the like).
  static std::expected<RingSet, RingsError> open(const PerfEventArray& array,
                                                 const RingSetOptions& options = {});

  // One more CPU.
  // Errors: those of open(); SyscallError with EEXIST for a CPU that has a ring, and EBUSY.
  std::expected<void, RingsError> add(std::uint32_t cpu);

  RingSet(RingSet&&) noexcept;
  RingSet& operator=(RingSet&&) noexcept;
  ~RingSet();

  // Rings, and their CPUs in the order in which they came. A `ring` that is not below rings() ends
  // the program (SIGILL or SIGTRAP).
  std::size_t rings() const noexcept { return rings_.size(); }
  std::uint32_t cpu(std::size_t ring) const noexcept {
    if (ring >= rings_.size()) __builtin_trap();
    return rings_[ring].cpu();
  }

  // The outputs that found no room since the rings were opened, as the kernel counts them: those
  // that a Lost has told of, and those that none has yet (C5). Once the writers have stopped and
  // all is drained, attempted = delivered + lost(). nullopt before Linux 6.0. `ring`: of that one,
  // as cpu(ring).
  std::optional<std::uint64_t> lost() const noexcept;
  std::optional<std::uint64_t> lost(std::size_t ring) const noexcept;

  // Passes all that is there, ring after ring, to f(cpu, const PerfEvent&).
  template <class F>
  DrainEnd drain(const Limits& limits, F&& f) {
    return turns(limits, f, [this](auto rings) { return internal::next_in_turn(rings, turn_); });
  }
  template <class F>
  DrainEnd drain(F&& f) {
    return drain(Limits{}, f);
  }

  // The same, but each turn goes to the ring that is fullest then: for a consumer that cannot keep
  // up (W31).
  template <class F>
  DrainEnd drain_fullest(const Limits& limits, F&& f) {
    return turns(limits, f, [](auto rings) { return internal::fullest(rings); });
  }

  // The events of all rings that may be released, in the order of key(const Sample&), or of
  // EventTime if the set is timed, by f(cpu, const Ordered&): rules M1 to M9. Ordered::ring is the
  // number for cpu(). Limits::per_ring is ignored. If events are not released
  // yet, next_deadline() and wait() end when the slack has passed.
  template <class Key, class F>
  DrainEnd merge(Key&& key, const Limits& limits, F&& f) {
    internal::expect_callable(key);
    return merged<Key>(limits, f, [&](auto& merge, auto&& each) {
      return merge.run(key, monotonic_ns, each, limits.events);
    });
  }

  // C5, without limits. Drained is the sign that it has been delivered; f may stop it.
  // Errors: SyscallError, of Complete, if the kernel lets nobody wait for programs.
  template <class F>
  std::expected<DrainEnd, RingsError> flush(Flush what, F&& f) {
    internal::expect_callable(f);
    if (auto waited = before_flush(what); !waited) return std::unexpected(waited.error());
    return drain(f);
  }
  // The same in the order of keys, past the slack.
  template <class Key, class F>
  std::expected<DrainEnd, RingsError> flush(Flush what, Key&& key, F&& f) {
    internal::expect_callable(key);
    internal::expect_callable(f);
    if (auto waited = before_flush(what); !waited) return std::unexpected(waited.error());
    return merged<Key>({}, f, [&](auto& merge, auto&& each) { return merge.flush(key, each); });
  }

  // Waits (rules N1 to N7), and follows CPUs that come and go (C6).
  Woken wait(Clock::time_point deadline = Waiter::kNoDeadline);
  Woken poll() { return wait(Clock::time_point::min()); }
  int fd() const noexcept { return waiter_.fd(); }
  Clock::time_point next_deadline() const noexcept;
  void stop() noexcept { waiter_.stop(); }
  bool is_stopped() const noexcept { return waiter_.is_stopped(); }

  // To report, by other means, that a CPU has come or gone: as if a uevent had said so.
  // Errors: those of open().
  std::expected<void, RingsError> cpu_changed(std::uint32_t cpu, bool online);
  // Why the last CPU that came could not be followed; nullopt if none failed.
  const std::optional<RingsError>& hotplug_error() const noexcept { return hotplug_error_; }

  // The counts of the merges. All zeroes if moved from.
  MergeCounts merge_counts() const noexcept {
    if (timed_merge_) return timed_merge_->counts();
    return merge_ ? merge_->counts() : MergeCounts{};
  }
  // In force (M7). 0 if moved from.
  std::uint64_t merge_slack() const noexcept {
    if (timed_merge_) return timed_merge_->slack();
    return merge_ ? merge_->slack() : 0;
  }
  // The kind of event that the map entries hold (C7).
  Wakeups wakeups() const noexcept { return entries_; }

 private:
  using OutputRing = internal::OutputRing;

  // Ends also when the callback throws.
  struct Round {
    explicit Round(RingSet& of) : set{of} {
      assert((set.rings_.empty() || set.rings_.front().is_own()) &&
             "a forked child has no mapping of the rings");
      set.running_ = true;
    }
    ~Round() { set.end_round(*this); }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

    RingSet& set;
    Clock::time_point began = Clock::now();
    std::uint64_t delivered = 0;
    bool leaves = true;       // what was there
    bool unreleased = false;  // what is too young
  };

  PERFRING_HIDDEN RingSet(os::Fd map, const RingSetOptions& options, Waiter waiter);

  bool is_empty() const noexcept { return !merge_ && !timed_merge_; }  // moved from
  static std::uint64_t monotonic_ns() noexcept;
  void end_round(const Round& round) noexcept;
  bool has_unread() const;
  std::expected<void, RingsError> before_flush(Flush what);
  PERFRING_HIDDEN void fill_entries(Wakeups wakeups) noexcept;
  PERFRING_HIDDEN OutputRing* ring_of(std::uint32_t cpu) noexcept;
  PERFRING_HIDDEN bool is_wanted(std::uint32_t cpu) const noexcept;
  PERFRING_HIDDEN std::expected<void, RingsError> change(internal::CpuChange change);
  PERFRING_HIDDEN void follow();
  // When the list of CPUs is to be read again, if it is.
  PERFRING_HIDDEN Clock::time_point list_due() const noexcept;

  template <class F, class Event>
  static bool goes_on(F& f, std::uint32_t cpu, const Event& event) {
    if constexpr (std::is_void_v<decltype(f(cpu, event))>) {
      f(cpu, event);
      return true;
    } else {
      return f(cpu, event);
    }
  }

  template <class F, class Next>
  DrainEnd turns(const Limits& limits, F& f, Next next) {
    internal::expect_callable(f);
    if (running_) return DrainEnd::Nested;
    Round round{*this};
    const auto visit = [&](const OutputRing& ring, const PerfEvent& event) {
      return goes_on(f, ring.cpu(), event);
    };
    const DrainEnd end =
        internal::take_turns(std::span{rings_}, limits, turn_, round.delivered, next, visit);
    round.leaves = end != DrainEnd::Drained;
    return end;
  }

  // `run` merges, and passes events to what it is given.
  template <class Key, class F, class Run>
  DrainEnd merged(const Limits& limits, F& f, Run run) {
    constexpr bool kByTime = std::is_same_v<std::remove_cvref_t<Key>, EventTime>;
    internal::expect_callable(f);
    if (running_) return DrainEnd::Nested;
    if (is_empty()) return DrainEnd::Drained;
    if (kByTime != options_.timed) return DrainEnd::WrongKey;
    Round round{*this};
    if (limits.is_late(Clock::now)) return DrainEnd::Deadline;
    DrainEnd end = DrainEnd::Drained;
    const auto visit = [&](const Ordered& ordered) {
      if (internal::is_late_after(++round.delivered, limits)) end = DrainEnd::Deadline;
      if (!goes_on(f, rings_[ordered.ring].cpu(), ordered)) end = DrainEnd::Stopped;
      return end == DrainEnd::Drained;
    };
    MergeEnd merge_end{};
    if constexpr (kByTime) {
      merge_end = run(*timed_merge_, visit);
    } else {
      merge_end = run(*merge_, visit);
    }
    if (merge_end == MergeEnd::Limit) return DrainEnd::Limit;
    if (merge_end != MergeEnd::Released) return end;
    round.leaves = false;
    round.unreleased = has_unread();
    return DrainEnd::Drained;
  }

  os::Fd map_;
  RingSetOptions options_;
  Waiter waiter_;
  std::optional<internal::Uevents> uevents_;
  std::optional<WriterBarrier> barrier_;
  std::optional<RingsError> hotplug_error_;
  std::vector<OutputRing> rings_;
  // One of the two, unless moved from; ring i is its number i.
  std::unique_ptr<Merge<> > merge_;
  std::unique_ptr<Merge<Timed<> > > timed_merge_;
  WakeupChoice choice_;
  Wakeups entries_ = Wakeups::EachRecord;
  std::size_t turn_ = 0;  // the ring that had the last one
  Clock::time_point due_ = Waiter::kNoDeadline;
  Clock::time_point list_due_{};
  bool running_ = false;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_RING_SET_H_
