// When the kernel sets the ring's flag: K30, K31.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/perf_event.h"

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

// Returns the records, counted from 1, after which the flag was set. With `consume`, each record is
// consumed at once; otherwise the tail does not move.
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

// K30: the table's numbers, which do not depend on the tail.
TEST(PerfOutputWakeupTest, EveryWakeupEventsRecordsWakeOnce) {
  EXPECT_EQ(wakeups(events(1), 4, 4), (Records{1, 2, 3, 4}));
  EXPECT_EQ(wakeups(events(3), 9, 4), (Records{3, 6, 9}));
  EXPECT_EQ(wakeups(events(0), 20, 4), Records{});
}

// K30: N = 4096, 64-byte records.
TEST(PerfOutputWakeupTest, WithoutAWatermarkHalfTheRingWakes) {
  EXPECT_EQ(wakeups(events(1000), 100), (Records{33, 65, 97}));
  EXPECT_EQ(wakeups(events(0), 100), (Records{33, 65, 97}));
  EXPECT_EQ(wakeups(watermark(0), 100), (Records{33, 65, 97}));
  EXPECT_EQ(wakeups(events(1000), 63, 52, false), (Records{33}));
}

// K30
TEST(PerfOutputWakeupTest, PassingTheWatermarkWakesOnce) {
  EXPECT_EQ(wakeups(watermark(64), 5), (Records{2, 3, 4, 5}));
  EXPECT_EQ(wakeups(watermark(63), 3), (Records{1, 2, 3}));
  EXPECT_EQ(wakeups(watermark(256), 20), (Records{5, 9, 13, 17}));
  EXPECT_EQ(wakeups(watermark(4096), 130), (Records{65, 129}));
  EXPECT_EQ(wakeups(watermark(5000), 130), (Records{65, 129}));  // clamped
}

// K30, K40: a ring that is written backward also counts bytes.
TEST(PerfOutputWakeupTest, ABackwardRingWakes) {
  for (const Word word : {Word::k32, Word::k64}) {
    RingSetup setup = watermark(256, word);
    setup.attr.write_backward = 1;
    EXPECT_EQ(wakeups(setup, 20), (Records{5, 9, 13, 17}));
  }
}

