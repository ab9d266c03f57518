// Waiter on the kernel's events: right in each row of W22, alone and inside another loop.

#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/live/live_testing.h"
#include "harness/live/uring.h"
#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_event_array.h"
#include "perfring/wait/waiter.h"

namespace perfring::live {
namespace {

using namespace std::chrono_literals;
using Clock = Waiter::Clock;

constexpr std::size_t kWaiterPayload = 52;

// lib has the suites named WaiterTest.
class LiveWaiterTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    buffer_.emplace(open(8));
    waiter_.emplace(must(Waiter::create(30s)));
  }

  void emit_one() { EXPECT_EQ(emit(kWaiterPayload), 0); }
  std::size_t drained() { return drain(*buffer_).size(); }
  Woken wait_shortly() { return waiter_->wait(Clock::now() + 2ms); }

  std::optional<PerfEventArrayBuffer> buffer_;
  std::optional<Waiter> waiter_;
};

TEST_F(LiveWaiterTest, ARecordFromBeforeIsRead) {
  emit_one();
  must(waiter_->add(buffer_->fd()));
  EXPECT_EQ(waiter_->wait(), Woken::Report) << "epoll alone would sleep";
  EXPECT_EQ(drained(), 1U);
  EXPECT_EQ(wait_shortly(), Woken::Timeout);
}

TEST_F(LiveWaiterTest, ARecordWrittenLaterIsReported) {
  must(waiter_->add(buffer_->fd()));
  waiter_->poll();
  for (int i = 0; i < 5; ++i) {
    emit_one();
    EXPECT_EQ(waiter_->wait(), Woken::Report);
    EXPECT_EQ(drained(), 1U);
    EXPECT_EQ(wait_shortly(), Woken::Timeout);
  }
}

// ppoll(2) clears the event's flag, so that the epoll_wait(2) after it finds nothing.
TEST_F(LiveWaiterTest, WithoutEpollPwait2EachRecordIsReported) {
  EXPECT_EQ(in_child([&] {
              refuse(SYS_epoll_pwait2, ENOSYS);
              buffer_.emplace(open(8));
              must(waiter_->add(buffer_->fd()));
              waiter_->poll();
              std::string output;
              for (int i = 0; i < 5; ++i) {
                emit(kWaiterPayload);
                output += waiter_->wait() == Woken::Report ? "report " : "no report ";
                output += std::to_string(drained()) + ", ";
                output += wait_shortly() == Woken::Timeout ? "" : "no timeout ";
              }
              return output;
            }),
            "report 1, report 1, report 1, report 1, report 1, ");
}

// K27
TEST_F(LiveWaiterTest, AnUnreadRecordIsReportedAgainAfterLookAgain) {
  must(waiter_->add(buffer_->fd()));
  waiter_->poll();
  emit_one();
  EXPECT_EQ(waiter_->wait(), Woken::Report);
  EXPECT_EQ(wait_shortly(), Woken::Timeout) << "the flag is gone";
  waiter_->look_again();
  EXPECT_EQ(waiter_->wait(), Woken::Report);
  EXPECT_EQ(drained(), 1U);
}

TEST_F(LiveWaiterTest, AFlagThatAnotherTookDelaysByTheLongestWait) {
  waiter_.emplace(must(Waiter::create(20ms)));
  must(waiter_->add(buffer_->fd()));
  waiter_->poll();
  emit_one();
  pollfd readable{.fd = buffer_->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 1);
  const auto start = Clock::now();
  EXPECT_EQ(waiter_->wait(), Woken::Timeout);
  EXPECT_GE(Clock::now() - start, 20ms);
  EXPECT_EQ(drained(), 1U);
}

TEST_F(LiveWaiterTest, RecordBelowWatermarkWaitsForTimeout) {
  buffer_.emplace(open(PerfBufferOptions{.page_count = 1, .wakeup_watermark = 1024}));
  waiter_.emplace(must(Waiter::create(20ms)));
  must(waiter_->add(buffer_->fd()));
  waiter_->poll();
  emit_one();
  EXPECT_EQ(waiter_->wait(), Woken::Timeout);
  EXPECT_EQ(drained(), 1U);
}

