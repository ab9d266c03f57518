#include "perfring/wait/waiter.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <span>
#include <string>
#include <utility>

#include "perfring/os/syscalls.h"

namespace perfring {
namespace {

using internal::failed;
using std::chrono::nanoseconds;

constexpr int kReportsMost = 16;  // the next wait reports the rest

// For Linux before 5.11, and for seccomp profiles that do not know epoll_pwait2: ppoll(2) on the
// epoll takes nanoseconds, too. It clears the flags, but has reported them by then.
int wait_by_ppoll(int epoll, nanoseconds timeout, epoll_event* events, int most) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec spec{};
  spec.tv_sec = static_cast<decltype(spec.tv_sec)>(seconds.count());
  spec.tv_nsec = static_cast<decltype(spec.tv_nsec)>((timeout - seconds).count());
  pollfd readable{.fd = epoll, .events = POLLIN, .revents = 0};
  const int reported = ::ppoll(&readable, 1, &spec, nullptr);
  if (reported <= 0) return reported;
  const int known = ::epoll_wait(epoll, events, most, 0);
  if (known > 0) return known;
  events[0] = {};
  return 1;  // some ring
}

}  // namespace

std::expected<Waiter, RingsError> Waiter::create(nanoseconds longest_wait) {
  os::Fd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  if (epoll.get() < 0) return failed("epoll_create1", "a waiter", errno);
  os::Fd stop{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (stop.get() < 0) return failed("eventfd", "a waiter", errno);
  Waiter waiter{std::move(epoll), std::move(stop), longest_wait};
  if (auto added = waiter.watch(waiter.stop_.get(), Watched::Stop); !added) {
    return std::unexpected(std::move(added).error());
  }
  return waiter;
}

Waiter::Waiter(os::Fd epoll, os::Fd stop, nanoseconds longest_wait) noexcept
    : epoll_{std::move(epoll)},
      stop_{std::move(stop)},
      longest_wait_{std::clamp<nanoseconds>(longest_wait, nanoseconds{0}, std::chrono::hours{1})},
      waited_at_{Clock::now()} {}

Waiter::Waiter(Waiter&& other) noexcept {
  *this = std::move(other);
}

Waiter& Waiter::operator=(Waiter&& other) noexcept {
  if (this == &other) return *this;
  epoll_ = std::move(other.epoll_);
  stop_ = std::move(other.stop_);
  longest_wait_ = other.longest_wait_;
  waited_at_ = other.waited_at_;
  stopped_ = std::exchange(other.stopped_, 1);
  look_again_ = other.look_again_;
  other_ = other.other_;
  has_pwait2_ = other.has_pwait2_;
  return *this;
}

std::expected<void, RingsError> Waiter::watch(int fd, Watched as) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = std::uint64_t{std::to_underlying(as)} << 32 | static_cast<std::uint32_t>(fd);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return failed("epoll_ctl", "fd " + std::to_string(fd), errno);
  }
  look_again_ = true;  // N1
  return {};
}

std::expected<void, RingsError> Waiter::add(int fd) {
  return watch(fd, Watched::Ring);
}
std::expected<void, RingsError> Waiter::add_other(int fd) {
  return watch(fd, Watched::Other);
}

void Waiter::remove(int fd) noexcept {
  const int before = errno;
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
  errno = before;
}

int Waiter::reported_by(Clock::time_point deadline, Clock::time_point now, epoll_event* events,
                        int most) noexcept {
  const nanoseconds left =
      deadline <= now ? nanoseconds{0} : std::min<nanoseconds>(deadline - now, longest_wait_);
  if (has_pwait2_) {
    const auto reported =
        os::epoll_pwait2(epoll_.get(), std::span(events, static_cast<std::size_t>(most)),
                         static_cast<std::uint64_t>(left.count()));
    if (reported) return static_cast<int>(*reported);
    const int error = reported.error().value();
    if (error != ENOSYS && error != EPERM) return -1;
    has_pwait2_ = false;
  }
  return wait_by_ppoll(epoll_.get(), left, events, most);
}

Woken Waiter::wait(Clock::time_point deadline) noexcept {
  if (is_stopped()) return Woken::Stop;
  const int before = errno;
  if (look_again_) deadline = Clock::time_point::min();
  // A wait that does not sleep needs no clock.
  const Clock::time_point now =
      deadline == Clock::time_point::min() ? Clock::time_point::max() : Clock::now();
  epoll_event events[kReportsMost];
  const int reported = reported_by(deadline, now, events, kReportsMost);
  for (int i = 0; i < reported; ++i) {
    const auto watched = static_cast<Watched>(events[i].data.u64 >> 32);
    // A forked child may have called stop().
    if (watched == Watched::Stop) __atomic_store_n(&stopped_, 1, __ATOMIC_RELEASE);
    if (watched == Watched::Other) other_ = true;
    // N6. Reading a socket clears its error.
    const std::uint32_t hung_up =
        watched == Watched::Other ? EPOLLHUP : std::uint32_t{EPOLLHUP} | EPOLLERR;
    if (watched != Watched::Stop && (events[i].events & hung_up) != 0) {
      remove(static_cast<int>(static_cast<std::uint32_t>(events[i].data.u64)));
    }
  }
  waited_at_ = Clock::now();
  errno = before;
  if (is_stopped()) return Woken::Stop;
  // A negative number means that a signal came.
  const bool anything = reported != 0;
  return std::exchange(look_again_, false) || anything ? Woken::Report : Woken::Timeout;
}

void Waiter::stop() noexcept {
  const int before = errno;
  __atomic_store_n(&stopped_, 1, __ATOMIC_RELEASE);
  const std::uint64_t one = 1;
  // Fails only if so many stops have been written already that the counter is full.
  static_cast<void>(!::write(stop_.get(), &one, sizeof(one)));
  errno = before;
}

bool Waiter::is_stopped() const noexcept {
  return __atomic_load_n(&stopped_, __ATOMIC_ACQUIRE) != 0;
}

Waiter::Clock::time_point Waiter::next_deadline() const noexcept {
  if (look_again_ || is_stopped()) return Clock::time_point::min();
  return waited_at_ + longest_wait_;
}

}  // namespace perfring
