// OverwritableRing on a stand-in for the kernel: the calls that it makes, and their order.

#include "perfring/snapshot/overwritable_ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OverwritableRingTest : public ::testing::Test {
 protected:
  OverwritableRingTest() : map_fd_{::open("/dev/null", O_RDONLY | O_CLOEXEC)} {}
  ~OverwritableRingTest() override { ::close(map_fd_); }

  auto open(std::size_t page_count = 1) {
    return OverwritableRing::open(PerfEventArray::from_fd(map_fd_).value(), 2, page_count);
  }
  // Writes a sample of 4 bytes, before the samples that are there.
  void write(const OverwritableRing& ring) {
    const std::size_t page = testing::page_size();
    head_ -= 16;
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, 16};
    const std::uint32_t words[]{4, 0xcafebabe};
    const auto at = page + static_cast<std::size_t>(head_ % page);
    EXPECT_EQ(::pwrite(ring.fd(), &header, 8, static_cast<off_t>(at)), 8);
    EXPECT_EQ(::pwrite(ring.fd(), words, 8, static_cast<off_t>(at + 8)), 8);
    EXPECT_EQ(::pwrite(ring.fd(), &head_, 8, offsetof(perf_event_mmap_page, data_head)), 8);
  }
  std::string of(const char* call, int fd, const char* rest = "") {
    return call + std::string{" "} + std::to_string(fd) + rest;
  }

  FakeKernel kernel_;
  int map_fd_;
  std::uint64_t head_ = 0;
  int events_ = 0;
  // Returns a callback that counts events.
  auto count() {
    return [this](const PerfEvent&) { ++events_; };
  }
};

TEST_F(OverwritableRingTest, WritesBackwardIntoReadOnlyMapping) {
  {
    const auto ring = open();
    ASSERT_TRUE(ring.has_value());
    EXPECT_EQ(kernel_.event.write_backward, 1U);
    EXPECT_EQ(kernel_.event.watermark, 1U) << "no record wakes anybody";
    EXPECT_EQ(kernel_.event.wakeup_watermark, testing::page_size()) << "the ring's size";
    EXPECT_EQ(kernel_.cpu, 2);
    EXPECT_EQ(kernel_.updated, std::pair(2U, static_cast<unsigned>(ring->fd())));
    std::ifstream maps{"/proc/self/maps"};
    std::string found;
    for (std::string line; std::getline(maps, line);) {
      if (line.find("perfring_fake_event") != line.npos) found = line;
    }
    EXPECT_THAT(found, HasSubstr(" r--s "));
    kernel_.calls.clear();
  }
  EXPECT_EQ(FakeKernel::mappings(), 0);
  EXPECT_THAT(kernel_.calls, ElementsAre(HasSubstr("disable")));
}

TEST_F(OverwritableRingTest, SnapshotPausesRingWhileReading) {
  auto ring = open().value();
  write(ring);
  write(ring);
  const int fd = ring.fd();
  kernel_.calls.clear();
  const auto order = [&](const PerfEvent&) { kernel_.calls.push_back("event"); };
  EXPECT_EQ(ring.snapshot(Settle::Quickly, order)->events, 2U);
  EXPECT_THAT(kernel_.calls, ElementsAre(of("pause", fd), "event", "event", of("resume", fd)));
  kernel_.calls.clear();
  write(ring);
  EXPECT_EQ(ring.snapshot(Settle::Completely, order)->events, 1U);
  EXPECT_THAT(kernel_.calls, ElementsAre(of("pause", fd), "create 2", "create 12", "update",
                                         "event", of("resume", fd)));
  kernel_.calls.clear();
  write(ring);
  EXPECT_THROW(static_cast<void>(ring.snapshot(Settle::Quickly, [](const PerfEvent&) { throw 7; })),
               int);
  EXPECT_THAT(kernel_.calls, ElementsAre(of("pause", fd), of("resume", fd)));
}

// Returns how long the wait is for a head that moves in every microsecond of `writer`.
std::chrono::microseconds waited_for(std::chrono::microseconds writer) {
  std::chrono::microseconds now = 1h;
  const auto end = now + writer;
  internal::wait_until_head_stands([&] { return std::min(now, end); },
                                   [&] { return std::exchange(now, now + 1us); });
  return now - 1h;
}

