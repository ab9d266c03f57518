#ifndef PERFRING_SAMPLER_SAMPLER_H_
#define PERFRING_SAMPLER_SAMPLER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Sampler: opens a request and delivers its records, typed and in the order of their times.
//
//   auto sampler = Sampler::open({.events = {tracepoint("block:block_rq_complete")}});
//   if (!sampler) return std::puts(sampler.error().explain().c_str());
//   while (sampler->wait() != Woken::Stop) {
//     sampler->for_each([](const Delivered& each) { use(each.record); });
//   }
//
//   while (const auto each = sampler->next(deadline)) use(each->record);  // one by one
//
// The rules below add to those of a wait (wait/waiter.h).
//
//   E1  next() returns nullopt at its deadline only if no ring holds a record then. It reads the
//       rings, waits, and reads them again, whatever ended the wait (R4, R22).
//   E2  A record below the watermark is delivered after longest_wait at most (R3).
//   E3  for_each() delivers what may be released in order, and never waits. flush() delivers
//       everything in the rings. A record delivered after a newer one is marked late and counted. A
//       record with a time ahead of the clock is counted, too: it does not wait for its order, and
//       does not count as newer than others.
//   E4  notes() lists what open() had to omit: samples of the kernel, if this user may not observe
//       the kernel; an event, in favor of its fallback.
//   E5  A call that fails leaves nothing open.
//   E6  If others count the same software event (page-faults, context-switches), the kernel gives
//       samples the id of the others' event (R25). If this sampler has exactly one software event,
//       such a sample counts as that event's. If it has several, the sample is Unknown, with
//       kNoEvent.
//   E7  When all watched tasks have ended (R22), next() delivers what is in the rings, and then no
//       longer waits. ended() returns true from then on. A CPU or a cgroup never ends.
//
// Units: times are nanoseconds of CLOCK_MONOTONIC, which is steady_clock's, or of the clock that
// adjust() gives the events. If that is the kernel's own clock (use_clockid = 0), which nobody else
// can read, no record waits for its order. In a time namespace (time_namespaces(7)), the clocks
// that this process reads differ from the kernel's by the namespace's offsets. With a negative
// offset, all records are ahead; with a positive one, they are old on arrival. Either way no record
// waits for its order (W43, W44): records found by one read of the rings are in order, but records
// that come later may be older.
// Lifetime: a record is valid until the callback returns, or until the next call of next(), wait(),
// for_each() or flush(). Move-only; do not move it while a record is in use. A child that was
// started continues to run when its sampler is destroyed; a child that was not started ends. If
// moved from, the sampler has no events: wait() returns Stop, start() fails with EBADF, nothing is
// delivered, and its counts and lists are empty. Self-assignment has no effect. fork(2): the copy
// in a forked child is empty, too, and its destructor only closes the child's descriptors.
// Threads: one at a time. stop() may be called from any thread and from signal handlers.
// Errors: only open() and start() fail. When memory runs out, they throw std::bad_alloc.
// Callbacks: f's exceptions pass through, and the record on which f threw counts as delivered. A
// null function pointer ends the program. f may ask the same sampler for more records: each record
// is delivered once, and f's own record is no longer valid then.
// Kernel: kernel/events/core.c: perf_event_open(), perf_mmap(), perf_poll() at v6.18.
// R: measured facts, in the project's harness/RECORD_FACTS.md.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

#include <linux/perf_event.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/export.h"
#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/ring/callback.h"
#include "perfring/wait/waiter.h"

namespace perfring::event {

// A record, with what is known about it.
struct Delivered {
  static constexpr std::size_t kNoEvent = ~std::size_t{0};
  const record::Any& record;
  Bytes bytes;         // the record as the kernel wrote it
  std::size_t event;   // index in events(); kNoEvent if no event has the record's id
  std::uint64_t time;  // its own, or else that of the record before it in its ring
  bool late;           // whether a newer one was delivered before
};

// An event as it was opened.
struct Opened {
  std::string name;
  perf_event_attr attr;
  std::vector<std::uint64_t> ids;
};

struct Counts {
  std::uint64_t delivered = 0;
  std::uint64_t late = 0;
  std::uint64_t malformed = 0;
  std::uint64_t ahead = 0;  // E3
};

class PERFRING_EXPORT Sampler {
 public:
  using Clock = Waiter::Clock;

  // Opens and maps the events. Records come after start(); with `starts`, at once.
  // Errors: the findings of check() that prevent it; the refusal of any step, explained.
  static std::expected<Sampler, EventError> open(const Request& request, bool starts = true,
                                                 System& system = real_system());
  // Enables the events, or lets the child execve(), which enables them.
  // Errors: Start; Child, if the command cannot be run or its process has ended.
  std::expected<void, EventError> start();

  Sampler(Sampler&& other) noexcept;
  Sampler& operator=(Sampler&& other) noexcept;
  ~Sampler();

  // As for Waiter::wait(). Read all rings afterwards, whatever it returns.
  Woken wait(Clock::time_point deadline = Waiter::kNoDeadline);
  void stop() noexcept;
  // For another event loop.
  int fd() const noexcept;
  Clock::time_point next_deadline() const noexcept;

  // f(const Delivered&) returns either nothing or whether to continue.
  template <class F>
  void for_each(F&& f) {
    round(false, f);
  }
  template <class F>
  void flush(F&& f) {
    round(true, f);
  }
  // E1. Returns nullopt if no record came by the deadline; or if stop() was called or everything
  // that is watched has ended (E7), and no record is left.
  std::optional<Delivered> next(Clock::time_point deadline = Waiter::kNoDeadline);

  // E7. The records that are in the rings by then are still delivered by next(), for_each() or
  // flush().
  bool ended();

  std::span<const Opened> events() const noexcept;
  std::span<const std::string> notes() const noexcept;
  const Counts& counts() const noexcept;
  // Returns how many samples found no room, as the kernel counts them; 0 before Linux 6.0, where
  // only LOST records count them.
  std::uint64_t lost() const;
  std::size_t rings() const noexcept;

  // The pid of child()'s process; 0 without a child.
  pid_t child() const noexcept;
  // Returns nullopt while the child runs, or without a child; afterwards the status from wait4(2).
  // Error: ECHILD, if the child has ended but its status is unknown, because this process ignores
  // SIGCHLD or has waited for the child elsewhere (Linux 6.15 and later remember the status).
  std::optional<std::expected<int, std::error_code> > child_status() noexcept;
  // Sends the child a signal, and never sends it to another process that has got the same pid.
  // Error: ESRCH, if there is no child, or it was waited for.
  std::expected<void, std::error_code> signal_child(int number) const noexcept;

 private:
  struct PERFRING_HIDDEN State;
  PERFRING_HIDDEN explicit Sampler(std::unique_ptr<State> state) noexcept;

  template <class F>
  void round(bool all, F& f) {
    struct RoundScope {
      Sampler& of;
      ~RoundScope() { of.end_round(); }
    };
    perfring::internal::expect_callable(f);
    if (!begin_round()) return;
    const RoundScope scope{*this};
    while (const std::optional<Delivered> each = next_in_round(all)) {
      if constexpr (std::is_void_v<decltype(f(*each))>) {
        f(*each);
      } else if (!f(*each)) {
        return;
      }
    }
  }
  bool begin_round();
  std::optional<Delivered> next_in_round(bool all);
  void end_round() noexcept;
  PERFRING_HIDDEN bool is_empty() const noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace perfring::event

#endif
#endif  // PERFRING_SAMPLER_SAMPLER_H_
