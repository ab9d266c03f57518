// The rows of W22: whether each way of waiting sees a record that was there before the call (A), or
// one that arrives after it (B), and whether it reports again while the record is unread.

#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "harness/live/uring.h"
#include "perfring/os/fd.h"

namespace perfring::live {
namespace {

constexpr std::size_t kWaitedForPayload = 52;

class WaitingTest : public LiveTest {
 protected:
  void emit_one() { EXPECT_EQ(emit(kWaitedForPayload), 0); }
};

// An epoll instance.
struct Epoll {
  int control(int operation, int of, std::uint32_t events = EPOLLIN) const {
    epoll_event event{};
    event.events = events;
    return ::epoll_ctl(fd.get(), operation, of, &event);
  }
  void add(int of, std::uint32_t events = EPOLLIN) const {
    EXPECT_EQ(control(EPOLL_CTL_ADD, of, events), 0);
  }
  // The flag is set when the helper returns (K32). epoll also needs the wakeup, which is an
  // interrupt of the writer's CPU. That CPU may not be the caller's, and the interrupt may be late
  // (K58).
  bool reports(int milliseconds = 10'000) const {
    epoll_event event{};
    return ::epoll_wait(fd.get(), &event, 1, milliseconds) == 1;
  }
  bool is_silent() const { return !reports(5); }
  os::Fd fd{::epoll_create1(EPOLL_CLOEXEC)};
};

bool polled(int fd) {
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&readable, 1, 0) == 1;
}
bool ppolled(int fd) {
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  const timespec none{};
  return ::ppoll(&readable, 1, &none, nullptr) == 1;
}
bool selected(int fd, bool for_writing = false) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  timeval none{};
  return ::select(fd + 1, for_writing ? nullptr : &set, for_writing ? &set : nullptr, nullptr,
                  &none) == 1;
}

// K26, W22
TEST_F(WaitingTest, PollOrSelectSeesEachRecordOnce) {
  auto buffer = open();
  for (const auto sees : {+[](int fd) { return polled(fd); }, +[](int fd) { return ppolled(fd); },
                          +[](int fd) { return selected(fd); }}) {
    EXPECT_FALSE(sees(buffer.fd()));
    emit_one();
    EXPECT_TRUE(sees(buffer.fd()));
    EXPECT_FALSE(sees(buffer.fd())) << "again while unread";
    emit_one();
    EXPECT_TRUE(sees(buffer.fd()));
  }
}

// K58
TEST_F(WaitingTest, WakeupOnOwnCpuComesBeforeSleepEnds) {
  constexpr int kOutputs = 3000;
  const OnCpu on_cpu{cpu()};
  auto buffer = open();
  const Epoll epoll;
  epoll.add(buffer.fd());
  int later = 0;
  for (int i = 0; i < kOutputs; ++i) {
    emit_one();
    if (!epoll.reports(0)) {
      ++later;
      await_wakeups();
      ASSERT_TRUE(epoll.reports(0)) << i;
    }
    ASSERT_FALSE(epoll.reports(0)) << "so that the next report needs a wakeup, " << i;
    ASSERT_EQ(drain(buffer).size(), 1U);
  }
  EXPECT_TRUE(kWakeupsComeLater || later == 0) << later;
  RecordProperty("after the helper had returned, of 3000", std::to_string(later));
}

// K26, W22
TEST_F(WaitingTest, SelectForWritingTakesTheFlagToo) {
  auto buffer = open();
  emit_one();
  EXPECT_FALSE(selected(buffer.fd(), /*for_writing=*/true));
  EXPECT_FALSE(polled(buffer.fd()));
}

// K27, K28, W22
TEST_F(WaitingTest, EpollMissesWhatWasThereBeforeItWasAdded) {
  for (const std::uint32_t how : {0U, std::uint32_t{EPOLLET}, std::uint32_t{EPOLLEXCLUSIVE}}) {
    auto buffer = open();
    emit_one();
    const Epoll epoll;
    epoll.add(buffer.fd(), EPOLLIN | how);
    EXPECT_TRUE(epoll.is_silent()) << how;
    emit_one();
    EXPECT_TRUE(epoll.reports()) << how;
    EXPECT_TRUE(epoll.is_silent()) << "again while unread, " << how;
  }
}

// K28, W22
TEST_F(WaitingTest, EpollModTakesTheFlag) {
  auto buffer = open();
  const Epoll epoll;
  epoll.add(buffer.fd());
  emit_one();
  EXPECT_EQ(epoll.control(EPOLL_CTL_MOD, buffer.fd()), 0);
  EXPECT_TRUE(epoll.is_silent());
}

// K28, W22
TEST_F(WaitingTest, EpollOneShotMissesRecordsBeforeRearming) {
  auto buffer = open();
  const Epoll epoll;
  emit_one();
  epoll.add(buffer.fd(), EPOLLIN | EPOLLONESHOT);
  EXPECT_TRUE(epoll.is_silent());
  emit_one();
  EXPECT_TRUE(epoll.reports());
  emit_one();
  EXPECT_TRUE(epoll.is_silent()) << "only the first";
  EXPECT_EQ(epoll.control(EPOLL_CTL_MOD, buffer.fd(), EPOLLIN | EPOLLONESHOT), 0);
  EXPECT_TRUE(epoll.is_silent());
}

// W22
TEST_F(WaitingTest, TheFirstOfTwoEpollsThatArePolledLaterReports) {
  auto buffer = open();
  const Epoll first;
  const Epoll second;
  first.add(buffer.fd());
  second.add(buffer.fd());
  emit_one();
  EXPECT_TRUE(first.reports());
  EXPECT_TRUE(second.is_silent());
}