TEST(OverwritableRingSettleTest, WaitsLimitedTimeForWriterToSettle) {
  EXPECT_EQ(waited_for(0us), 21us) << "and the last look at the clock";
  EXPECT_EQ(waited_for(500us), 520us);
  EXPECT_EQ(waited_for(9900us), 9920us);
  EXPECT_EQ(waited_for(1h), 10'001us);
}

TEST_F(OverwritableRingTest, ACopyPausesNobody) {
  auto ring = open().value();
  write(ring);
  kernel_.calls.clear();
  EXPECT_EQ(ring.copy(48, count())->events, 1U);
  EXPECT_EQ(events_, 1);
  EXPECT_THAT(kernel_.calls, IsEmpty());
}

TEST_F(OverwritableRingTest, FailedOpenOrSnapshotLeavesNothingBehind) {
  EXPECT_THAT(open(3).error().message(), HasSubstr("invalid page count 3"));
  EXPECT_THAT(open(0).error().message(), HasSubstr("invalid page count 0"));
  kernel_.open_errno = ENODEV;
  EXPECT_EQ(open().error().io_error(), std::errc::no_such_device);
  kernel_.open_errno = 0;
  kernel_.update_errno = E2BIG;
  EXPECT_EQ(open().error().io_error(), std::errc::argument_list_too_long);
  kernel_.update_errno = 0;
  EXPECT_EQ(FakeKernel::mappings(), 0);
  auto ring = open().value();
  write(ring);
  kernel_.pause_errno = ENOTTY;
  EXPECT_EQ(ring.snapshot(Settle::Quickly, count()).error().message(),
            "`ioctl(PERF_EVENT_IOC_PAUSE_OUTPUT)` of the ring failed: Inappropriate ioctl for "
            "device");
  EXPECT_EQ(events_, 0);
}

TEST_F(OverwritableRingTest, ARingThatStaysPausedIsAnError) {
  auto ring = open().value();
  write(ring);
  const auto then_fails = [&](const PerfEvent&) { kernel_.pause_errno = EBADF; };
  EXPECT_EQ(ring.snapshot(Settle::Quickly, then_fails).error().message(),
            "`ioctl(PERF_EVENT_IOC_PAUSE_OUTPUT)` of the ring, which stays paused, failed: Bad "
            "file descriptor");
}

TEST_F(OverwritableRingTest, AMovedFromObjectHasNoRing) {
  auto first = open().value();
  write(first);
  OverwritableRing second{std::move(first)};
  EXPECT_EQ(first.fd(), -1);  // NOLINT: moved from, on purpose
  kernel_.pause_errno = EBADF;
  EXPECT_FALSE(first.snapshot(Settle::Quickly, count()).has_value());
  EXPECT_FALSE(first.copy(0, count()).has_value());
  kernel_.pause_errno = 0;
  EXPECT_EQ(second.snapshot(Settle::Quickly, count())->events, 1U);
}

TEST_F(OverwritableRingTest, ANullPointerToAFunctionEndsTheProgram) {
  void (*const none)(const PerfEvent&) = nullptr;
  // The forked child makes each call on a new, empty ring: using an inherited ring ends it as well.
  const auto call = [&](auto function) {
    auto ring = open().value();
    static_cast<void>(function(ring));
  };
  call([&](auto& ring) { return ring.snapshot(Settle::Quickly, count()); });
  EXPECT_DEATH(call([&](auto& ring) { return ring.snapshot(Settle::Quickly, none); }), "");
  EXPECT_DEATH(call([&](auto& ring) { return ring.copy(0, none); }), "");
  EXPECT_DEATH(call([&](auto& ring) {
                 const auto taken = std::move(ring);
                 return ring.copy(0, none);  // NOLINT: moved from, on purpose
               }),
               "");
  kernel_.pause_errno = EBADF;
  EXPECT_DEATH(call([&](auto& ring) {
                 const auto taken = std::move(ring);
                 return ring.snapshot(Settle::Quickly, none);  // NOLINT: moved from, on purpose
               }),
               "");
  std::vector<std::byte> memory(2 * testing::page_size());
  auto snapshots = Snapshots<>::over(memory, testing::page_size()).value();
  EXPECT_DEATH(snapshots.read(none), "");
  std::vector<std::byte> to(snapshots.size());
  EXPECT_DEATH(snapshots.copy(to, 0, none), "");
}

TEST_F(OverwritableRingTest, FromWithinACallbackTheNextSnapshotIsTaken) {
  auto ring = open().value();
  write(ring);
  write(ring);
  int nested = 0;
  const auto again = [&](const PerfEvent&) {
    if (++nested == 1) write(ring);
    const auto within = ring.snapshot(Settle::Quickly, count());
    EXPECT_EQ(within->events, nested == 1 ? 1U : 0U);
  };
  const auto outer = ring.snapshot(Settle::Quickly, again);
  EXPECT_EQ(outer->events, 2U);
  EXPECT_TRUE(outer->moved);
  EXPECT_EQ(events_, 1);
  write(ring);
  write(ring);
  EXPECT_EQ(ring.copy(0, [&](const PerfEvent&) { ring.copy(0, count()); })->events, 2U);
  EXPECT_EQ(events_, 1);
}

TEST_F(OverwritableRingTest, ASnapshotInAForkedChildEndsTheProgram) {
#ifdef NDEBUG
  GTEST_SKIP() << "without assertions it is a SIGSEGV, on a kernel's mapping";
#else
  auto ring = open().value();
  write(ring);
  EXPECT_DEATH(static_cast<void>(ring.snapshot(Settle::Quickly, count())), "no mapping");
  EXPECT_DEATH(static_cast<void>(ring.copy(0, count())), "no mapping");
  EXPECT_EQ(ring.snapshot(Settle::Quickly, count())->events, 1U);
#endif
}

TEST_F(OverwritableRingTest, AMarginOfAnySizeIsTaken) {
  auto ring = open().value();
  write(ring);
  const auto none = ring.copy(~std::size_t{0}, count());
  EXPECT_EQ(none->events, 0U);
  EXPECT_EQ(ring.copy(0, count())->events, 0U) << "it was left out, and is counted by none";
  write(ring);
  EXPECT_EQ(ring.snapshot(Settle{99}, count())->events, 1U);
}

// A moved-from barrier has no maps, like one that could not create any.
TEST_F(OverwritableRingTest, ABarrierThatWasMovedFromTakesTheOtherWay) {
  auto first = WriterBarrier::create();
  const WriterBarrier second{std::move(first)};
  kernel_.calls.clear();
  EXPECT_TRUE(second.wait().has_value());
  EXPECT_TRUE(first.wait().has_value());  // NOLINT: moved from, on purpose
  EXPECT_THAT(kernel_.calls, ElementsAre("update", "membarrier"));
  kernel_.barrier_errno = EINVAL;
  EXPECT_EQ(first.wait().error().io_error(), std::errc::invalid_argument);
}

}  // namespace
}  // namespace perfring
