// Waiter on descriptors that are not events. harness/live tests it on events of a real kernel.

#include "perfring/wait/waiter.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "perfring/os/fd.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = Waiter::Clock;

// A descriptor that is reported again and again, like a ring with a flag that nobody clears.
struct Readable {
  Readable() : fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {}
  void raise() { EXPECT_EQ(::eventfd_write(fd.get(), 1), 0); }
  void take() {
    eventfd_t unused = 0;
    EXPECT_EQ(::eventfd_read(fd.get(), &unused), 0);
  }
  os::Fd fd;
};

Waiter waiter_of(std::chrono::nanoseconds longest_wait = 10s) {
  return Waiter::create(longest_wait).value();
}

TEST(WaiterTest, TheFirstWaitAfterAddReturnsReport) {
  Waiter waiter = waiter_of();
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_EQ(waiter.wait(Clock::now() + 1ms), Woken::Timeout);
  const Readable ring;
  ASSERT_TRUE(waiter.add(ring.fd.get()).has_value());
  EXPECT_EQ(waiter.next_deadline(), Clock::time_point::min());
  EXPECT_EQ(waiter.wait(), Woken::Report) << "else what was there before would wait (N1)";
  EXPECT_EQ(waiter.wait(Clock::now() + 1ms), Woken::Timeout);
}

TEST(WaiterTest, AReportEndsTheWait) {
  Waiter waiter = waiter_of();
  Readable rings[20];
  for (const Readable& each : rings) ASSERT_TRUE(waiter.add(each.fd.get()).has_value());
  waiter.poll();
  rings[19].raise();
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_FALSE(waiter.take_other());
  rings[19].take();
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
  for (Readable& each : rings) each.raise();
  EXPECT_EQ(waiter.wait(), Woken::Report);
}

TEST(WaiterTest, AfterLookAgainTheNextWaitReportsAtOnce) {
  Waiter waiter = waiter_of();
  waiter.poll();
  EXPECT_GT(waiter.next_deadline(), Clock::now());
  waiter.look_again();
  EXPECT_EQ(waiter.next_deadline(), Clock::time_point::min());
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
}

TEST(WaiterTest, LookAgainMergesWithPendingReport) {
  Waiter waiter = waiter_of();
  Readable ring;
  ASSERT_TRUE(waiter.add(ring.fd.get()).has_value());
  waiter.poll();
  ring.raise();
  waiter.look_again();
  EXPECT_EQ(waiter.wait(), Woken::Report);
  ring.take();
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
}

// A clock of milliseconds would turn 300 us into 1 ms, or 0.
TEST(WaiterTest, DeadlinesAreKeptToTheMicrosecond) {
  for (const int pwait2_errno : {0, ENOSYS, EPERM}) {
    testing::FakeKernel kernel;
    kernel.pwait2_errno = pwait2_errno;
    Waiter waiter = waiter_of();
    waiter.poll();
    auto shortest = Clock::duration::max();
    for (int i = 0; i < 200; ++i) {
      const auto start = Clock::now();
      EXPECT_EQ(waiter.wait(start + 300us), Woken::Timeout);
      shortest = std::min(shortest, Clock::now() - start);
      ASSERT_GE(shortest, 300us) << pwait2_errno;
    }
    EXPECT_LT(shortest, 900us) << pwait2_errno;
  }
}

TEST(WaiterTest, WorksWithoutEpollPwait2) {
  testing::FakeKernel kernel;
  kernel.pwait2_errno = ENOSYS;
  Waiter waiter = waiter_of();
  Readable ring;
  ASSERT_TRUE(waiter.add(ring.fd.get()).has_value());
  waiter.poll();
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
  ring.raise();
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_FALSE(waiter.take_other());
  ring.take();
  Readable other;
  ASSERT_TRUE(waiter.add_other(other.fd.get()).has_value());
  waiter.poll();
  other.raise();
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_TRUE(waiter.take_other());
  other.take();
  std::thread stops{[&] {
    std::this_thread::sleep_for(2ms);
    waiter.stop();
  }};
  EXPECT_EQ(waiter.wait(), Woken::Stop);
  stops.join();
}

// N4: as if a nested writer had not set the flag.
TEST(WaiterTest, NoWaitIsLongerThanTheLongest) {
  Waiter waiter = waiter_of(5ms);
  waiter.poll();
  EXPECT_LE(waiter.next_deadline(), Clock::now() + 5ms);
  for (const auto deadline : {Waiter::kNoDeadline, Clock::now() + 1h}) {
    const auto start = Clock::now();
    EXPECT_EQ(waiter.wait(deadline), Woken::Timeout);
    EXPECT_GE(Clock::now() - start, 5ms);
    EXPECT_LT(Clock::now() - start, 30s);
    EXPECT_GE(waiter.next_deadline(), start + 10ms) << "from the end of the last wait on";
  }
  EXPECT_EQ(waiter.wait(Clock::now() - 1h), Woken::Timeout);
  for (const auto never : {0ns, std::chrono::nanoseconds{-1}, std::chrono::nanoseconds::min()}) {
    Waiter hasty = waiter_of(never);
    hasty.poll();
    EXPECT_EQ(hasty.wait(), Woken::Timeout) << "does not sleep";
  }
}

