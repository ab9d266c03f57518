// One poll takes the ring's flag, and the other results of a poll: K26, K29, K32 to K34.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "harness/kernel/eventpoll.h"
#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"

namespace perfring::kernel {
namespace {

// K26, K32
TEST(PerfPollTest, AnyPollTakesRingsOnlyFlag) {
  TestRing ring;
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(perf_poll(*ring.event), 0u);  // with data unread
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(ring.output(4), 0);
  ring.consume();
  EXPECT_EQ(perf_poll(*ring.event), kReadable);  // stale, and one flag for two records
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// K26
TEST(PerfPollTest, APollForOutTakesTheFlagToo) {
  TestRing ring;
  ASSERT_EQ(ring.output(4), 0);
  pollfd out{ring.event.get(), EPOLLOUT, 0x7f};
  EXPECT_EQ(do_poll({&out, 1}), 0);
  EXPECT_EQ(out.revents, 0);
  pollfd in{ring.event.get(), EPOLLIN, 0x7f};
  EXPECT_EQ(do_poll({&in, 1}), 0);  // the flag is gone
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(do_poll({&in, 1}), 1);
  EXPECT_EQ(in.revents, EPOLLIN);
  ASSERT_EQ(ring.output(4), 0);
  pollfd twice[] = {{ring.event.get(), EPOLLIN | EPOLLRDNORM, 0},
                    {ring.event.get(), EPOLLIN | EPOLLRDNORM, 0}};
  EXPECT_EQ(do_poll(twice), 1);
  EXPECT_EQ(twice[0].revents, static_cast<short>(kReadable));
  EXPECT_EQ(twice[1].revents, 0);
}

// K29
TEST(PerfPollTest, FirstPolledEventOfSharedRingTakesFlag) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*second), kReadable);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// With one processor the threads must take turns; with more they should overlap, so yield seldom.
void yield_sometimes(unsigned failed_polls) {
  if (failed_polls % 2000 == 1999) std::this_thread::yield();
}

// The swap is a single access: the same poll or the next one reports a flag set concurrently.
TEST(PerfPollTest, AFlagSetBesideAPollIsNotLost) {
  TestRing ring;
  std::atomic<unsigned> given{0};
  std::atomic<bool> done{false};
  unsigned taken = 0;
  std::thread writer{[&] {
    for (unsigned i = 1; i <= 20'000 && !done; ++i) {
      perf_output_handle handle;
      handle.event = ring.event.get();
      handle.rb = &ring.rb();
      perf_output_wakeup(ring.cpu, handle);
      given = i;
      for (unsigned polls = 1; ring.rb().poll.load() != 0 && !done; ++polls) yield_sometimes(polls);
    }
    given = ~0U;
  }};
  // Each flag is taken before the next is set, so the reader can miss at most the last.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  for (unsigned polls = 1; given != ~0U && std::chrono::steady_clock::now() < patience; ++polls) {
    if (perf_poll(*ring.event) != 0) {
      ++taken;
      polls = 0;
    }
    yield_sometimes(polls);
  }
  done = true;
  writer.join();
  if (perf_poll(*ring.event) != 0) ++taken;
  EXPECT_EQ(taken, 20'000u);
}

// K33
TEST(PerfPollTest, AnEventWithoutARingHangsUp) {
  const perf_file unmapped = must(perf_event_open(bpf_output(), 3, 8));
  EXPECT_EQ(perf_poll(*unmapped), unsigned{EPOLLHUP});
  EXPECT_EQ(perf_poll(*unmapped), unsigned{EPOLLHUP});
  pollfd fd{unmapped.get(), 0, 0};
  EXPECT_EQ(do_poll({&fd, 1}), 1);  // reported even if not requested
  EXPECT_EQ(fd.revents, EPOLLHUP);
  TestRing ring;
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(perf_poll(*ring.event), unsigned{EPOLLHUP});
}

// K33
TEST(PerfPollTest, ADisabledEventDoesNotHangUp) {
  TestRing ring;
  ASSERT_EQ(ring.output(4), 0);
  perf_event_disable(*ring.event);
  EXPECT_EQ(ring.output(4), -EOPNOTSUPP);
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  perf_event_enable(*ring.event);
  EXPECT_EQ(ring.output(4), 0);
}

// K34
TEST(PerfPollTest, ACpuThatWentOfflineDoesNotHangUp) {
  TestRing ring;
  perf_event_exit_cpu(*ring.event);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  EXPECT_EQ(ring.output(4), -EOPNOTSUPP);
  perf_event_enable(*ring.event);
  EXPECT_EQ(ring.output(4), -EOPNOTSUPP);  // it stays dead
}

// A consumer that really sleeps, and an epoll instance in another one (K28).

class EventfdWaiterTest : public testing::Test {
 protected:
  ~EventfdWaiterTest() override { ::close(fd); }
  // Returns the number of wakeups since the last call.
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

TEST_F(EventfdWaiterTest, OutputSignalsWaitersOfEveryEventOfRing) {
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

// K28: the outer instance reports, and has taken the inner instance's flag.
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
  EXPECT_EQ(perf_poll(*one.event), kReadable);  // another poll takes it
  ASSERT_EQ(outer.add(inner, EPOLLIN, 3), 0);
  EXPECT_EQ(two.rb().poll, 0u);  // the poll in ADD has taken the flag of `two`
  EXPECT_EQ(wait(outer), kNothing);
  ASSERT_EQ(one.output(4), 0);
  EXPECT_EQ(wait(outer), report(3, EPOLLIN));
  EXPECT_EQ(wait(inner), kNothing);
}

// The inner instance's item is still listed when it is woken again.
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

// An inner instance that keeps reporting HUP stays ready.
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

// K28: an outer instance that requests anything else does not poll the inner one, and the flag
// stays.
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

// The outer instance is edge-triggered. It learns of the hangup once; MOD does not report it again,
// because the inner instance's item is still listed.
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