// A 32-bit kernel compares a negative watermark as an unsigned long: 2 GiB.
TEST(PerfOutputWakeupTest, AWatermarkOf2GiBIsPassedInAKernelOf32Bits) {
  TestRing ring{watermark(0x8000'0000, Word::k32)};
  ring.rb().wakeup = 0x8000'0000;
  ASSERT_EQ(ring.output(52), 0);  // 0x40 - 0x8000'0000, in 32 bits, is 0x8000'0040
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
}

// K30: a record that passes the watermark several times counts once.
TEST(PerfOutputWakeupTest, EachRecordMovesTheWakeupByOneWatermark) {
  TestRing ring{watermark(64)};
  ASSERT_EQ(ring.output(500), 0);  // 512 bytes: `wakeup` stays 7 watermarks behind the head
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(ring.rb().wakeup, 64u);
}

// K30
TEST(PerfOutputWakeupTest, SettingsAreSignedWhereTheKernelsAre) {
  for (const Word word : {Word::k32, Word::k64}) {
    EXPECT_EQ(wakeups(events(0x8000'0000, word), 3, 4), (Records{1, 2, 3}));
    EXPECT_EQ(wakeups(events(0xffff'ffff, word), 3, 4), (Records{1, 2, 3}));
    EXPECT_EQ(wakeups(events(0x7fff'ffff, word), 3, 4), Records{});
  }
  EXPECT_EQ(wakeups(watermark(0x8000'0000), 130), (Records{65, 129}));
  EXPECT_EQ(wakeups(watermark(0x8000'0000, Word::k32), 130), Records{});
  EXPECT_EQ(wakeups(watermark(0x7fff'ffff, Word::k32), 130), (Records{65, 129}));
}

// K30, K47: across 2^32, where head and W have 32 bits.
TEST(PerfOutputWakeupTest, ContinuesAcrossTheEndOfTheWord) {
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
    EXPECT_EQ(ring.rb().wakeup, 0x200u);  // advanced by 4 * 256
  }
  TestRing counted{events(1, Word::k32)};
  counted.rb().wakeup = 0xffff'ffff;
  ASSERT_EQ(counted.output(4), 0);
  EXPECT_EQ(counted.rb().wakeup, 0u);  // not 2^32
  EXPECT_EQ(perf_poll(*counted.event), kReadable);
}

// The event count is an unsigned long that the kernel reads as an int. Here it grows by 2^31.
TEST(PerfOutputWakeupTest, CountsEventsInTheKernelsWord) {
  for (const Word word : {Word::k32, Word::k64}) {
    TestRing ring{events(0x8000'0000, word)};
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.rb().events, 0x8000'0001u);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.rb().events, word == Word::k32 ? 2u : 0x1'0000'0002u);
  }
}

// A count that passes 2^32 is therefore 0 as an int for both words.
TEST(PerfOutputWakeupTest, CountsEventsPastTheEndOfTheWord) {
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

// The default is half the ring, however large the ring; the maximum is the whole ring.
TEST(PerfOutputWakeupTest, AWatermarkCountsBytesOfTheWholeRing) {
  constexpr std::size_t kMany = 1024;
  EXPECT_EQ((TestRing{{.pages = kMany}}.rb().watermark), 2 << 20);
  RingSetup setup = watermark(3 << 20);
  setup.pages = kMany;
  EXPECT_EQ(TestRing{setup}.rb().watermark, 3 << 20);
  setup.attr.wakeup_watermark = 5 << 20;
  EXPECT_EQ(TestRing{setup}.rb().watermark, 4 << 20);
}

// K30: a watermark counts bytes and replaces wakeup_events.
TEST(PerfOutputWakeupTest, CountsEventsOrBytes) {
  EXPECT_EQ(wakeups(watermark(1), 3, 4), (Records{1, 2, 3}));
  EXPECT_EQ(wakeups(watermark(4000), 3, 4), Records{});
  EXPECT_EQ(wakeups(events(4000), 3, 4), Records{});
}

// K31
TEST(PerfOutputWakeupTest, ARefusedOutputDoesNotWake) {
  TestRing ring{events(2)};
  ASSERT_EQ(ring.output(4), 0);
  ASSERT_EQ(ring.output(5000), -ENOSPC);
  ASSERT_EQ(ring.output(5000), -ENOSPC);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ASSERT_EQ(ring.output(4), 0);  // LOST and sample count as one event
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// K31
TEST(PerfOutputWakeupTest, AFullRingNeverWakes) {
  TestRing ring;
  while (ring.output(52) == 0) {
  }
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ring.output(52), -ENOSPC);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
}

// The ring counts the events. The wakeup setting of the event that writes applies.
TEST(PerfOutputWakeupTest, ASharedRingWakesAsTheWritingEventAsks) {
  TestRing ring{events(1000)};
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));  // wakeup_events = 1
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(ring.file.update_elem(1, second), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.output(4, 0), 0);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ASSERT_EQ(ring.output(4, 1), 0);
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
  EXPECT_EQ(ring.rb().events, 3u);
}

struct CountingWaiter final : wait_queue_entry {
  void wake() override { ++woken; }
  unsigned woken = 0;
};

// core.c, ring_buffer_wakeup(): wakes every event on rb->event_list, for any number of events that
// share the ring and any writer among them.
TEST(PerfOutputWakeupTest, ASharedRingWakesTheWaitersOfEveryEvent) {
  for (std::size_t count = 1; count <= 5; ++count) {
    std::vector<CountingWaiter> waiters(count);  // woken once more when the ring goes
    TestRing ring;
    std::vector<perf_file> events{ring.event};
    for (std::size_t i = 1; i < count; ++i) {
      events.push_back(must(perf_event_open(bpf_output(), 3, 7 + i)));
      ASSERT_EQ(perf_event_set_output(*events[i], ring.event.get()), 0);
      ASSERT_EQ(ring.file.update_elem(static_cast<__u32>(i), events[i]), 0);
    }
    for (std::size_t i = 0; i < count; ++i) events[i]->waitq.push_back(&waiters[i]);
    for (std::size_t writer = 0; writer < count; ++writer) {
      ASSERT_EQ(ring.output(4, writer), 0);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(waiters[i].woken, writer + 1)
            << "event " << i << " of " << count << ", written by " << writer;
      }
    }
  }
}

}  // namespace
}  // namespace perfring::kernel
