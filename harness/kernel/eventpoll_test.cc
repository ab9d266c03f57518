// epoll: K27, K28, K29, K33.

#include "harness/kernel/eventpoll.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "harness/kernel/kernel_testing.h"

namespace perfring::kernel {
namespace {

// K27
TEST(EventpollTest, ReportsOnceThoughLevelTriggered) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 11), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ring.output(4), 0);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(wait(epoll), report(11));
    EXPECT_EQ(wait(epoll), kNothing);  // with data unread
    EXPECT_EQ(wait(epoll), kNothing);
  }
}

// The next wait polls a level-triggered item again, woken or not. It does not poll an
// edge-triggered item again.
TEST(EventpollTest, LooksAgainIfLevelTriggered) {
  for (const bool edge : {false, true}) {
    TestRing ring;
    eventpoll epoll;
    ASSERT_EQ(epoll.add(*ring.event, kReadable | (edge ? EPOLLET : 0u), 11), 0);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(wait(epoll), report(11));
    ring.rb().poll = kReadable;  // without waking anybody
    EXPECT_EQ(wait(epoll), edge ? kNothing : report(11));
    ring.rb().poll = 0;
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(wait(epoll), report(11));
  }
}

TEST(EventpollTest, WaitReturnsRequestedEventsOnly) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, EPOLLIN, 11), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(11, EPOLLIN));
  ASSERT_EQ(epoll.modify(ring.event.get(), EPOLLOUT, 12), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  EXPECT_EQ(perf_poll(*ring.event), 0u);  // the wait took the flag nevertheless
}

// K28
TEST(EventpollTest, AddClearsTheFlag) {
  TestRing ring;
  ASSERT_EQ(ring.output(4), 0);
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 11), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// K28
TEST(EventpollTest, ModifyClearsTheFlag) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 11), 0);
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(epoll.modify(ring.event.get(), kReadable, 12), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(12));
}

// K28
TEST(EventpollTest, AddToASecondEpollTakesTheFlagFromTheFirst) {
  TestRing ring;
  eventpoll first, second;
  ASSERT_EQ(first.add(*ring.event, kReadable, 1), 0);
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(second.add(*ring.event, kReadable, 2), 0);
  EXPECT_EQ(wait(first), kNothing);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(second), report(2));
  EXPECT_EQ(wait(first), kNothing);
}

// K28
TEST(EventpollTest, RearmingOneshotClearsFlag) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable | EPOLLONESHOT, 11), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(11));
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  EXPECT_EQ(ring.rb().poll, kReadable);  // the wait did not even poll it
  ASSERT_EQ(epoll.modify(ring.event.get(), kReadable | EPOLLONESHOT, 11), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(11));
}

// The mode of an item does not affect the others in the list.
TEST(EventpollTest, OneshotIsNoLongerAskedAfterItsReport) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable | EPOLLONESHOT, 11), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(11));
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(wait(epoll), kNothing);  // HUP is also not reported until the item is armed again
  ASSERT_EQ(epoll.modify(ring.event.get(), EPOLLONESHOT, 11), 0);
  EXPECT_EQ(wait(epoll), report(11, EPOLLHUP));
}

// K33: reported even if not requested, and repeated.
TEST(EventpollTest, ReportsHangup) {
  std::optional<TestRing<>> ring{std::in_place};
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring->event, 0, 11), 0);
  EXPECT_EQ(wait(epoll), kNothing);
  {
    const perf_mapping unmaps = std::move(ring->mapping);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(wait(epoll), report(11, EPOLLHUP));
}

// K33: also for an item that no longer requests any event.
TEST(EventpollTest, ReportsHangupOfAnItemThatWasModified) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 11), 0);
  ASSERT_EQ(epoll.modify(ring.event.get(), 0, 12), 0);
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(wait(epoll), report(12, EPOLLHUP));
  // MOD does not put the item on the list a second time.
  ASSERT_EQ(epoll.modify(ring.event.get(), kReadable, 13), 0);
  EXPECT_EQ(wait(epoll), report(13, EPOLLHUP));
}

TEST(EventpollTest, ReportsAnItemOnceHoweverOftenItWasWoken) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 11), 0);
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(ring.output(4), 0);
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(wait(epoll), report(11, EPOLLHUP));
}

