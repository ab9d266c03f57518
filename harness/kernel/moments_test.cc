// Interrupts between a read of the ring's state and the action that follows from it: wakeups,
// losses and counts. nesting_test.cc checks the published bytes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/perf_event.h"

namespace perfring::kernel {
namespace {

// A ring whose outputs tests interrupt.
struct Interrupted : TestRing<NestingCpu> {
  explicit Interrupted(const RingSetup& setup = {}) : TestRing{setup} {
    cpu.barrier = [] {};
    cpu.published = [](__u64) {};
  }

  // Outputs a record that `count` others interrupt at step `at`. The first of these is interrupted
  // in turn by `count` others, at its step `next`. Returns true if both have that many steps.
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

  // The interrupted output had raised rb->nest and reserved nothing.
  bool counted_only = false;

  // Returns the number of records until the next wakeup.
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

// The accesses of a sample of 52 bytes: lost, nest, wakeup, head, data_tail, head again, the
// watermark; header, size and payload; events; nest, head, the barrier, data_head, nest, head
// again, and `wakeup` twice (one read to compare it). The other outputs below make some accesses
// more or fewer.
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

  // The interrupt comes before data_head is stored. It leaves publishing to the interrupted output,
  // which then publishes twice.
  Interrupted twice{wakeup_events(3, Word::k64)};
  twice.cpu.at[0] = kOutput - 5;
  twice.cpu.interrupt = [&](std::size_t) { EXPECT_EQ(twice.output(52), 0); };
  const auto nested = steps(twice);
  EXPECT_EQ(nested[0], kOutput + 6);
  EXPECT_EQ(nested[1], kOutput - 7);
}

// An interrupt between the count and the subtraction subtracts wakeup_events, and the interrupted
// output then subtracts it again. The count goes below 0, and the next interval is longer than
// wakeup_events.
TEST(InterruptedOutputTest, AnInterruptStretchesTheNextInterval) {
  for (const Word word : {Word::k32, Word::k64}) {
    struct {
      unsigned interrupts;
      std::set<unsigned> intervals;
    } const rows[] = {
        // After the third of three records: 3 - 1 for each record that follows it, or 3 + 3 - 1.
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

// Three levels deep, with the number of interrupts that stretches most: one interval of 3 *
// wakeup_events.
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

// wakeup_events = 1 is not stretched: each record wakes PerfBuffer's consumer.
TEST(InterruptedOutputTest, AnIntervalOfOneRecordIsNotStretched) {
  for (unsigned at = 0;; ++at) {
    Interrupted ring{wakeup_events(1, Word::k64)};
    if (!ring.interrupt(at, 3)) break;
    ring.consume();
    EXPECT_EQ(ring.until_woken(), 1u) << at;
    EXPECT_EQ(ring.rb().events, 0u) << at;
  }
}

// An interrupt comes between the comparison with the watermark and the addition. Both outputs add,
// and rb->wakeup is past the head. The difference is unsigned, so every record wakes from then on.
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
      // A record that passes rb->wakeup ends this: more than the watermark is unread, and no waiter
      // is woken.
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

// One loss is unreported. An interrupted output reports it, or finds it reported, depending on
// where the interrupt came: before the output read rb->lost, before it reserved, or before it wrote
// its LOST.
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
    // The output reads rb->lost before it raises rb->nest.
    if (ring.counted_only) {
      EXPECT_EQ(reported, (Counts{1, 0})) << at;
    }
    if (found.empty() || found.back() != reported) found.push_back(reported);
    EXPECT_EQ(ring.rb().lost, 0u);
  }
  EXPECT_EQ(found, (std::vector<Counts>{{1}, {1, 0}, {0, 1}, {1}}));
}

// The consumer makes room between the failed space check and the count of the loss. An output that
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
    if (ring.output(200) == 0) continue;  // the room came in time
    if (ring.cpu.steps[0] <= at) break;
    ASSERT_EQ(ring.cpu.reservations.size(), 2u);
    samples.insert(ring.cpu.reservations[1].size);
    EXPECT_EQ(ring.rb().lost + ring.cpu.reservations[1].lost.value_or(0), 1u);
  }
  EXPECT_EQ(samples, (std::set<__u64>{64, 64 + 24}));
}

// A paused ring drops the output of an interrupt and counts one loss, which is reported or still
// unreported, at whichever step the interrupt came.
TEST(InterruptedOutputTest, InterruptOnPausedRingCountsOneLoss) {
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

// The outermost output makes the wakeup that nested interrupts have earned: it compares rb->wakeup
// with its value at the output's beginning. The wakeup is lost only if the interrupt comes between
// rb->nest++ and the read of rb->wakeup in perf_output_get_handle().
TEST(InterruptedOutputTest, OutermostOutputPassesOnNestedWakeup) {
  for (const Word word : {Word::k32, Word::k64}) {
    for (unsigned at = 0;; ++at) {
      Interrupted ring{wakeup_events(2, word)};
      if (!ring.interrupt(at, 2)) break;
      EXPECT_EQ(perf_poll(*ring.event), at == kLosesWakeup ? 0u : kReadable) << at;
    }
  }
}

// The kernel sets the flag before it wakes: a waiter that polls when it is woken finds the flag.
struct PollsWhenWoken : TestCpu {
  std::vector<unsigned> reports;
  void irq_work_queue(perf_event& event) { reports.push_back(perf_poll(event)); }
};

TEST(InterruptedOutputTest, TheFlagIsSetBeforeAnyWaiterIsWoken) {
  TestRing<PollsWhenWoken> ring;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.cpu.reports, (std::vector<unsigned>{kReadable, kReadable, kReadable}));
}

}  // namespace
}  // namespace perfring::kernel
