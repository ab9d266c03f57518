// Interrupts between a read of the ring's state and the action that follows from it: wakeups,
// losses and counts. (nesting_test.cc has the bytes that are published.)

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/kernel/testing.h"

namespace perfring::kernel {
namespace {

// A ring whose outputs may be interrupted.
struct Interrupted : TestRing<NestingCpu> {
  explicit Interrupted(const RingSetup& setup = {}) : TestRing{setup} {
    cpu.barrier = [] {};
    cpu.published = [](__u64) {};
  }

  // An output that is interrupted at this step by `count` others, the first of which is interrupted
  // at that step of its own by `count` others. Whether both have that many steps.
  bool interrupt(unsigned at, unsigned count, unsigned next = kNever) {
    cpu.steps = {};
    cpu.at = {at, next, kNever};
    cpu.interrupt = [=, this](std::size_t level) {
      if (level == kLevels) return;
      if (level == 1) counted_only = rb().nest == 1 && cpu.reservations.empty();
      for (unsigned i = 0; i < count; ++i) EXPECT_EQ(output(52), 0);
    };
    EXPECT_EQ(output(52), 0);
    const bool inner = next == kNever || cpu.steps[1] > next;
    cpu.interrupt = nullptr;
    const bool outer = cpu.steps[0] > at;
    cpu.at = {kNever, kNever, kNever};
    return outer && inner;
  }

  // The one that was interrupted had raised rb->nest, and reserved nothing.
  bool counted_only = false;

