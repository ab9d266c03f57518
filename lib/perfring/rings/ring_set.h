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
// The rules below add to those of a drain (ring/ring.h), a wait (wait/waiter.h) and a merge
// (merge/merge.h). W1 and so on are facts measured on a live kernel (the project's
// harness/RINGS_FACTS.md).
//
//   C1  The index of a map entry is always its CPU (W42).
//   C2  Each ring is watched before its map entry is filled, and the first wait() returns Report at
//       once. So no record is overlooked (W22).
//   C3  A round (drain(), drain_fullest(), merge(), flush()) delivers what was in the rings when it
//       began, unless a limit or the callback ends it early. It never waits for more, but it may
//       deliver up to per_ring later events from each ring. If it leaves records in the rings, the
//       next wait() returns Report at once.
//   C4  A ring's turn delivers at most per_ring events, and then gives their room back. This bound
//       prevents more losses than any order of the rings does (W31).
//   C5  flush(Visible) delivers what was output before the call by any program that ran outside
//       interrupts and has returned. One round is enough for that (W15). flush(Complete) first
//       waits for every program that is running on any CPU (W12, W13: WriterBarrier), which takes 8
//       ms or more. If a ring lost records after its last record, there is no LOST for them yet
//       (W16), and neither flush delivers their number: lost() returns it. Before Linux 6.0, the
//       only way to get it is one more output on each CPU after a flush has made room: the Lost
//       precedes that output's record (K14, K16).
//   C6  When a CPU goes offline, its ring is read as before. When it comes back, it outputs to the
//       same ring through a new event, because the old event is dead (W39, W40). A new CPU gets a
//       ring. wait() learns of changes from the kernel's uevents (W41), and, where there are no
//       uevents, from the list of online CPUs, which it reads once a second. Without uevents, a CPU
//       that goes and comes back within that second is not noticed.
//   C7  If a latency is set, wait() keeps it by the cheapest means (WakeupChoice): a wakeup for
//       each record, or a timer and no wakeups (W27). Each round chooses anew. The two kinds of
//       event output to the same ring, and a switch puts one or the other into the map entry (W28).
//       A round that leaves nothing is then followed by another round within the latency of its
//       start. A ring must be large enough for twice the latency. If the kernel fails to wake
//       (K30), records wait up to longest_wait.
//
// Another event loop (epoll, poll, libuv, Asio, io_uring) watches fd() for reading until
// next_deadline(). After each report and each deadline it calls poll() and drains, whatever poll()
// returned. Only Stop from poll() ends such a loop. Call Asio's async_wait() before poll(), not
// after the drain (waiter.h).
//
// Units: times are std::chrono::steady_clock's, which is the kernel's CLOCK_MONOTONIC. The keys of
// a merge are nanoseconds of that clock (bpf_ktime_get_ns()). Page counts are data pages. In a time
// namespace (time_namespaces(7)), steady_clock is shifted by the namespace's offset, but the keys
// are not (W43). If the offset is negative, all keys are ahead. If it is positive, all keys are
// old, and each proves a delay (M7), which the slack learns if twice the delay is within
// slack_most. Keys by boot time or TAI are ahead, too. None of this holds anything up, but the
// merge then keeps only each ring's own order. To merge by such keys, subtract the difference of
// the clocks in the key function.
// Lifetime: move-only, but do not move it during a round. It keeps the map's open file alive, like
// PerfEventArrayBuffer, and does not remove the map entries when it is destroyed. A moved-from set
// has no ring: rounds return Drained and wait() returns Stop. Self-assignment has no effect. Events
// are valid until the callback returns. fork(2): as for PerfBuffer, rounds in a forked child end
// the program with an assertion, or are undefined with NDEBUG. The child must not wait either,
// because it would take the parent's reports.
// Threads: one at a time. stop() and is_stopped() may be called from any thread and from signal
// handlers.
// Errors: only open(), add(), cpu_changed() and flush(Complete) fail. A failed open() or add()
// leaves nothing behind. When memory runs out, these functions throw std::bad_alloc, and so do
// wait() and poll() when they follow a CPU (C6). No ring or event is lost by that, and the CPU is
// followed when the list of CPUs is read again, within a second.
// Callbacks: f(cpu, event) returns either nothing or whether to continue. The event on which it
// stops or throws counts as delivered. From within f, every round returns Nested, wait() returns
// Timeout without sleeping, and add() and cpu_changed() fail with EBUSY. f may call stop().
//
// Bad input:
//  - A null function pointer ends the program (SIGILL or SIGTRAP) before anything is read.
//  - If one of the rings has another consumer, data_tail never goes back, and each event reaches
//    one of the two or both. The other consumer may take a wakeup (N4).
//  - A CPU that is added twice, does not exist or has no entry in the map is refused.
//  - Keys of another clock, keys that go back, 0 and 2^64 - 1 are delivered, counted as late or
//    ahead, and stop no ring (M5, M8, W44).
//  - A slack that is too long for the rings' size makes the kernel drop records, which a Lost
//    counts. A slack of years holds everything until flush().
//  - A latency or a longest_wait below 0 counts as 0.
// K: measured facts, in the project's harness/KERNEL_FACTS.md.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfring/export.h"
#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/merge/timed.h"
#include "perfring/os/fd.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/output_ring.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/rings/round.h"
#include "perfring/rings_error.h"
#include "perfring/wait/uevents.h"
#include "perfring/wait/waiter.h"
#include "perfring/wait/wakeups.h"
#include "perfring/wait/writer_barrier.h"