TEST(WaiterTest, StopEndsEveryWaitFromThenOn) {
  Waiter waiter = waiter_of();
  waiter.poll();
  EXPECT_FALSE(waiter.is_stopped());
  std::thread stops{[&] {
    std::this_thread::sleep_for(2ms);
    waiter.stop();
  }};
  EXPECT_EQ(waiter.wait(), Woken::Stop);
  stops.join();
  EXPECT_TRUE(waiter.is_stopped());
  EXPECT_EQ(waiter.next_deadline(), Clock::time_point::min());
  waiter.look_again();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(waiter.wait(), Woken::Stop);
  EXPECT_EQ(waiter.next_deadline(), Clock::time_point::min());
  pollfd readable{.fd = waiter.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 1) << "for another loop";
}

Waiter* in_handler = nullptr;

// Waits while this thread receives a signal.
Woken signalled_wait(Waiter& waiter, void (*handler)(int), std::chrono::milliseconds after) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = handler;
  EXPECT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::thread signals{[after, self = ::pthread_self()] {
    std::this_thread::sleep_for(after);
    ::pthread_kill(self, SIGUSR1);
  }};
  errno = EDOM;
  const Woken woken = waiter.wait();
  EXPECT_EQ(errno, EDOM);
  signals.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  return woken;
}

TEST(WaiterTest, StopMayBeCalledByASignalsHandler) {
  Waiter waiter = waiter_of();
  waiter.poll();
  in_handler = &waiter;
  EXPECT_EQ(signalled_wait(waiter, [](int) { in_handler->stop(); }, 2ms), Woken::Stop);
  errno = EDOM;
  waiter.stop();
  EXPECT_EQ(errno, EDOM);
}

TEST(WaiterTest, ASignalEndsAWaitWithReport) {
  Waiter waiter = waiter_of();
  waiter.poll();
  EXPECT_EQ(signalled_wait(waiter, [](int) {}, 20ms), Woken::Report);
}

TEST(WaiterTest, ARingThatHungUpIsReportedOnce) {
  Waiter waiter = waiter_of();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::Fd reads{ends[0]};
  ASSERT_TRUE(waiter.add(reads.get()).has_value());
  waiter.poll();
  ::close(ends[1]);
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_EQ(waiter.wait(Clock::now() + 1ms), Woken::Timeout) << "else nobody sleeps again (N6)";
}

// EPOLLERR without EPOLLHUP.
TEST(WaiterTest, ARingWithAnErrorIsReportedOnce) {
  Waiter waiter = waiter_of();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::Fd write_end{ends[1]};
  ASSERT_TRUE(waiter.add(write_end.get()).has_value());
  waiter.poll();
  ::close(ends[0]);
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_EQ(waiter.wait(Clock::now() + 1ms), Woken::Timeout);
}

// A datagram socket with a name that the kernel chooses.
struct NamedSocket {
  NamedSocket() : fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
    name.sun_family = AF_UNIX;
    EXPECT_EQ(::bind(fd.get(), address(), sizeof(name.sun_family)), 0);
    EXPECT_EQ(::getsockname(fd.get(), address(), &size), 0);
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&name); }
  void connect_to(NamedSocket& to) { EXPECT_EQ(::connect(fd.get(), to.address(), to.size), 0); }

  os::Fd fd;
  sockaddr_un name{};
  socklen_t size = sizeof(name);
};

