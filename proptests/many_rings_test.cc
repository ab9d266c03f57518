// Several CPUs of the simulated kernel and one consumer, which runs RingSet's loop over lib's
// Merge, or over lib's Ring in turns. Clocks are slow; writers take time, stall, and interrupt one
// another; CPUs go offline and come back. Another CPU may run between any two accesses to memory,
// and between any two words of a record.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "harness/kernel/perf_event.h"
#include "harness/simulator/engine.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using simulator::kMerged;
using simulator::ManyFault;
using simulator::RunSettings;
using simulator::SimulationOutcome;
using simulator::SimulationPlan;

std::uint64_t up_to(std::uint64_t most) {
  return *rc::gen::inRange<std::uint64_t>(0, most + 1);
}
bool half() {
  return *rc::gen::arbitrary<bool>();
}

// Draws the settings that do not depend on the consumer's kind.
RunSettings draw_settings(std::uint64_t rings) {
  RunSettings s;
  s.rings = rings;
  s.cpus = 1 + up_to(3);
  s.ring.pages = *one_of<std::uint64_t>({1, 2, 4});
  s.ring.word = *one_of<kernel::Word>({kernel::Word::k64, kernel::Word::k32});
  s.ring.start = *one_of<std::uint64_t>({0, (std::uint64_t{1} << 32) - 4096, 8});
  s.payload_min = 16 + up_to(40);
  s.payload_max = s.payload_min + up_to(400);
  s.burst_max = 1 + up_to(40);
  s.idle_max = up_to(3000);
  s.interrupts = up_to(60);
  s.interval_log2 = 4 + up_to(6);
  s.timeout = *one_of<std::uint64_t>({0, 500, 20'000});
  s.callback_max = half() ? up_to(200) : 0;
  s.break_one_in = half() ? up_to(40) : 0;
  s.throw_one_in = half() ? up_to(100) : 0;
  s.limit = half() ? up_to(100) : 0;
  s.hotplug = half() ? 200 + up_to(3000) : 0;
  return s;
}

RunSettings draw_merge() {
  RunSettings s = draw_settings(kMerged);
  s.delay_max = up_to(300);
  s.stall_one_in = half() ? up_to(50) : 0;
  s.skew_max = half() ? up_to(100) : 0;
  s.clock_tick = *one_of<std::uint64_t>({1, 3, 64});
  s.slack = half() ? up_to(300) : up_to(20'000);
  return s;
}

SimulationPlan draw_plan(const RunSettings& settings) {
  const SimulationPlan plan{.seed = up_to(1'000'000), .steps = 20'000, .settings = settings};
  RC_PRE(impossible(settings).empty());
  RC_LOG() << "seed " << plan.seed << ", " << to_string(settings);
  return plan;
}

SimulationOutcome holds(const SimulationPlan& plan, ManyFault fault = ManyFault::None) {
  const SimulationOutcome outcome = simulate_many(plan, {}, fault);
  if (outcome.found) {
    fail({outcome.found->violation.invariant,
          fmt::format("on CPU {} at step {}: {}", outcome.found->cpu, outcome.found->step,
                      outcome.found->violation.message)});
  }
  return outcome;
}

// The invariants: a run delivers exactly the released events, in the order of a stable sort by key,
// ring and place in the ring. An event is late only if its writer took longer than the slack. The
// consumer reads unread bytes only, leaves data_tail at the oldest undelivered record, and never
// sleeps while there is a record to deliver.
TEST(ManyRingsTest, AMergeKeepsEveryInvariant) {
  always([] { holds(draw_plan(draw_merge())); }, 300);
}

TEST(ManyRingsTest, NothingIsLateIfWritersStayWithinSlack) {
  int shown = 0;
  always(
      [&shown] {
        RunSettings settings = draw_merge();
        settings.interrupts = 0;  // nested writers could displace a record beyond the window
        settings.slack = 3000;
        settings.clock_tick = 1;
        const SimulationOutcome outcome = holds(draw_plan(settings));
        if (outcome.longest_delay > settings.slack) return;
        RC_ASSERT(outcome.late == 0U);
        ++shown;
      },
      200);
  EXPECT_GE(shown, 100);
}

TEST(ManyRingsTest, StallPastSlackIsCountedAsLate) {
  std::uint64_t late = 0;
  always(
      [&late] {
        RunSettings settings = draw_merge();
        settings.cpus = 3;
        settings.delay_max = 300;
        settings.stall_one_in = 20;
        settings.slack = up_to(100);
        late += holds(draw_plan(settings)).late;
      },
      100);
  EXPECT_GT(late, 100U);
}

TEST(ManyRingsTest, NoConsumerSleepsOnRecordsLeftByATurn) {
  always([] { holds(draw_plan(draw_settings(*one_of<std::uint64_t>({1, 2})))); }, 300);
}

RunSettings draw_flushing() {
  RunSettings settings = draw_settings(*one_of<std::uint64_t>({1, 2}));
  settings.delay_max = up_to(400);
  settings.flush_one_in = 1 + up_to(3);
  return settings;
}

TEST(ManyRingsTest, ACompleteFlushMissesNothingThatWasBegunBefore) {
  always([] { holds(draw_plan(draw_flushing())); }, 200);
}

RunSettings draw_switching() {
  RunSettings settings = draw_settings(1);
  settings.timeout = 1'000'000;
  settings.latency = 200 + up_to(2000);
  settings.delay_max = up_to(600);
  settings.idle_max = 10'000 + up_to(20'000);
  settings.burst_max = 60;
  settings.break_one_in = settings.throw_one_in = settings.limit = 0;
  return settings;
}

TEST(ManyRingsTest, NothingIsStuckWhileWakeupsAreSwitched) {
  always([] { holds(draw_plan(draw_switching())); }, 200);
}

// Whether a consumer with this one fault violates the invariant.
template <class Draw>
bool finds(ManyFault fault, Draw draw, Invariant violated) {
  return counterexample([&] { holds(draw_plan(draw()), fault); }, violated).has_value();
}
bool finds_merge(ManyFault fault, Invariant violated) {
  return finds(fault, draw_merge, violated);
}
bool finds_turns(ManyFault fault, Invariant violated) {
  return finds(fault, [] { return draw_settings(1); }, violated);
}

TEST(ManyRingsTest, FindsAMergeThatTrustsFifo) {
  EXPECT_TRUE(finds_merge(ManyFault::TrustsFifo, Invariant::merged));
}
TEST(ManyRingsTest, FindsAMergeWithAWindowOfOne) {
  EXPECT_TRUE(finds_merge(ManyFault::MergeWindow1, Invariant::merged));
}
TEST(ManyRingsTest, FindsAMergeThatReadsItsClockAfterTheHead) {
  EXPECT_TRUE(finds_merge(ManyFault::ReadsClockAfterHead, Invariant::merged));
}
TEST(ManyRingsTest, FindsAMergeWithoutSlack) {
  EXPECT_TRUE(finds_merge(ManyFault::IgnoresSlack, Invariant::merged));
}
TEST(ManyRingsTest, FindsAMergeThatWaitsForIdleRings) {
  EXPECT_TRUE(finds_merge(ManyFault::WaitsForIdleRings, Invariant::merged));
}
TEST(ManyRingsTest, FindsAMergeThatReleasesOneRecordEarly) {
  EXPECT_TRUE(finds_merge(ManyFault::ReleasesOneEarly, Invariant::tail_honest));
}
TEST(ManyRingsTest, FindsAMergeThatDropsLateEvents) {
  EXPECT_TRUE(finds_merge(ManyFault::DropsLateEvents, Invariant::tail_honest));
}
TEST(ManyRingsTest, FindsAMergeThatNeverMarksLateEvents) {
  EXPECT_TRUE(finds_merge(ManyFault::NeverMarksLate, Invariant::late));
}
TEST(ManyRingsTest, FindsAConsumerThatSleepsOnHeldEvents) {
  EXPECT_TRUE(finds_merge(ManyFault::SleepsOnHeldEvents, Invariant::awake));
}
TEST(ManyRingsTest, FindsAConsumerThatReadsOneRing) {
  EXPECT_TRUE(finds_turns(ManyFault::ReadsOneRing, Invariant::no_loss));
}
TEST(ManyRingsTest, FindsARoundThatIgnoresItsLimit) {
  EXPECT_TRUE(finds_turns(ManyFault::IgnoresLimit, Invariant::bounded));
}
TEST(ManyRingsTest, FindsAConsumerThatSleepsAtTheLimit) {
  EXPECT_TRUE(finds_turns(ManyFault::SleepsAtLimit, Invariant::awake));
}
TEST(ManyRingsTest, FindsAConsumerThatSleepsWithoutARecheck) {
  EXPECT_TRUE(finds(ManyFault::SleepsWithoutRecheck, draw_switching, Invariant::awake));
}
TEST(ManyRingsTest, FindsAConsumerThatAbandonsOfflineRings) {
  EXPECT_TRUE(finds_turns(ManyFault::AbandonsOfflineRings, Invariant::awake));
}
TEST(ManyRingsTest, FindsAFlushWithoutABarrier) {
  EXPECT_TRUE(finds(ManyFault::FlushesWithoutABarrier, draw_flushing, Invariant::no_loss));
}
TEST(ManyRingsTest, FindsABarrierAfterTheRound) {
  EXPECT_TRUE(finds(ManyFault::BarrierAfterTheRound, draw_flushing, Invariant::no_loss));
}

}  // namespace
}  // namespace perfring::proptests
