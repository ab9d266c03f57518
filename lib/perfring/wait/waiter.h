#ifndef PERFRING_WAIT_WAITER_H_
#define PERFRING_WAIT_WAITER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Waiter: waits until one of several rings may have something to read, a deadline passes, or stop()
// is called.
//
//   waiter->add(first.fd());
//   waiter->add(second.fd());
//   while (waiter->wait() != Woken::Stop) {
//     first.for_each(use);  // read all rings, whatever wait() returned
//     second.for_each(use);
//   }
//
// The kernel keeps one readiness flag for each ring. Any poll clears the flag, whether or not
// anyone reads the ring, and so does any way of registering with epoll (W22, K26 to K31, in the
// project's harness/RINGS_FACTS.md and KERNEL_FACTS.md). Hence the rules of waiting:
//
//   N1  The kernel does not report again what was in a ring before add(). So the first wait() after
//       add() returns Report at once, and all rings are read before anyone sleeps.
//   N2  A report does not tell which ring it is about, and it is not repeated while that ring is
//       unread. So read all rings after each wait, whatever it returned. (Reading the heads of 256
//       idle rings takes less than 1 us: W29.)
//   N3  A reader that leaves something unread calls look_again(). The next wait() then returns
//       Report at once.
//   N4  No wait lasts longer than longest_wait. That is the longest that a record can be delayed if
//       another poller has cleared the flag (another epoll, or a forgotten io_uring: W22, W23), if
//       a nested writer never set it (K30), or if the ring waits for a watermark.
//   N5  Each descriptor is added once, for EPOLLIN, level-triggered, and is never modified.
//   N6  A descriptor that has hung up (K33) is reported once and then removed, so that it cannot
//       keep the caller from sleeping. The unread records of its ring can still be read. For a
//       ring, an error (EPOLLERR) counts as a hangup. For an add_other() descriptor it does not,
//       because reading a socket clears its error.
//   N7  stop() is final: each wait() from then on returns Stop at once.
//
// Another event loop (epoll, poll, libuv, Asio, io_uring) waits on fd() until next_deadline(), then
// calls poll() and reads all rings, whatever poll() returned: the outer poll has cleared the flags,
// so the inner one finds nothing to report (W22, W24). The loop watches fd() for reading. Starting
// to watch, or renewing a watch (EPOLL_CTL_ADD and MOD, or Asio's async_wait(), which is
// edge-triggered), also clears the flags. So start or renew the watch before poll() and the reads.
// If it is done after them, records written in between are not reported.
//
// Units: deadlines are std::chrono::steady_clock times, to the nanosecond. The kernel ends a wait
// late by the thread's timer slack: 50 us, unless changed with prctl(PR_SET_TIMERSLACK) (W30).
// Lifetime: remove a descriptor before closing it. fork(2): the child's copy is the same epoll
// instance. It takes reports away from its parent (N4), and its stop() stops the parent's waits,
// too. A moved-from waiter has no epoll: wait() returns Stop, fd() is -1, and add() fails with
// EBADF. Self-assignment has no effect.
// Threads: one thread at a time may wait, add and remove. stop() and is_stopped() may be called
// from any thread and from signal handlers, as long as the waiter is neither moved nor destroyed.
// Errors: only create() and add() fail. A signal that interrupts a wait ends it with Report.
// Kernel: kernel/events/core.c: perf_poll() and fs/eventpoll.c: ep_insert() at v6.18.

#include <chrono>
#include <cstdint>
#include <expected>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/rings_error.h"

struct epoll_event;  // sys/epoll.h

namespace perfring {

// Why a wait ended. Read all rings, whatever the reason.
enum class Woken : std::uint8_t {
  Report,   // there may be something to read
  Timeout,  // the deadline or longest_wait passed; there may still be something
  Stop,
};

class PERFRING_EXPORT Waiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNoDeadline = Clock::time_point::max();
  static constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds{100};

  // With a longest_wait of 0 or less, wait() never sleeps. More than an hour counts as an hour.
  // Errors: SyscallError (EMFILE, ENFILE, ENOMEM).
  static std::expected<Waiter, RingsError> create(
      std::chrono::nanoseconds longest_wait = kLongestWait);

  Waiter(Waiter&& other) noexcept;
  Waiter& operator=(Waiter&& other) noexcept;
  ~Waiter() = default;

  // Starts to watch an event (N1, N5). It is best to fill the event's map entry after this.
  // Errors: SyscallError (EEXIST if the descriptor has been added already, EBADF, EPERM if it
  // cannot be polled, EINVAL and ELOOP for fd() and for an epoll that watches it, ENOSPC).
  std::expected<void, RingsError> add(int fd);
  // Watches a descriptor that is not a ring. wait() then returns Report for it, and take_other()
  // true.
  std::expected<void, RingsError> add_other(int fd);
  // Stops watching a descriptor. Does nothing if it is not watched.
  void remove(int fd) noexcept;

  // Waits until `deadline` at the latest. Does not sleep if the deadline has passed; nor does
  // poll().
  Woken wait(Clock::time_point deadline = kNoDeadline) noexcept;
  Woken poll() noexcept { return wait(Clock::time_point::min()); }

  // N3: Makes the next wait() return Report at once.
  void look_again() noexcept { look_again_ = true; }
  // Returns whether an add_other() descriptor was reported since the last call.
  bool take_other() noexcept { return std::exchange(other_, false); }

  // N7: Ends this and all later waits.
  void stop() noexcept;
  bool is_stopped() const noexcept;

  // For another event loop: the epoll that watches all descriptors, and the latest time for the
  // next poll(). next_deadline() is in the past if there is something to do at once.
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
  int stopped_ = 0;                // accessed by __atomic_* only
  bool look_again_ = false;
  bool other_ = false;
  bool has_pwait2_ = true;  // until the kernel refuses it
};

}  // namespace perfring

#endif
#endif  // PERFRING_WAIT_WAITER_H_
