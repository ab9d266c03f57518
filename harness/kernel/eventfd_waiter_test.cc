// A consumer that really sleeps: EventfdWaiter.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "harness/kernel/eventpoll.h"
#include "harness/kernel/testing.h"

namespace perfring::kernel {
namespace {

class EventfdWaiterTest : public testing::Test {
 protected:
  ~EventfdWaiterTest() override { ::close(fd); }
  // How often it was woken since the last call.
  __u64 woken() const {
    __u64 count = 0;
    if (::read(fd, &count, sizeof(count)) != sizeof(count)) {
      EXPECT_EQ(errno, EAGAIN);
      return 0;
    }
    return count;
  }
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST_F(EventfdWaiterTest, EachWakeupOfAWaiterSignalsTheEventfd) {
  RingSetup setup;
  setup.attr.wakeup_events = 2;
  TestRing ring{setup};
  std::optional<EventfdWaiter> waiter;
  waiter.emplace(ring.event, fd);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(woken(), 0u);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(woken(), 1u);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(woken(), 2u);
  waiter.reset();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(woken(), 0u);
}

TEST_F(EventfdWaiterTest, AnOutputSignalsTheWaitersOfEveryEventOfTheRing) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  const EventfdWaiter waiter{second, fd};
  const EventfdWaiter other{second, fd};
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(woken(), 2u);
}

TEST_F(EventfdWaiterTest, TheLastUnmappingSignalsTheEventfd) {
  TestRing ring;
  const EventfdWaiter waiter{ring.event, fd};
  EXPECT_EQ(woken(), 0u);
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(woken(), 1u);
}

}  // namespace
}  // namespace perfring::kernel
