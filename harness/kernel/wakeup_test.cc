// When the ring's flag is set, and who takes it: K26, K29 to K33.

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

using Records = std::vector<std::size_t>;

RingSetup events(__u32 wakeup_events, Word word = Word::k64) {
  RingSetup setup{.word = word};
  setup.attr.wakeup_events = wakeup_events;
  return setup;
}

RingSetup watermark(__u32 wakeup_watermark, Word word = Word::k64) {
  RingSetup setup{.word = word};
  setup.attr.watermark = 1;
  setup.attr.wakeup_watermark = wakeup_watermark;
  return setup;
}

// After which of `count` records the flag was set, the first being 1. Each is consumed at once,
// unless the tail stays where it is.
Records wakeups(const RingSetup& setup, std::size_t count, std::size_t payload = 52,
                bool consume = true) {
  TestRing ring{setup};
  Records woken;
  for (std::size_t i = 1; i <= count; ++i) {
    EXPECT_EQ(ring.output(payload), 0) << i;
    if (consume) ring.consume();
    if (perf_poll(*ring.event) != 0) woken.push_back(i);
  }
  return woken;
}

// K26, K32
TEST(Flag, IsOneAndAnyPollTakesIt) {
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
TEST(Poll, ReportsWhatIsAskedForAndTakesTheFlagAnyway) {
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

// K30: figures of the table, which do not depend on the tail.
TEST(Wakeup, ComesAfterSoManyEvents) {
  EXPECT_EQ(wakeups(events(1), 4, 4), (Records{1, 2, 3, 4}));
  EXPECT_EQ(wakeups(events(3), 9, 4), (Records{3, 6, 9}));
  EXPECT_EQ(wakeups(events(0), 20, 4), Records{});
}

// K30: N = 4096, 64-byte records.
TEST(Wakeup, ComesOfHalfTheRingWhateverTheEvents) {
  EXPECT_EQ(wakeups(events(1000), 100), (Records{33, 65, 97}));
  EXPECT_EQ(wakeups(events(0), 100), (Records{33, 65, 97}));
  EXPECT_EQ(wakeups(watermark(0), 100), (Records{33, 65, 97}));
  EXPECT_EQ(wakeups(events(1000), 63, 52, false), (Records{33}));
}

// K30
TEST(Wakeup, ComesOnceTheWatermarkIsPassed) {
  EXPECT_EQ(wakeups(watermark(64), 5), (Records{2, 3, 4, 5}));
  EXPECT_EQ(wakeups(watermark(63), 3), (Records{1, 2, 3}));
  EXPECT_EQ(wakeups(watermark(256), 20), (Records{5, 9, 13, 17}));
  EXPECT_EQ(wakeups(watermark(4096), 130), (Records{65, 129}));
  EXPECT_EQ(wakeups(watermark(5000), 130), (Records{65, 129}));  // clamped
}

// K30, K40: a ring that is written backward counts the bytes all the same.
TEST(Wakeup, ComesOfWhatIsWrittenBackward) {
  for (const Word word : {Word::k32, Word::k64}) {
    RingSetup setup = watermark(256, word);
    setup.attr.write_backward = 1;
    EXPECT_EQ(wakeups(setup, 20), (Records{5, 9, 13, 17}));
  }
}

// A negative watermark of a 32-bit kernel is an unsigned long where it is compared: 2 GiB.
TEST(Wakeup, ComesOfTwoGibibytesAtLast) {
  TestRing ring{watermark(0x8000'0000, Word::k32)};
  ring.rb().wakeup = 0x8000'0000;
  ASSERT_EQ(ring.output(52), 0);  // 0x40 - 0x8000'0000, in 32 bits, is 0x8000'0040
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
}

// K30: one record may pass it several times, and counts once.
TEST(Wakeup, ChasesTheHeadByOneWatermarkARecord) {
  TestRing ring{watermark(64)};
  ASSERT_EQ(ring.output(500), 0);  // 512: the watermark is 7 behind
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(ring.rb().wakeup, 64u);
}

// K30
TEST(Wakeup, TakesItsNumbersForSignedWhereTheKernelDoes) {
  for (const Word word : {Word::k32, Word::k64}) {
    EXPECT_EQ(wakeups(events(0x8000'0000, word), 3, 4), (Records{1, 2, 3}));
    EXPECT_EQ(wakeups(events(0xffff'ffff, word), 3, 4), (Records{1, 2, 3}));
    EXPECT_EQ(wakeups(events(0x7fff'ffff, word), 3, 4), Records{});
  }
  EXPECT_EQ(wakeups(watermark(0x8000'0000), 130), (Records{65, 129}));
  EXPECT_EQ(wakeups(watermark(0x8000'0000, Word::k32), 130), Records{});
  EXPECT_EQ(wakeups(watermark(0x7fff'ffff, Word::k32), 130), (Records{65, 129}));
}

// K30, K47: across 2^32, where head and W are of 32 bits.
TEST(Wakeup, GoesOnAcrossTheEndOfTheWord) {
  for (const RingSetup& setup : {watermark(256, Word::k32), watermark(256)}) {
    TestRing ring{setup};
    start_at(ring.rb(), 0xffff'ffff'ffff'fe00);
    Records woken;
    for (std::size_t i = 1; i <= 20; ++i) {
      ASSERT_EQ(ring.output(52), 0);
      ring.consume();
      if (perf_poll(*ring.event) != 0) woken.push_back(i);
    }
    EXPECT_EQ(woken, (Records{5, 9, 13, 17}));
    EXPECT_EQ(ring.rb().wakeup, 0x200u);  // 4 * 256 on
  }
  TestRing counted{events(1, Word::k32)};
  counted.rb().wakeup = 0xffff'ffff;
  ASSERT_EQ(counted.output(4), 0);
  EXPECT_EQ(counted.rb().wakeup, 0u);  // not 2^32
  EXPECT_EQ(perf_poll(*counted.event), kReadable);
}

// The event count is an unsigned long, from which an int is taken: here it grows by 2^31.
TEST(Wakeup, CountsEventsInTheKernelsWord) {
  for (const Word word : {Word::k32, Word::k64}) {
    TestRing ring{events(0x8000'0000, word)};
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.rb().events, 0x8000'0001u);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.rb().events, word == Word::k32 ? 2u : 0x1'0000'0002u);
  }
}

// So a count that passes 2^32 is 0 in both, as an int.
TEST(Wakeup, CountsEventsPastTheEndOfTheWord) {
  for (const Word word : {Word::k32, Word::k64}) {
    TestRing ring{events(1, word)};
    ring.rb().events = 0xffff'ffff;
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(perf_poll(*ring.event), 0u);
    EXPECT_EQ(ring.rb().events, word == Word::k32 ? 0u : 0x1'0000'0000u);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(perf_poll(*ring.event), kReadable);
  }
}

// The default is half the ring, however large that is, and the most is all of it.
TEST(Wakeup, WatermarkIsOfTheWholeRing) {
  constexpr std::size_t kMany = 1024;
  EXPECT_EQ((TestRing{{.pages = kMany}}.rb().watermark), 2 << 20);
  RingSetup setup = watermark(3 << 20);
  setup.pages = kMany;
  EXPECT_EQ(TestRing{setup}.rb().watermark, 3 << 20);
  setup.attr.wakeup_watermark = 5 << 20;
  EXPECT_EQ(TestRing{setup}.rb().watermark, 4 << 20);
}

// K30: watermark counts bytes, and then wakeup_events is none.
TEST(Wakeup, CountsEventsOrBytes) {
  EXPECT_EQ(wakeups(watermark(1), 3, 4), (Records{1, 2, 3}));
  EXPECT_EQ(wakeups(watermark(4000), 3, 4), Records{});
  EXPECT_EQ(wakeups(events(4000), 3, 4), Records{});
}

// K31
TEST(Wakeup, DoesNotComeOfWhatIsRefused) {
  TestRing ring{events(2)};
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(ring.output(5000), -ENOSPC);
  ASSERT_EQ(ring.output(5000), -ENOSPC);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ASSERT_EQ(ring.output(4), 0);  // LOST and sample: one event
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// K31
TEST(Wakeup, NeverComesOfAFullRing) {
  TestRing ring;
  while (ring.output(52) == 0) {
  }
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ring.output(52), -ENOSPC);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// K29
TEST(Sharing, HasOneFlagOfWhichTheFirstPolledTakesIt) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3));
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*second), kReadable);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// The events are counted by the ring; how many are enough, or that none are, the writing one says.
TEST(Sharing, WakesAsTheWritingEventSays) {
  TestRing ring{events(1000)};
  const perf_file second = must(perf_event_open(bpf_output(), 3));  // wakeup_events = 1
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(ring.file.update_elem(1, second), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.output(4, 0), 0);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ASSERT_EQ(ring.output(4, 1), 0);
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(ring.rb().events, 3u);
}

// The swap is one access: a wakeup beside a poll is seen by this poll or by the next.
TEST(Flag, IsNotLostBetweenAPollAndAWakeup) {
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
      while (ring.rb().poll.load() != 0 && !done) {
      }
    }
    given = ~0U;
  }};
  // Between two looks it has at most one to miss; none is given before the last is taken.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (given != ~0U && std::chrono::steady_clock::now() < patience) {
    if (perf_poll(*ring.event) != 0) ++taken;
  }
  done = true;
  writer.join();
  if (perf_poll(*ring.event) != 0) ++taken;
  EXPECT_EQ(taken, 20'000u);
}

// K33
TEST(Hangup, IsTheLackOfARing) {
  const perf_file unmapped = must(perf_event_open(bpf_output(), 3));
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
TEST(Hangup, IsNotADisabledEvent) {
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
TEST(Hangup, IsNotACpuThatWentOffline) {
  TestRing ring;
  perf_event_exit_cpu(*ring.event);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  EXPECT_EQ(ring.output(4), -EOPNOTSUPP);
  perf_event_enable(*ring.event);
  EXPECT_EQ(ring.output(4), -EOPNOTSUPP);  // it stays dead
}

}  // namespace
}  // namespace perfring::kernel
