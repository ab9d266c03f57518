#ifndef PERFRING_EVENT_SAMPLER_H_
#define PERFRING_EVENT_SAMPLER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Sampler: opens a request, and hands out its records, typed and in the order of their times.
//
//   auto sampler = Sampler::open({.events = {tracepoint("block:block_rq_complete")}});
//   if (!sampler) return std::puts(sampler.error().explain().c_str());
//   while (sampler->wait() != Woken::Stop) {
//     sampler->for_each([](const Delivered& each) { use(each.record); });
//   }
//
//   while (const auto each = sampler->next(deadline)) use(each->record);  // one by one
//
// The rules, besides those of a wait (rings/waiter.h):
//
//   E1  next() says that nothing came only if no ring holds a record at its deadline: it looks,
//       waits, and looks again, whatever ended the wait (R4, R22).
//   E2  A record below the watermark is seen after longest_wait at most (R3).
//   E3  for_each() hands out what may be released in order, and never waits; flush() hands out all
//       that is there. A record that comes after a newer one says that it is late, and is counted.
//       So is one whose time is ahead of the clock: it waits for no order, and is no newer one.
//   E4  notes() says what open() had to give up: samples of the kernel, if this user may not
//       observe it; an event, in favour of its fallback.
//   E5  A call that fails leaves nothing open.
//   E6  Where others count the same software event (page-faults, context-switches), the kernel
//       gives samples their event's id (R25): such a sample is that of this sampler's software
//       event, if it has one, and Unknown, of kNoEvent, if it has several.
//   E7  Once all tasks that are watched have ended (R22), next() hands out what is in the rings,
//       and then no longer waits. ended() says so. A CPU or a cgroup never ends.
//
// Units: times are nanoseconds of CLOCK_MONOTONIC, which is steady_clock's, or of the clock that
// adjust() gives the events. With the kernel's own clock (use_clockid = 0), which nobody else can
// read, no record waits for its order. In a time namespace (time_namespaces(7)) the clocks that
// this process reads are others than the kernel's, by the namespace's offsets: where theirs are
// negative, all records are ahead; where positive, they are old when they come. Either way none
// waits for its order (W43, W44): the records of one look are in it, but one that comes after that
// may be older.
// Lifetime: a record is valid until the callback returns, or until the next call of next(), wait(),
// for_each() or flush(). Move-only; not to be moved while a record is in use. A child that was
// started runs on when its sampler is destroyed; one that was not, ends.
// Moved from, it has no events: wait() says Stop, start() fails with EBADF, nothing is delivered,
// and its counts and lists are empty. Assigned to itself, it is as it was. fork(2): a forked
// child's copy is empty, too; destroying it closes its descriptors and no more. Threads: one at a
// time; stop() any, and signal handlers. Errors: open() and start() alone. Where memory runs out,
// those throw std::bad_alloc. Callbacks: what f throws passes through, and the record that it threw
// on counts as delivered. A null pointer to a function ends the program. From within f the sampler
// may be asked for more: each record comes once, and the one at hand is not valid any more. Kernel:
// kernel/events/core.c: perf_event_open(), perf_mmap(), perf_poll() at v6.18. R: facts that were
// measured, in the project's harness/RECORD_FACTS.md; W: in its harness/RINGS_FACTS.md.

#include <chrono>
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

#include "perfring/event/event_error.h"
#include "perfring/event/request.h"
#include "perfring/export.h"
#include "perfring/record/decode.h"
#include "perfring/ring/callback.h"
#include "perfring/rings/waiter.h"

namespace perfring::event {

// A record, and what is known about it.
struct Delivered {
  static constexpr std::size_t kNoEvent = ~std::size_t{0};
  const record::Any& record;
  Bytes bytes;         // the same, as the kernel wrote it
  std::size_t event;   // of events(); kNoEvent if no event has its id
  std::uint64_t time;  // its own; without one, that of the record before it in its ring
  bool late;           // a newer one was delivered before
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

  // Opens and maps; records come from start() on. With `starts`, at once.
  // Errors: what check() would name, where that prevents it; each step's refusal, explained.
  static std::expected<Sampler, EventError> open(const Request& request, bool starts = true,
                                                 System& system = real_system());
  // Enables the events, or lets the child execve(), which enables them.
  // Errors: Start; Child, if the command cannot be run, or its process has ended.
  std::expected<void, EventError> start();

  Sampler(Sampler&& other) noexcept;
  Sampler& operator=(Sampler&& other) noexcept;
  ~Sampler();

  // As Waiter::wait(). All rings are to be read after it, whatever it says.
  Woken wait(Clock::time_point deadline = Waiter::kNoDeadline);
  void stop() noexcept;
  // For another loop.
  int fd() const noexcept;
  Clock::time_point next_deadline() const noexcept;

  // f(const Delivered&) returns nothing, or whether to go on.
  template <class F>
  void for_each(F&& f) {
    round(false, f);
  }
  template <class F>
  void flush(F&& f) {
    round(true, f);
  }
  // E1. nullopt: none came by the deadline; or stop() was called, or all that is watched has ended
  // (E7), and nothing is left.
  std::optional<Delivered> next(Clock::time_point deadline = Waiter::kNoDeadline);

  // E7. next(), for_each() or flush() still hand out the records that are in the rings by then.
  bool ended();

  std::span<const Opened> events() const noexcept;
  std::span<const std::string> notes() const noexcept;
  const Counts& counts() const noexcept;
  // Samples that found no room, as the kernel counts them; 0 before Linux 6.0, where only LOST
  // records count them.
  std::uint64_t lost() const;
  std::size_t rings() const noexcept;

  // The child of child(): 0 without one.
  pid_t child() const noexcept;
  // nullopt while it runs, and without one; then wait4(2)'s status. Error: ECHILD, it has ended,
  // and nobody can tell how, since this process ignores SIGCHLD or has waited for it elsewhere
  // (Linux 6.15 and later remember).
  std::optional<std::expected<int, std::error_code> > child_status() noexcept;
  // Sends it a signal, and never another process that has its id by now. Error: ESRCH, there is
  // none, or it was waited for.
  std::expected<void, std::error_code> signal_child(int number) const noexcept;

 private:
  struct PERFRING_HIDDEN State;
  PERFRING_HIDDEN explicit Sampler(std::unique_ptr<State> state) noexcept;

  template <class F>
  void round(bool all, F& f) {
    struct Round {
      Sampler& of;
      ~Round() { of.end_round(); }
    };
    perfring::internal::expect_callable(f);
    if (!begin_round()) return;
    const Round ends{*this};
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
#endif  // PERFRING_EVENT_SAMPLER_H_