// If a socket's peer connects to another socket, and so loses what was sent to it, the first socket
// has an error until that error is read (net/unix/af_unix.c: unix_dgram_disconnected(), v6.1).
TEST(WaiterTest, OtherDescriptorReportsAgainAfterErrorIsRead) {
  Waiter waiter = waiter_of();
  NamedSocket socket, peer, another;
  socket.connect_to(peer);
  peer.connect_to(socket);
  ASSERT_TRUE(waiter.add_other(socket.fd.get()).has_value());
  waiter.poll();
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
  EXPECT_EQ(::send(socket.fd.get(), "x", 1, 0), 1);
  peer.connect_to(another);
  EXPECT_EQ(waiter.wait(), Woken::Report);
  char byte = 0;
  EXPECT_EQ(::recv(socket.fd.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
  EXPECT_EQ(::sendto(peer.fd.get(), "x", 1, 0, socket.address(), socket.size), 1);
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_EQ(::recv(socket.fd.get(), &byte, 1, 0), 1);
}

TEST(WaiterTest, AnotherDescriptorThatHungUpIsReportedOnce) {
  Waiter waiter = waiter_of();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::Fd read_end{ends[0]};
  ASSERT_TRUE(waiter.add_other(read_end.get()).has_value());
  waiter.poll();
  ::close(ends[1]);
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_TRUE(waiter.take_other());
  EXPECT_EQ(waiter.wait(Clock::now() + 1ms), Woken::Timeout);
}

TEST(WaiterTest, ARemovedRingIsReportedNoMore) {
  Waiter waiter = waiter_of();
  Readable ring;
  ASSERT_TRUE(waiter.add(ring.fd.get()).has_value());
  waiter.poll();
  waiter.remove(ring.fd.get());
  ring.raise();
  EXPECT_EQ(waiter.poll(), Woken::Timeout);
  errno = EDOM;
  waiter.remove(ring.fd.get());
  waiter.remove(-1);
  EXPECT_EQ(errno, EDOM);
  EXPECT_TRUE(waiter.add(ring.fd.get()).has_value());
}

TEST(WaiterTest, AReportOfAnotherDescriptorIsRemembered) {
  Waiter waiter = waiter_of();
  Readable other;
  ASSERT_TRUE(waiter.add_other(other.fd.get()).has_value());
  waiter.poll();
  EXPECT_FALSE(waiter.take_other());
  other.raise();
  EXPECT_EQ(waiter.wait(), Woken::Report);
  EXPECT_TRUE(waiter.take_other());
  EXPECT_FALSE(waiter.take_other());
  waiter.poll();
  Waiter moved{std::move(waiter)};
  EXPECT_TRUE(moved.take_other()) << "of the poll before it was moved";
}

TEST(WaiterTest, RefusesUnsuitableDescriptorWithAdvice) {
  Waiter waiter = waiter_of();
  const Readable ring;
  ASSERT_TRUE(waiter.add(ring.fd.get()).has_value());
  const auto refused = [&](int fd) { return waiter.add(fd).error(); };
  EXPECT_EQ(refused(ring.fd.get()).io_error(), std::errc::file_exists);
  EXPECT_THAT(refused(ring.fd.get()).explain(), HasSubstr("\nto change: add each ring once"));
  EXPECT_EQ(refused(-1).io_error(), std::errc::bad_file_descriptor);
  EXPECT_EQ(refused(-1).explain(),
            "asked for: epoll_ctl of fd -1\n"
            "the system said: Bad file descriptor\n"
            "to change: give an open descriptor, and use an object that has not been moved from");
  EXPECT_EQ(refused(-1).message(), "`epoll_ctl` of fd -1 failed: Bad file descriptor");
  const os::Fd file{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  EXPECT_EQ(refused(file.get()).io_error(), std::errc::operation_not_permitted);
  EXPECT_THAT(refused(file.get()).explain(), HasSubstr("can be polled"));
  EXPECT_EQ(refused(waiter.fd()).io_error(), std::errc::invalid_argument);
  Waiter outer = waiter_of();
  ASSERT_TRUE(outer.add(waiter.fd()).has_value());
  EXPECT_EQ(refused(outer.fd()).io_error(), std::errc::too_many_symbolic_link_levels);
}

static_assert(!std::is_copy_constructible_v<Waiter>);
static_assert(std::is_nothrow_move_constructible_v<Waiter>);
static_assert(std::is_nothrow_move_assignable_v<Waiter>);

TEST(WaiterTest, AMovedFromWaiterReturnsStop) {
  Waiter first = waiter_of();
  Readable ring;
  ASSERT_TRUE(first.add(ring.fd.get()).has_value());
  const int fd = first.fd();
  Waiter second{std::move(first)};
  EXPECT_EQ(second.fd(), fd);
  EXPECT_EQ(first.fd(), -1);  // NOLINT: moved from, on purpose
  EXPECT_EQ(first.wait(), Woken::Stop);
  EXPECT_EQ(first.add(ring.fd.get()).error().io_error(), std::errc::bad_file_descriptor);
  EXPECT_EQ(second.poll(), Woken::Report) << "of the ring that was added";
  EXPECT_EQ(second.poll(), Woken::Timeout);
  first = std::move(second);
  Waiter& same = first;
  first = std::move(same);
  EXPECT_EQ(first.poll(), Woken::Timeout);
  EXPECT_EQ(second.poll(), Woken::Stop);  // NOLINT
}

TEST(WaiterTest, NoDescriptorLeftIsAnErrorWithAdvice) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // Leaves one or two descriptor numbers.
  const Readable next;
  for (const rlim_t more : {rlim_t{1}, rlim_t{2}}) {
    const rlimit few{static_cast<rlim_t>(next.fd.get()) + more, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto waiter = Waiter::create();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(waiter.has_value()) << more;
    EXPECT_EQ(waiter.error().io_error(), std::errc::too_many_files_open);
    EXPECT_THAT(waiter.error().explain(), HasSubstr("raise the limit on open files (ulimit -n)"));
  }
}

}  // namespace
}  // namespace perfring