// W22. Two waiters block, in two epoll instances or in one: counts how many wake.
TEST_F(WaitingTest, ARecordWakesOneOfTwoBlockedWaiters) {
  for (const bool same : {false, true}) {
    auto buffer = open();
    const Epoll first;
    const Epoll other;
    first.add(buffer.fd());
    if (!same) other.add(buffer.fd());
    int woken[2]{};
    std::thread blocked[]{
        std::thread{[&] { woken[0] = first.reports(300); }},
        std::thread{[&] { woken[1] = (same ? first : other).reports(300); }},
    };
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    emit_one();
    for (std::thread& each : blocked) each.join();
    EXPECT_EQ(woken[0] + woken[1], 1) << same;
  }
}

// K28, W22
TEST_F(WaitingTest, OuterEpollTakesReportsFromInner) {
  auto buffer = open();
  const Epoll inner;
  const Epoll outer;
  emit_one();
  inner.add(buffer.fd());
  outer.add(inner.fd.get());
  EXPECT_TRUE(outer.is_silent()) << "there before either was added";
  for (int i = 0; i < 3; ++i) {
    emit_one();
    EXPECT_TRUE(outer.reports()) << i;
    EXPECT_TRUE(inner.is_silent()) << i;
    EXPECT_TRUE(outer.is_silent()) << "again while unread, " << i;
  }
}

class UringTest : public WaitingTest {
 protected:
  void SetUp() override {
    WaitingTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    uring_ = Uring::open();
    if (!uring_) {
      GTEST_SKIP() << "no io_uring: " << std::generic_category().message(errno)
                   << " (sysctl kernel.io_uring_disabled)";
    }
  }
  std::optional<Uring> uring_;
};

// W22
TEST_F(UringTest, APollSeesWhatWasThereBefore) {
  for (const std::uint32_t how : {0U, std::uint32_t{IORING_POLL_ADD_MULTI}}) {
    auto uring = Uring::open();
    ASSERT_TRUE(uring.has_value());
    auto buffer = open();
    emit_one();
    uring->poll(buffer.fd(), how);
    const auto done = uring->completions(1);
    ASSERT_EQ(done.size(), 1U) << how;
    EXPECT_TRUE(done[0].result & POLLIN);
    EXPECT_EQ(done[0].more, how != 0);
    EXPECT_TRUE(uring->completions().empty()) << "again while unread";
  }
}

// W22
TEST_F(UringTest, AMultishotStaysArmed) {
  auto buffer = open();
  uring_->poll(buffer.fd(), IORING_POLL_ADD_MULTI);
  EXPECT_TRUE(uring_->completions().empty());
  for (int i = 0; i < 5; ++i) {
    emit_one();
    const auto done = uring_->completions(1);
    ASSERT_EQ(done.size(), 1U) << i;
    EXPECT_TRUE(done[0].more) << i;
  }
}

// W22
TEST_F(UringTest, ALevelTriggeredPollIsRefused) {
  auto buffer = open();
  for (const std::uint32_t how : {0U, std::uint32_t{IORING_POLL_ADD_MULTI}}) {
    uring_->poll(buffer.fd(), IORING_POLL_ADD_LEVEL | how);
    const auto done = uring_->completions(1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].result, -EINVAL);
  }
}

// W22
TEST_F(UringTest, AMultishotOnAnEpollReportsEachRecord) {
  auto buffer = open();
  const Epoll epoll;
  epoll.add(buffer.fd());
  uring_->poll(epoll.fd.get(), IORING_POLL_ADD_MULTI);
  for (int i = 0; i < 5; ++i) {
    emit_one();
    EXPECT_EQ(uring_->completions(1).size(), 1U) << i;
    epoll.reports(0);
  }
}

// W23: the io_uring is closed but still mapped, so the kernel keeps its poll.
TEST_F(UringTest, MultishotOfClosedRingTakesFlagFromOthers) {
  const OnCpu on_cpu{cpu()};  // so that a wakeup precedes the helper's return (K58)
  auto buffer = open();
  uring_->poll(buffer.fd(), IORING_POLL_ADD_MULTI);
  uring_.reset();
  for (int i = 0; i < 10; ++i) {
    emit_one();
    await_wakeups();
    EXPECT_FALSE(i % 2 == 0 ? polled(buffer.fd()) : selected(buffer.fd())) << i;
  }
}

// W22
TEST_F(WaitingTest, SignalForEachWakeupLeavesFlagSet) {
  auto buffer = open(8);
  const int signal = SIGRTMIN;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &set, &before), 0);
  ASSERT_EQ(::fcntl(buffer.fd(), F_SETOWN, ::getpid()), 0);
  ASSERT_EQ(::fcntl(buffer.fd(), F_SETSIG, signal), 0);
  ASSERT_EQ(::fcntl(buffer.fd(), F_SETFL, O_ASYNC), 0);
  for (int i = 0; i < 100; ++i) emit_one();
  int signals = 0;
  siginfo_t info{};
  for (timespec wait{.tv_sec = 0, .tv_nsec = 50'000'000};
       ::sigtimedwait(&set, &info, &wait) == signal; ++signals) {
    EXPECT_EQ(info.si_fd, buffer.fd());
    EXPECT_EQ(info.si_code, POLL_IN);
  }
  // Since v6.10 (kernel/events/ring_buffer.c: perf_output_wakeup() sets pending_kill); before, only
  // an event that overflows signals.
  EXPECT_EQ(signals, is_linux(6, 10) ? 100 : 0);
  EXPECT_TRUE(polled(buffer.fd()));
  ::fcntl(buffer.fd(), F_SETFL, 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace perfring::live
