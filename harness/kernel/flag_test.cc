// Who takes the ring's flag, and what else a poll says: K26, K29, K32 to K34.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "harness/kernel/eventpoll.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/kernel/testing.h"

namespace perfring::kernel {
namespace {

// K26, K32
TEST(PerfPollTest, ARingHasOneFlagAndAnyPollTakesIt) {
  TestRing ring;
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(perf_poll(*ring.event), 0u);  // with data unread
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(ring.output(4), 0);
  ring.consume();
  EXPECT_EQ(perf_poll(*ring.event), kReadable);  // stale, and one for two
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
  EXPECT_EQ(do_poll({&in, 1}), 0);  // it is gone
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
TEST(PerfPollTest, WhereEventsShareARingTheFirstPolledTakesTheFlag) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*second), kReadable);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// The two may have but one processor; where they have more, they are to meet, and not take turns.
void yield_sometimes(unsigned looks_in_vain) {
  if (looks_in_vain % 2000 == 1999) std::this_thread::yield();
}

// The swap is one access: a wakeup beside a poll is seen by this poll or by the next.
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
      for (unsigned look = 1; ring.rb().poll.load() != 0 && !done; ++look) yield_sometimes(look);
    }
    given = ~0U;
  }};
  // Between two looks it has at most one to miss; none is given before the last is taken.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  for (unsigned look = 1; given != ~0U && std::chrono::steady_clock::now() < patience; ++look) {
    if (perf_poll(*ring.event) != 0) {
      ++taken;
      look = 0;
    }
    yield_sometimes(look);
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
  EXPECT_EQ(do_poll({&fd, 1}), 1);  // whether asked for or not
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

}  // namespace
}  // namespace perfring::kernel
