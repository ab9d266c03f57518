// A consumer that really sleeps, and an epoll instance in another one (K28).

#include <gtest/gtest.h>

#include <sys/eventfd.h>
#include <unistd.h>
#include <cerrno>
#include <optional>
#include <utility>

#include "harness/kernel/eventpoll.h"
#include "harness/kernel/reports.h"
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

// K28: the outer reports, and has taken the flag from the inner.
TEST(NestedEventpollTest, ReportsOnlyTheOuter) {
  TestRing ring;
  eventpoll inner, outer;  // a target outlives its membership
  ASSERT_EQ(inner.add(*ring.event, kReadable, 1), 0);
  ASSERT_EQ(outer.add(inner, kReadable, 2), 0);
  EXPECT_EQ(wait(outer), kNothing);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(wait(outer), report(2));
    EXPECT_EQ(wait(inner), kNothing);
    EXPECT_EQ(wait(outer), kNothing);
  }
}

TEST(NestedEventpollTest, APollTakesFlagsUpToTheFirstThatIsSet) {
  TestRing one, two;
  eventpoll inner, outer;  // a target outlives its membership
  ASSERT_EQ(inner.add(*one.event, kReadable, 1), 0);
  ASSERT_EQ(inner.add(*two.event, kReadable, 2), 0);
  ASSERT_EQ(one.output(4), 0);
  ASSERT_EQ(two.output(4), 0);
  EXPECT_EQ(perf_poll(*one.event), kReadable);  // somebody else takes it
  ASSERT_EQ(outer.add(inner, EPOLLIN, 3), 0);
  EXPECT_EQ(two.rb().poll, 0u);  // the look of ADD has taken the second's
  EXPECT_EQ(wait(outer), kNothing);
  ASSERT_EQ(one.output(4), 0);
  EXPECT_EQ(wait(outer), report(3, EPOLLIN));
  EXPECT_EQ(wait(inner), kNothing);
}

// The inner's item is still listed when it is woken again.
TEST(NestedEventpollTest, EachWakeupOfTheInnerWakesTheOuter) {
  TestRing ring;
  eventpoll inner, outer;  // a target outlives its membership
  ASSERT_EQ(inner.add(*ring.event, kReadable, 1), 0);
  ASSERT_EQ(outer.add(inner, kReadable | EPOLLET, 2), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(wait(outer), report(2));
    EXPECT_EQ(wait(outer), kNothing);
  }
}

// An inner one that reports HUP again and again is ready again and again.
TEST(NestedEventpollTest, EveryWaitReturnsTheHangup) {
  const perf_file unmapped = must(perf_event_open(bpf_output(), 3, 8));
  eventpoll inner, outer;  // a target outlives its membership
  ASSERT_EQ(inner.add(*unmapped, 0, 1), 0);
  ASSERT_EQ(outer.add(inner, kReadable, 2), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(wait(outer), report(2));
    EXPECT_EQ(wait(inner), report(1, EPOLLHUP));
  }
  ASSERT_EQ(outer.remove(&inner), 0);
  EXPECT_EQ(wait(outer), kNothing);
}

// K28: it is not even looked at by an outer one that asks for anything else, and the flag stays.
TEST(NestedEventpollTest, WakesOnlyWaitersThatAskForIn) {
  for (const __u32 events : {0u, unsigned{EPOLLOUT}, unsigned{EPOLLRDNORM}}) {
    TestRing ring;
    eventpoll inner, outer;  // a target outlives its membership
    ASSERT_EQ(inner.add(*ring.event, kReadable, 1), 0);
    ASSERT_EQ(outer.add(inner, events, 2), 0);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(wait(outer), kNothing) << events;
    EXPECT_EQ(perf_poll(*ring.event), kReadable) << events;
  }
}

// The outer one, which is edge-triggered, hears of the hangup once, and not again by MOD: the inner
// one's item is still listed.
TEST(NestedEventpollTest, ModifyingAListedItemDoesNotWakeTheOuter) {
  TestRing ring;
  eventpoll inner, outer;  // a target outlives its membership
  ASSERT_EQ(inner.add(*ring.event, kReadable, 1), 0);
  ASSERT_EQ(outer.add(inner, EPOLLIN | EPOLLET, 2), 0);
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(wait(outer), report(2, EPOLLIN));
  ASSERT_EQ(inner.modify(ring.event.get(), kReadable, 1), 0);
  EXPECT_EQ(wait(outer), kNothing);
  EXPECT_EQ(wait(inner), report(1, EPOLLHUP));
}

}  // namespace
}  // namespace perfring::kernel