namespace perfring {

class PERFRING_EXPORT RingSet {
 public:
  using Clock = Waiter::Clock;

  // Opens a ring on each online CPU, or on those in options.cpus, and puts it into that CPU's entry
  // of the map, in place of what was there. On failure, the entries that it has filled are deleted.
  // Errors: PerfBufferError, as from PerfEventArray::open (a CPU that does not exist, a map with
  // too few entries); OnlineCpusError; SyscallError (EMFILE and the like).
  static std::expected<RingSet, RingsError> open(const PerfEventArray& array,
                                                 const RingSetOptions& options = {});

  // Adds the ring of one more CPU.
  // Errors: those of open(); SyscallError with EEXIST for a CPU that has a ring, and with EBUSY.
  std::expected<void, RingsError> add(std::uint32_t cpu);

  RingSet(RingSet&&) noexcept;
  RingSet& operator=(RingSet&&) noexcept;
  ~RingSet();

  // The number of rings, and the CPU of each, in the order in which they were added. If `ring` is
  // not below rings(), the program ends (SIGILL or SIGTRAP).
  std::size_t rings() const noexcept { return rings_.size(); }
  std::uint32_t cpu(std::size_t ring) const noexcept {
    if (ring >= rings_.size()) __builtin_trap();
    return rings_[ring].cpu();
  }

  // Returns how many outputs have found no room since the rings were opened, as the kernel counts
  // them. This includes those that no Lost has reported yet (C5). When the writers have stopped and
  // everything is drained, attempted = delivered + lost(). Returns nullopt before Linux 6.0. With
  // `ring`, the count of that ring, numbered as for cpu(ring).
  std::optional<std::uint64_t> lost() const noexcept;
  std::optional<std::uint64_t> lost(std::size_t ring) const noexcept;

  // Passes everything in the rings, ring after ring, to f(cpu, const PerfEvent&).
  template <class F>
  DrainEnd drain(const Limits& limits, F&& f) {
    return turns(limits, f, [this](auto rings) { return internal::next_in_turn(rings, turn_); });
  }
  template <class F>
  DrainEnd drain(F&& f) {
    return drain(Limits{}, f);
  }

  // The same, except that each turn goes to the ring that is fullest at that time. For a consumer
  // that cannot keep up (W31).
  template <class F>
  DrainEnd drain_fullest(const Limits& limits, F&& f) {
    return turns(limits, f, [](auto rings) { return internal::fullest(rings); });
  }

  // Passes the releasable events of all rings, in the order of key(const Sample&), or of EventTime
  // if the set is timed, to f(cpu, const Ordered&): rules M1 to M9. Ordered::ring is a ring's
  // number, as for cpu(). Ignores Limits::per_ring. If events are not released yet, next_deadline()
  // is when the slack will have passed, and wait() ends then.
  template <class Key, class F>
  DrainEnd merge(Key&& key, const Limits& limits, F&& f) {
    internal::expect_callable(key);
    return merged<Key>(limits, f, [&](auto& merge, auto&& each) {
      return merge.run(key, monotonic_ns, each, limits.events);
    });
  }

  // C5, without limits. A result of Drained means that everything was delivered; f may stop it.
  // Errors: SyscallError, for Complete, if the kernel offers no way to wait for programs.
  template <class F>
  std::expected<DrainEnd, RingsError> flush(Flush what, F&& f) {
    internal::expect_callable(f);
    if (auto waited = before_flush(what); !waited) return std::unexpected(waited.error());
    return drain(f);
  }
  // The same in the order of keys, without waiting for the slack.
  template <class Key, class F>
  std::expected<DrainEnd, RingsError> flush(Flush what, Key&& key, F&& f) {
    internal::expect_callable(key);
    internal::expect_callable(f);
    if (auto waited = before_flush(what); !waited) return std::unexpected(waited.error());
    return merged<Key>({}, f, [&](auto& merge, auto&& each) { return merge.flush(key, each); });
  }

  // Waits (rules N1 to N7), and follows CPU hotplug (C6).
  Woken wait(Clock::time_point deadline = Waiter::kNoDeadline);
  Woken poll() { return wait(Clock::time_point::min()); }
  int fd() const noexcept { return waiter_.fd(); }
  Clock::time_point next_deadline() const noexcept;
  void stop() noexcept { waiter_.stop(); }
  bool is_stopped() const noexcept { return waiter_.is_stopped(); }