  // How many records it takes until the next wakeup.
  unsigned until_woken() {
    perf_poll(*event);
    for (unsigned count = 1; count < 1000; ++count) {
      EXPECT_EQ(output(52), 0);
      consume();
      if (perf_poll(*event) != 0) return count;
    }
    return 0;
  }
};

RingSetup wakeup_events(__u32 events, Word word) {
  RingSetup setup{.pages = 4, .word = word};
  setup.attr.wakeup_events = events;
  return setup;
}

// A sample of 52 bytes: lost, nest, wakeup, head, data_tail, head again, the watermark; header,
// size and payload; events; nest, head, the barrier, data_head, nest, head again, and `wakeup`
// twice, once to compare it. Other outputs make so many more accesses, or fewer.
TEST(InterruptedOutputTest, AnInterruptCanComeBeforeEachAccess) {
  constexpr unsigned kOutput = 7 + 3 + 1 + 8;
  constexpr unsigned kWakes = 3;  // events, wakeup, poll
  const auto steps = [](Interrupted& ring, int expected = 0) {
    ring.cpu.steps = {};
    EXPECT_EQ(ring.output(52), expected);
    return ring.cpu.steps;
  };
  Interrupted quiet{wakeup_events(2, Word::k64)};
  EXPECT_EQ(steps(quiet)[0], kOutput);
  EXPECT_EQ(steps(quiet)[0], kOutput + kWakes);

  Interrupted full;
  ASSERT_EQ(full.output(4040), 0);
  EXPECT_EQ(steps(full, -ENOSPC)[0], 5u + 1 + 8) << "the loss is counted, and nothing is written";
  full.consume();
  EXPECT_EQ(steps(full)[0], kOutput + kWakes + 2 + 1 + 1)
      << "a LOST, the ring's end in the sample, and wakeup, as half a ring was written";
  perf_event_pause_output(*full.event, true);
  EXPECT_EQ(steps(full, -ENOSPC)[0], 1u);

  RingSetup watermark;
  watermark.attr.watermark = 1;
  watermark.attr.wakeup_watermark = 1;
  Interrupted watched{watermark};
  EXPECT_EQ(steps(watched)[0], kOutput - 1 + 2) << "wakeup and poll, but not events";

  // Before data_head is written: the interrupt leaves that to the one it interrupted, which then
  // publishes twice.
  Interrupted twice{wakeup_events(3, Word::k64)};
  twice.cpu.at[0] = kOutput - 5;
  twice.cpu.interrupt = [&](std::size_t) { EXPECT_EQ(twice.output(52), 0); };
  const auto nested = steps(twice);
  EXPECT_EQ(nested[0], kOutput + 6);
  EXPECT_EQ(nested[1], kOutput - 7);
}

// An output that is interrupted between the count and the subtraction subtracts again what the
// interrupt has subtracted already: the count is below 0, and the next wakeup further off than
// wakeup_events.
TEST(InterruptedOutputTest, AnInterruptStretchesTheNextInterval) {
  for (const Word word : {Word::k32, Word::k64}) {
    struct {
      unsigned interrupts;
      std::set<unsigned> intervals;
    } const rows[] = {
        // After the third of three records, 3 - 1 for each that comes after it, or 3 + 3 - 1.
        {1, {2, 5}},
        {2, {1, 4}},
        {3, {3, 6}},
    };
    for (const auto& [interrupts, expected] : rows) {
      std::set<unsigned> found;
      for (unsigned at = 0;; ++at) {
        Interrupted ring{wakeup_events(3, word)};
        for (int i = 0; i < 2; ++i) ASSERT_EQ(ring.output(52), 0);
        if (!ring.interrupt(at, interrupts)) break;
        ring.consume();
        found.insert(ring.until_woken());
      }
      EXPECT_EQ(found, expected) << interrupts;
    }
  }
}

// Three deep, and with as many interrupts as do the most: one interval of 3 * wakeup_events.
TEST(InterruptedOutputTest, AnIntervalIsStretchedByThreeTimesAtTheMost) {
  unsigned longest = 0;
  for (unsigned outer = 0, more = 1; more != 0; ++outer) {
    more = 0;
    for (unsigned middle = 0;; ++middle) {
      bool whole = false;
      for (unsigned count = 1; count <= 3; ++count) {
        Interrupted each{wakeup_events(3, Word::k64)};
        for (int i = 0; i < 2; ++i) ASSERT_EQ(each.output(52), 0);
        whole = each.interrupt(outer, count, middle);
        each.consume();
        longest = std::max(longest, each.until_woken());
      }
      if (!whole) break;
      more = 1;
    }
  }
  EXPECT_EQ(longest, 9u);
}

// wakeup_events = 1 is not stretched: PerfBuffer's consumer is woken for each record.
TEST(InterruptedOutputTest, AnIntervalOfOneRecordIsNotStretched) {
  for (unsigned at = 0;; ++at) {
    Interrupted ring{wakeup_events(1, Word::k64)};
    if (!ring.interrupt(at, 3)) break;
    ring.consume();
    EXPECT_EQ(ring.until_woken(), 1u) << at;
    EXPECT_EQ(ring.rb().events, 0u) << at;
  }
}

// Between the look at the watermark and the addition: two add, and rb->wakeup is past the head. As
// the difference is an unsigned long, every record wakes from then on.
TEST(InterruptedOutputTest, AnInterruptTakesTheWatermarkPastTheHead) {
  for (const Word word : {Word::k32, Word::k64}) {
    std::set<__u64> found;
    for (unsigned at = 0;; ++at) {
      RingSetup setup{.word = word};
      setup.attr.watermark = 1;
      setup.attr.wakeup_watermark = 256;
      Interrupted ring{setup};
      for (int i = 0; i < 4; ++i) ASSERT_EQ(ring.output(52), 0);
      ASSERT_EQ(perf_poll(*ring.event), 0u);
      if (!ring.interrupt(at, 1)) break;
      found.insert(ring.rb().wakeup);
      ring.consume();
      const bool past = ring.rb().wakeup > ring.rb().head;
      for (int i = 0; i < 100 && past; ++i) ASSERT_EQ(ring.until_woken(), 1u);
      // Unless a record passes it: now there is more unread than the watermark, and no waiter is
      // woken.
      if (!past) continue;
      const __u64 gap = ring.rb().wakeup - ring.rb().head;
      ring.rb().wakeup = ring.rb().head + 256;
      ASSERT_GT(gap, 256u);
      ASSERT_EQ(ring.output(500), 0);
      EXPECT_EQ(perf_poll(*ring.event), 0u);
    }
    EXPECT_EQ(found, (std::set<__u64>{256, 512}));
  }
}

// A loss is unreported; an output that is interrupted by another reports it itself, or finds it
// reported, according to whether the interrupt came before it read rb->lost, before it reserved, or
// before it wrote its LOST.
TEST(InterruptedOutputTest, AnInterruptReportsTheLossesOrDoesNot) {
  using Counts = std::vector<std::uint64_t>;
  std::vector<Counts> found;
  for (unsigned at = 0;; ++at) {
    Interrupted ring;
    perf_event_pause_output(*ring.event, true);
    ASSERT_EQ(ring.output(4), -ENOSPC);
    perf_event_pause_output(*ring.event, false);
    if (!ring.interrupt(at, 1)) break;
    Counts reported;
    for (const auto& reservation : ring.cpu.reservations) {
      if (reservation.lost) reported.push_back(*reservation.lost);
    }
    // It looks before it raises rb->nest.
    if (ring.counted_only) {
      EXPECT_EQ(reported, (Counts{1, 0})) << at;
    }
    if (found.empty() || found.back() != reported) found.push_back(reported);
    EXPECT_EQ(ring.rb().lost, 0u);
  }
  EXPECT_EQ(found, (std::vector<Counts>{{1}, {1, 0}, {0, 1}, {1}}));
}

// Between the failed space check and the count of the loss, the consumer makes room: an output that
// interrupts there is accepted, and reports no loss.
TEST(InterruptedOutputTest, AnInterruptIsWrittenBeforeTheLossIsCounted) {
  std::set<__u64> samples;
  for (unsigned at = 0;; ++at) {
    Interrupted ring;
    ASSERT_EQ(ring.output(4000), 0);
    ring.cpu.steps = {};
    ring.cpu.at = {at, kNever, kNever};
    ring.cpu.interrupt = [&](std::size_t) {
      ring.consume();
      ASSERT_EQ(ring.output(52), 0);
    };
    if (ring.output(200) == 0) continue;  // room in time
    if (ring.cpu.steps[0] <= at) break;
    ASSERT_EQ(ring.cpu.reservations.size(), 2u);
    samples.insert(ring.cpu.reservations[1].size);
    EXPECT_EQ(ring.rb().lost + ring.cpu.reservations[1].lost.value_or(0), 1u);
  }
  EXPECT_EQ(samples, (std::set<__u64>{64, 64 + 24}));
}

// A paused ring drops the output of an interrupt, and counts it once: so much is reported, or still
// to be reported, wherever it came.
TEST(InterruptedOutputTest, AnInterruptThatFindsTheRingPausedIsCountedOnce) {
  for (unsigned at = 0;; ++at) {
    Interrupted ring;
    ring.cpu.at = {at, kNever, kNever};
    ring.cpu.interrupt = [&](std::size_t) {
      perf_event_pause_output(*ring.event, true);
      EXPECT_EQ(ring.output(52), -ENOSPC);
      perf_event_pause_output(*ring.event, false);
    };
    ASSERT_EQ(ring.output(52), 0);
    if (ring.cpu.steps[0] <= at) break;
    const auto& reservations = ring.cpu.reservations;
    ASSERT_EQ(reservations.size(), 1u);
    EXPECT_EQ(ring.rb().lost + reservations[0].lost.value_or(0), 1u) << at;
    EXPECT_EQ(ring.event->lost_samples, 1u) << at;
    EXPECT_EQ(ring.cpu.refused, 1u) << at;
  }
}

// Interrupts that nest leave the wakeup that they have earned to the outermost output, which
// compares rb->wakeup with what it was when it began. Only between its rb->nest++ and that look is
// the wakeup forgotten: perf_output_get_handle().
TEST(InterruptedOutputTest, TheOutermostPassesOnTheWakeupThatItsInterruptsHaveEarned) {
  for (const Word word : {Word::k32, Word::k64}) {
    for (unsigned at = 0;; ++at) {
      Interrupted ring{wakeup_events(2, word)};
      if (!ring.interrupt(at, 2)) break;
      EXPECT_EQ(perf_poll(*ring.event), at == kForgetful ? 0u : kReadable) << at;
    }
  }
}

// The flag is set before the wakeup: a waiter that polls when it is woken finds it.
struct LooksWhenWoken : TestCpu {
  std::vector<unsigned> seen;
  void irq_work_queue(perf_event& event) { seen.push_back(perf_poll(event)); }
};

TEST(InterruptedOutputTest, TheFlagIsSetBeforeAnyWaiterIsWoken) {
  TestRing<LooksWhenWoken> ring;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.cpu.seen, (std::vector<unsigned>{kReadable, kReadable, kReadable}));
}

}  // namespace
}  // namespace perfring::kernel
