// When fd() becomes readable to poll (K26, K30, K31).

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "harness/live/testing.h"

namespace perfring::live {
namespace {

class WakeupTest : public LiveTest {
 protected:
  static constexpr std::size_t kPayload = 52;  // 64 bytes a record

  static bool polled(const PerfEventArrayBuffer& buffer) {
    pollfd polled{.fd = buffer.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
  }

  // After which of `count` records the buffer was readable to poll, the first being 1.
  std::vector<std::size_t> wakeups(PerfEventArrayBuffer& buffer, std::size_t count) {
    std::vector<std::size_t> woken;
    for (std::size_t i = 1; i <= count; ++i) {
      EXPECT_EQ(emit(kPayload), 0) << i;
      if (polled(buffer)) woken.push_back(i);
    }
    return woken;
  }
};

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

// K30: strictly more than the watermark since the last time.
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

// K30: beyond the ring's size the watermark is the ring's size, which one lap does not pass.
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
}

}  // namespace
}  // namespace perfring::live