  // Reports that a CPU has come online or gone offline, for programs that learn of it by other
  // means. Has the effect of a uevent.
  // Errors: those of open().
  std::expected<void, RingsError> cpu_changed(std::uint32_t cpu, bool online);
  // Returns the error of the last CPU that came online but could not be followed; nullopt if none
  // failed.
  const std::optional<RingsError>& hotplug_error() const noexcept { return hotplug_error_; }

  // Returns the counts of the merges; all zeroes if moved from.
  MergeCounts merge_counts() const noexcept {
    if (timed_merge_) return timed_merge_->counts();
    return merge_ ? merge_->counts() : MergeCounts{};
  }
  // Returns the slack in force (M7); 0 if moved from.
  std::uint64_t merge_slack() const noexcept {
    if (timed_merge_) return timed_merge_->slack();
    return merge_ ? merge_->slack() : 0;
  }
  // Returns which kind of event the map entries hold (C7).
  Wakeups wakeups() const noexcept { return entries_; }

 private:
  using OutputRing = internal::OutputRing;

  // The scope of a round, which ends it even if the callback throws.
  struct RoundScope {
    explicit RoundScope(RingSet& of) : set{of} {
      assert((set.rings_.empty() || set.rings_.front().is_own()) &&
             "a forked child has no mapping of the rings");
      set.running_ = true;
    }
    ~RoundScope() { set.end_round(*this); }
    RoundScope(const RoundScope&) = delete;
    RoundScope& operator=(const RoundScope&) = delete;

    RingSet& set;
    Clock::time_point began = Clock::now();
    std::uint64_t delivered = 0;
    bool has_remaining = true;  // whether records that were there remain
    bool unreleased = false;    // whether there are records too young to release
  };

  PERFRING_HIDDEN RingSet(os::Fd map, const RingSetOptions& options, Waiter waiter);

  bool is_empty() const noexcept { return !merge_ && !timed_merge_; }  // moved from
  static std::uint64_t monotonic_ns() noexcept;
  void end_round(const RoundScope& round) noexcept;
  bool has_unread() const;
  std::expected<void, RingsError> before_flush(Flush what);
  PERFRING_HIDDEN void fill_entries(Wakeups wakeups) noexcept;
  PERFRING_HIDDEN OutputRing* ring_of(std::uint32_t cpu) noexcept;
  PERFRING_HIDDEN bool is_wanted(std::uint32_t cpu) const noexcept;
  PERFRING_HIDDEN std::expected<void, RingsError> change(internal::CpuChange change);
  PERFRING_HIDDEN void follow();
  // When to read the list of CPUs again, if it is to be read.
  PERFRING_HIDDEN Clock::time_point list_due() const noexcept;

  template <class F, class Event>
  static bool pass_to(F& f, std::uint32_t cpu, const Event& event) {
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
    RoundScope round{*this};
    const auto visit = [&](const OutputRing& ring, const PerfEvent& event) {
      return pass_to(f, ring.cpu(), event);
    };
    const DrainEnd end =
        internal::take_turns(std::span{rings_}, limits, turn_, round.delivered, next, visit);
    round.has_remaining = end != DrainEnd::Drained;
    return end;
  }

  // `run` merges, and passes the events to the function that it is given.
  template <class Key, class F, class Run>
  DrainEnd merged(const Limits& limits, F& f, Run run) {
    constexpr bool kByTime = std::is_same_v<std::remove_cvref_t<Key>, EventTime>;
    internal::expect_callable(f);
    if (running_) return DrainEnd::Nested;
    if (is_empty()) return DrainEnd::Drained;
    if (kByTime != options_.timed) return DrainEnd::WrongKey;
    RoundScope round{*this};
    if (limits.is_late(Clock::now)) return DrainEnd::Deadline;
    DrainEnd end = DrainEnd::Drained;
    const auto visit = [&](const Ordered& ordered) {
      if (internal::is_late_after(++round.delivered, limits)) end = DrainEnd::Deadline;
      if (!pass_to(f, rings_[ordered.ring].cpu(), ordered)) end = DrainEnd::Stopped;
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
    round.has_remaining = false;
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
  // One of the two, unless moved from. Ring i of the set is ring i of the merge.
  std::unique_ptr<Merge<> > merge_;
  std::unique_ptr<Merge<Timed<> > > timed_merge_;
  WakeupChoice choice_;
  Wakeups entries_ = Wakeups::EachRecord;
  std::size_t turn_ = 0;  // the ring that had the last turn
  Clock::time_point due_ = Waiter::kNoDeadline;
  Clock::time_point list_due_{};
  bool running_ = false;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_RING_SET_H_