// K33: the descriptor is closed, but the mapping and the map's entry keep the event.
TEST(EventpollTest, OutlivesTheDescriptor) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 11), 0);
  ring.event.reset();
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(11));
}

// K29: the kernel wakes the youngest of the events that share a ring first, and epoll polls it
// first.
TEST(EventpollTest, ReportsTheYoungestOfEventsThatShareARing) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 1), 0);
  ASSERT_EQ(epoll.add(*second, kReadable, 2), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll), report(2));
  EXPECT_EQ(wait(epoll), kNothing);
}

// K29, K33: when a ring goes, its owner hangs up first, then the other events from the youngest on.
TEST(EventpollTest, ReportsHangupOfTheRingsOwnerFirst) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));
  const perf_file third = must(perf_event_open(bpf_output(), 3, 9));
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable, 1), 0);
  ASSERT_EQ(perf_event_set_output(*third, ring.event.get()), 0);
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(epoll.add(*third, kReadable, 3), 0);
  ASSERT_EQ(epoll.add(*second, kReadable, 2), 0);
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(wait(epoll), (Reports{{1, EPOLLHUP}, {2, EPOLLHUP}, {3, EPOLLHUP}}));
}

TEST(EventpollTest, ReportsItemsInOrderTheyBecameReady) {
  std::array<TestRing<>, 3> rings;
  eventpoll epoll;
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(epoll.add(*rings[i].event, EPOLLIN, i), 0);
  for (const std::size_t i : {2u, 0u, 1u, 0u}) ASSERT_EQ(rings[i].output(4), 0);
  EXPECT_EQ(wait(epoll), (Reports{{2, EPOLLIN}, {0, EPOLLIN}, {1, EPOLLIN}}));
  EXPECT_EQ(wait(epoll), kNothing);
}

// Items for which there was no room come first in the next wait.
TEST(EventpollTest, ASmallBufferGetsTheRestAtTheNextWait) {
  std::array<TestRing<>, 3> rings;
  eventpoll epoll;
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(epoll.add(*rings[i].event, EPOLLIN, i), 0);
  for (auto& ring : rings) ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(wait(epoll, 1), report(0, EPOLLIN));
  ASSERT_EQ(rings[0].output(4), 0);
  EXPECT_EQ(wait(epoll, 2), (Reports{{1, EPOLLIN}, {2, EPOLLIN}}));
  EXPECT_EQ(wait(epoll), report(0, EPOLLIN));
}

TEST(EventpollTest, TwoWakeupsPutAnItemOnTheListOnce) {
  TestRing ring;
  eventpoll epoll;
  ASSERT_EQ(epoll.add(*ring.event, kReadable | EPOLLET, 1), 0);
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(epoll.remove(ring.event.get()), 0);
  EXPECT_EQ(wait(epoll), kNothing);
}

TEST(EventpollTest, ATargetAddedTwiceIsEEXISTAndAMissingOneENOENT) {
  TestRing ring;
  eventpoll inner, epoll;
  EXPECT_EQ(epoll.modify(ring.event.get(), kReadable, 1), -ENOENT);
  EXPECT_EQ(epoll.remove(ring.event.get()), -ENOENT);
  EXPECT_EQ(epoll.add(*ring.event, kReadable, 1), 0);
  EXPECT_EQ(epoll.add(*ring.event, kReadable, 1), -EEXIST);
  EXPECT_EQ(epoll.add(inner, kReadable, 1), 0);
  EXPECT_EQ(epoll.add(inner, kReadable, 1), -EEXIST);
  EXPECT_EQ(ring.event->waitq.size(), 1u);
  EXPECT_EQ(epoll.remove(ring.event.get()), 0);
  EXPECT_EQ(epoll.remove(ring.event.get()), -ENOENT);
  EXPECT_TRUE(ring.event->waitq.empty());
  EXPECT_EQ(epoll.add(*ring.event, kReadable, 1), 0);
}

TEST(EventpollTest, ADestroyedEpollLeavesItsTargetsQueues) {
  TestRing ring;
  {
    eventpoll epoll;
    ASSERT_EQ(epoll.add(*ring.event, kReadable, 1), 0);
    ASSERT_EQ(ring.event->waitq.size(), 1u);
  }
  EXPECT_TRUE(ring.event->waitq.empty());
  EXPECT_EQ(ring.output(4), 0);
}

}  // namespace
}  // namespace perfring::kernel