TEST_F(LiveWaiterTest, EveryRingsRecordsAreReadAfterAnyReport) {
  const auto other = other_cpu();
  if (!other) GTEST_SKIP() << "one CPU";
  auto second = must(array().open(*other, 8));
  must(waiter_->add(buffer_->fd()));
  must(waiter_->add(second.fd()));
  waiter_->poll();
  emit_one();
  EXPECT_EQ(emitter().emit(*other, kWaiterPayload), 0);
  EXPECT_EQ(waiter_->wait(), Woken::Report);
  EXPECT_EQ(drained(), 1U);
  EXPECT_EQ(drain(second).size(), 1U);
}

// A step of another loop after a report.
#define EXPECT_REPORT_DRAINS_ONE()           \
  do {                                       \
    EXPECT_NE(waiter_->poll(), Woken::Stop); \
    EXPECT_EQ(drained(), 1U);                \
  } while (false)

TEST_F(LiveWaiterTest, OuterEpollReportsEachRecord) {
  must(waiter_->add(buffer_->fd()));
  emit_one();
  const os::Fd outer{::epoll_create1(EPOLL_CLOEXEC)};
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(outer.get(), EPOLL_CTL_ADD, waiter_->fd(), &event), 0);
  ASSERT_LE(waiter_->next_deadline(), Clock::now()) << "so that the loop asks at once";
  EXPECT_REPORT_DRAINS_ONE();
  for (int i = 0; i < 10; ++i) {
    emit_one();
    ASSERT_EQ(::epoll_wait(outer.get(), &event, 1, 10'000), 1) << i;
    EXPECT_REPORT_DRAINS_ONE();
    // Not true for the first record, which no report preceded: its own report may follow its drain,
    // because the CPU wakes by an irq_work (perf_output_wakeup(), kernel/events/ring_buffer.c,
    // v6.18).
    EXPECT_EQ(::epoll_wait(outer.get(), &event, 1, 0), 0) << i;
  }
  waiter_->stop();
  EXPECT_EQ(::epoll_wait(outer.get(), &event, 1, 0), 1);
  EXPECT_EQ(waiter_->poll(), Woken::Stop);
}

// Asio does this: it watches edge-triggered, and anew for each wait.
TEST_F(LiveWaiterTest, AnEpollThatWatchesAnewDoesSoBeforeTheRead) {
  must(waiter_->add(buffer_->fd()));
  const os::Fd outer{::epoll_create1(EPOLL_CLOEXEC)};
  epoll_event event{};
  const auto watch = [&](int operation) {
    event.events = std::uint32_t{EPOLLIN} | EPOLLET;
    ASSERT_EQ(::epoll_ctl(outer.get(), operation, waiter_->fd(), &event), 0);
  };
  watch(EPOLL_CTL_ADD);
  waiter_->poll();
  for (int i = 0; i < 5; ++i) {
    watch(EPOLL_CTL_MOD);
    emit_one();  // is read
    EXPECT_REPORT_DRAINS_ONE();
    while (::epoll_wait(outer.get(), &event, 1, 1) != 0) waiter_->poll();
    emit_one();  // is reported
    ASSERT_EQ(::epoll_wait(outer.get(), &event, 1, 10'000), 1) << i;
    watch(EPOLL_CTL_MOD);
    EXPECT_REPORT_DRAINS_ONE();
  }
  // Watching anew after the read clears the flag of a record that arrived in between.
  while (::epoll_wait(outer.get(), &event, 1, 1) != 0) waiter_->poll();
  emit_one();
  std::this_thread::sleep_for(2ms);  // until the kernel has woken
  watch(EPOLL_CTL_MOD);
  EXPECT_EQ(::epoll_wait(outer.get(), &event, 1, 50), 0) << "W22: MOD takes the flag too";
  EXPECT_EQ(drained(), 1U);
}

TEST_F(LiveWaiterTest, PollReportsEachRecord) {
  must(waiter_->add(buffer_->fd()));
  waiter_->poll();
  for (int i = 0; i < 10; ++i) {
    emit_one();
    pollfd readable{.fd = waiter_->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&readable, 1, 10'000), 1) << i;
    EXPECT_REPORT_DRAINS_ONE();
  }
}

TEST_F(LiveWaiterTest, IoUringReportsEachRecord) {
  auto uring = Uring::open();
  if (!uring) GTEST_SKIP() << "no io_uring";
  must(waiter_->add(buffer_->fd()));
  waiter_->poll();
  uring->poll(waiter_->fd(), IORING_POLL_ADD_MULTI);
  for (int i = 0; i < 5; ++i) {
    emit_one();
    ASSERT_EQ(uring->completions(1).size(), 1U) << i;
    EXPECT_REPORT_DRAINS_ONE();
  }
}

// K33: an event without a ring reports POLLHUP, again and again.
TEST_F(LiveWaiterTest, AnEventThatHungUpIsReportedOnce) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  const os::Fd event = must(os::perf_event_open(attr, cpu()));
  for (int i = 0; i < 3; ++i) {
    pollfd polled{.fd = event.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, 0), 1) << i;
    EXPECT_EQ(polled.revents, POLLHUP) << i;
  }
  must(waiter_->add(event.get()));
  waiter_->poll();
  EXPECT_EQ(wait_shortly(), Woken::Timeout);
}

// When fd() becomes readable to poll (K26, K30, K31).

class WakeupTest : public LiveTest {
 protected:
  static constexpr std::size_t kPayload = 52;  // 64 bytes a record

  static bool polled(const PerfEventArrayBuffer& buffer) {
    pollfd polled{.fd = buffer.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
  }

  // Returns after which of `count` records, from 1 on, the buffer was readable to poll.
  std::vector<std::size_t> wakeups(PerfEventArrayBuffer& buffer, std::size_t count) {
    std::vector<std::size_t> woken;
    for (std::size_t i = 1; i <= count; ++i) {
      EXPECT_EQ(emit(kPayload), 0) << i;
      if (polled(buffer)) woken.push_back(i);
    }
    return woken;
  }
};

// K32
TEST_F(WakeupTest, EachRecordWakesAWaiter) {
  auto buffer = open();
  EXPECT_FALSE(polled(buffer));
  EXPECT_EQ(wakeups(buffer, 5), (std::vector<std::size_t>{1, 2, 3, 4, 5}));
}

// K26
TEST_F(WakeupTest, AnyPollTakesTheOneFlag) {
  auto buffer = open();
  ASSERT_EQ(emit(kPayload), 0);
  EXPECT_TRUE(polled(buffer));
  EXPECT_FALSE(polled(buffer));
  EXPECT_TRUE(buffer.readable());
  ASSERT_EQ(emit(kPayload), 0);
  drain(buffer);
  EXPECT_TRUE(polled(buffer));  // stale
}

// K30: the wakeup needs strictly more bytes than the watermark since the last one.
TEST_F(WakeupTest, PassingTheWatermarkWakesAWaiter) {
  {
    auto buffer = open(PerfBufferOptions{.page_count = 1, .wakeup_watermark = 64});
    EXPECT_EQ(wakeups(buffer, 5), (std::vector<std::size_t>{2, 3, 4, 5}));
  }
  {
    auto buffer = open(PerfBufferOptions{.page_count = 1, .wakeup_watermark = 256});
    EXPECT_EQ(wakeups(buffer, 20), (std::vector<std::size_t>{5, 9, 13, 17}));
  }
}

// K30: a watermark above the ring's size counts as the ring's size, which one lap does not pass.
TEST_F(WakeupTest, AWatermarkAboveTheRingsSizeWakesOnceALap) {
  auto buffer = open(PerfBufferOptions{.page_count = 1, .wakeup_watermark = 1u << 30});
  const std::size_t lap = os::page_size() / 64;
  EXPECT_TRUE(wakeups(buffer, lap - 1).empty());
  drain(buffer);
  EXPECT_EQ(wakeups(buffer, 2), (std::vector<std::size_t>{2}));
}

// K31
TEST_F(WakeupTest, AFullRingWakesNobody) {
  auto buffer = open(1);
  while (emit(kPayload) == 0) {
  }
  EXPECT_TRUE(polled(buffer));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(emit(kPayload), -ENOSPC);
  EXPECT_FALSE(polled(buffer));
  drain(buffer);
  EXPECT_EQ(wakeups(buffer, 2), (std::vector<std::size_t>{1, 2}));
}

// K41, W25
TEST_F(WakeupTest, APauseWakesNobody) {
  auto buffer = open();
  must(os::perf_event_pause_output(buffer.fd(), true));
  EXPECT_FALSE(polled(buffer));
  EXPECT_EQ(emit(kPayload), -ENOSPC);
  EXPECT_FALSE(polled(buffer));
  must(os::perf_event_pause_output(buffer.fd(), false));
  EXPECT_FALSE(polled(buffer));
  EXPECT_EQ(wakeups(buffer, 1), (std::vector<std::size_t>{1}));
}

}  // namespace
}  // namespace perfring::live
