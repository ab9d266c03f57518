#ifndef PERFRING_RINGS_WAITER_H_
#define PERFRING_RINGS_WAITER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Waiter: waits until one of several rings may hold something, a deadline has come, or somebody
// says stop.
//
//   waiter->add(first.fd());
//   waiter->add(second.fd());
//   while (waiter->wait() != Woken::Stop) {
//     first.for_each(use);  // all of them, whatever wait() said
//     second.for_each(use);
//   }
//
// The kernel's readiness is one flag for each ring. Any poll takes it away, whether or not the ring
// is read, and so does any way of registering with epoll (W22, K26 to K31, in the project's
// harness/RINGS_FACTS.md and KERNEL_FACTS.md). From that come the rules of waiting:
//
//   N1  What was there before add() is not announced again: the first wait() after it says Report
//       at once. So all rings are read before anybody sleeps.
//   N2  A report is of some ring, and is not repeated while that ring is unread: after each wait,
//       whatever it said, all rings are read. (To read the heads of 256 idle ones takes less than
//       1 us: W29.)
//   N3  A reader that leaves something unread calls look_again(): the next wait() then says Report
//       at once.
//   N4  No wait lasts longer than longest_wait. A flag that somebody else has taken (another epoll,
//       an io_uring that was forgotten: W22, W23), that a nested writer never set (K30), or that
//       waits for a watermark, delays what is in a ring by no more than that.
//   N5  A descriptor is added once, for EPOLLIN, level-triggered, and is never modified.
//   N6  Of a descriptor that hung up (K33) there is one report; it is then taken off, so that it
//       cannot keep anybody from sleeping. Its ring's unread records can be read as before. An
//       error (EPOLLERR) counts as hung up for a ring, but not for add_other(): reading a socket
//       clears its error.
//   N7  stop() is final: each wait() from then on says Stop at once.
//
// Another loop (epoll, poll, libuv, Asio, io_uring) waits on fd() until next_deadline(), and then
// calls poll(), and reads all rings, whatever poll() said: the outer poll has taken the flags, so
// that nothing is left to report (W22, W24). It watches fd() for reading. To begin to watch, or to
// watch anew (EPOLL_CTL_ADD and MOD, Asio's async_wait(), which is edge-triggered), takes the flags
// as well. So do that before poll() and the reads: afterwards, what was written in between is not
// reported.
//
// Units: deadlines are of std::chrono::steady_clock, to the nanosecond; the kernel ends a wait late
// by the thread's timer slack, 50 us unless prctl(PR_SET_TIMERSLACK) says otherwise (W30).
// Lifetime: a descriptor is removed before it is closed. fork(2): a child's copy is the same epoll,
// and takes reports from its parent (N4); its stop() stops the parent's waits, too. Moved from, a
// waiter has none: wait() says Stop, fd() is -1, add() fails with EBADF. Assigned to itself, it is
// as it was.
// Threads: one at a time waits, adds and removes. stop() and is_stopped() may be called by any
// thread, and from a signal's handler, as long as the waiter is neither moved nor destroyed.
// Errors: create() and add() alone fail. A signal that interrupts a wait ends it with Report.
// Kernel: kernel/events/core.c: perf_poll() and fs/eventpoll.c: ep_insert() at v6.18.

#include <chrono>
#include <cstdint>
#include <expected>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/rings/rings_error.h"

struct epoll_event;  // sys/epoll.h

namespace perfring {

// Why a wait ended. Read all rings, whatever it says.
enum class Woken : std::uint8_t {
  Report,   // there may be something to read
  Timeout,  // the deadline, or longest_wait; there may be something all the same
  Stop,
};

class PERFRING_EXPORT Waiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNoDeadline = Clock::time_point::max();
  static constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds{100};

  // A longest_wait of 0 or less: wait() never sleeps. One of more than an hour is an hour.
  // Errors: SyscallError (EMFILE, ENFILE, ENOMEM).
  static std::expected<Waiter, RingsError> create(
      std::chrono::nanoseconds longest_wait = kLongestWait);

  Waiter(Waiter&& other) noexcept;
  Waiter& operator=(Waiter&& other) noexcept;
  ~Waiter() = default;

  // Watches an event, from now on (N1, N5). Its map entry is best filled after that.
  // Errors: SyscallError (EEXIST for one that is there already, EBADF, EPERM for what cannot be
  // polled, EINVAL and ELOOP for fd() and for an epoll that watches it, ENOSPC).
  std::expected<void, RingsError> add(int fd);
  // Watches a descriptor that is not a ring; wait() says Report for it, and take_other() true.
  std::expected<void, RingsError> add_other(int fd);
  // Does nothing to one that is not watched.
  void remove(int fd) noexcept;

  // Waits until `deadline` at most. One that has passed, or poll(): does not sleep.
  Woken wait(Clock::time_point deadline = kNoDeadline) noexcept;
  Woken poll() noexcept { return wait(Clock::time_point::min()); }

  // N3.
  void look_again() noexcept { look_again_ = true; }
  // Whether a descriptor of add_other() was reported since this was asked last.
  bool take_other() noexcept { return std::exchange(other_, false); }

  // N7.
  void stop() noexcept;
  bool is_stopped() const noexcept;

  // For another loop: the epoll that watches all of this, and when poll() is to be called at the
  // latest. The deadline has passed already if there is something to do at once.
  int fd() const noexcept { return epoll_.get(); }
  Clock::time_point next_deadline() const noexcept;

 private:
  enum class Watched : std::uint32_t { Ring, Other, Stop };

  PERFRING_HIDDEN Waiter(os::Fd epoll, os::Fd stop, std::chrono::nanoseconds longest_wait) noexcept;

  PERFRING_HIDDEN std::expected<void, RingsError> watch(int fd, Watched as);
  PERFRING_HIDDEN int reported_by(Clock::time_point deadline, Clock::time_point now,
                                  epoll_event* events, int most) noexcept;

  os::Fd epoll_;
  os::Fd stop_;
  std::chrono::nanoseconds longest_wait_{};
  Clock::time_point waited_at_{};  // when the last wait ended
  int stopped_ = 0;                // __atomic_* only
  bool look_again_ = false;
  bool other_ = false;
  bool has_pwait2_ = true;  // until the kernel says no
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_WAITER_H_
