// Each kernel and each consumer here has one fault: one of harness/faults, or one that provokes a
// single message. The run must report the violation.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/kernel/perf_event.h"
#include "harness/oracle/invariant.h"
#include "harness/rig/script_faults.h"
#include "harness/rig/script_run.h"
#include "harness/rig/watched_cpu.h"
#include "harness/script/script.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring::rig {
namespace {

using oracle::Violation;
using Core = Ring<CheckedMemory>;

std::string in_words(const std::optional<Violation>& violation) {
  if (!violation) return "nothing";
  return to_string(*violation);
}

// Returns the violation in this script's run. Without the fault, the run must violate nothing.
template <class Cpu, class Consumer = Core>
std::string violated(std::string_view text) {
  const auto script = script::parse_script(text);
  if (!script) return script.error();
  EXPECT_EQ(in_words(violation_of<ScriptRunner<>>(*script)), "nothing");
  return in_words(violation_of<ScriptRunner<Cpu, Consumer>>(*script));
}
template <class M>
std::string violated_by_consumer(std::string_view text) {
  return violated<ScriptCpu, Ring<M>>(text);
}

void expect_begins(const std::string& found, const std::string& expected) {
  EXPECT_EQ(found.substr(0, expected.size()), expected);
}

TEST(ScriptRunTest, FindsARefusalThoughThereIsRoom) {
  EXPECT_EQ(violated<faults::RefusesInAnEmptyRing<ScriptCpu>>("output 4\n"),
            "no_loss: 16 bytes were refused, with 0 of 4096 unread");
}

// Pauses the ring only until the kernel has read the flag.
struct TakesTheRingForPaused : ScriptCpu {
  using ScriptCpu::ScriptCpu;
  void irq_work_queue(kernel::perf_event& event) {
    ScriptCpu::irq_work_queue(event);
    rb = event.rb.load();
    rb->paused.store(true);
  }
  void step() {
    if (rb != nullptr) rb->paused.store(false);
    ScriptCpu::step();
  }
  kernel::perf_buffer* rb = nullptr;
};
TEST(ScriptRunTest, FindsARefusalThoughNothingIsPaused) {
  EXPECT_EQ(violated<TakesTheRingForPaused>("output 4\noutput 4\n"),
            "no_loss: refused, though the ring is not paused");
}

TEST(ScriptRunTest, FindsALossThatIsNotReported) {
  expect_begins(
      violated<faults::ForgetsLosses<ScriptCpu>>("output 4068\noutput 4\ndrain 1\noutput 4\n"),
      "no_loss: 16 bytes reserved at 4080; expected 40 ");
}

TEST(ScriptRunTest, FindsALossThatIsCountedTwice) {
  expect_begins(
      violated<faults::CountsLossesTwice<ScriptCpu>>("output 4068\noutput 4\ndrain 1\noutput 4\n"),
      "no_loss: a LOST of 2, but 1 were refused");
}

TEST(ScriptRunTest, FindsThatPollReportsNothingForARecord) {
  EXPECT_EQ(violated<faults::SetsNoPollFlag<ScriptCpu>>("output 4\npoll\n"),
            "awake: poll reported nothing, but a record was announced");
}

TEST(ScriptRunTest, FindsThatPollReportsARefusal) {
  EXPECT_EQ(violated<faults::AnnouncesRefusals<ScriptCpu>>("output 4068\npoll\noutput 4\npoll\n"),
            "awake: poll reported POLLIN, but no record was announced");
}

TEST(ScriptRunTest, FindsADataHeadWithinARecord) {
  EXPECT_EQ(violated<faults::PublishesUnaligned<ScriptCpu>>("output 4\n"),
            "no_invention: data_head 0xc was published");
}

TEST(ScriptRunTest, FindsARecordThatIsNotPublished) {
  expect_begins(
      violated<faults::ExposesReservations<ScriptCpu>>("output 4\noutput 4\n> at 16 drain 2\n"),
      "no_invention: ");
}

TEST(ScriptRunTest, FindsThatTheUnreadIsOverwritten) {
  expect_begins(violated<faults::IgnoresTail<ScriptCpu>>("output 4068\noutput 4\n"),
                "no_early_release: 16 bytes reserved at 4080 ");
}

TEST(ScriptRunTest, FindsThatAnEventChangesUnderTheCallback) {
  expect_begins(
      violated<faults::CorruptsRingStart<ScriptCpu>>("output 4\ndrain 1\n> at 0 output 4\n"),
      "no_early_release: ");
}

TEST(ScriptRunTest, FindsARefusalThatIsNotCounted) {
  expect_begins(violated<faults::DetachesRing<ScriptCpu>>("output 4\noutput 4\n"), "no_loss: ");
}

TEST(ScriptRunTest, FindsThatTwoDrainsDoNotEmptyAnIdleRing) {
  EXPECT_EQ((violated<ScriptCpu, faults::TakesOneAtATime<CheckedMemory>>(
                "output 4\noutput 4\noutput 4\n")),
            "bounded: two drains of an idle ring did not empty it");
}

TEST(ScriptRunTest, FindsARecordThatIsLeft) {
  expect_begins((violated<ScriptCpu, faults::LeavesLastRecord<CheckedMemory>>("output 4\n")),
                "no_loss: ");
}

TEST(ScriptRunTest, FindsADataTailThatIsNotAsDelivered) {
  using TailTooLowFault = faults::TailTooLow<CheckedMemory>;
  expect_begins(violated_by_consumer<TailTooLowFault>("output 4\ndrain 1\n"), "tail_honest: ");
  expect_begins(violated_by_consumer<TailTooLowFault>("output 4\nthrow 1\n"), "tail_honest: ");
}

TEST(ScriptRunTest, FindsAReadOutsideTheRing) {
  expect_begins(violated_by_consumer<faults::Underreads<CheckedMemory>>("output 4\n"), "in_ring: ");
}

TEST(ScriptRunTest, FindsAnIncompleteSample) {
  expect_begins(violated_by_consumer<faults::ShortensSamples<CheckedMemory>>("output 12\n"),
                "intact: ");
}

// In an interrupt, a ring with 16 bytes in it looks full.
struct RefusesNested : ScriptCpu {
  using ScriptCpu::ScriptCpu;
  __u64 read_once(const __u64& data_tail) {
    const __u64 tail = ScriptCpu::read_once(data_tail);
    return bpf_trace_nest_level > 1 ? tail + 24 : tail;
  }
};
TEST(ScriptRunTest, FindsARefusalInAnInterruptThoughThereIsRoom) {
  expect_begins(violated<RefusesNested>("output 4\n> at 12 output 4\n"),
                "no_loss: 16 bytes were refused");
}

// The rest of a drain is checked after an interrupted callback, too.
struct UnderreadsLater : CheckedMemory {
  template <class T>
  static T read(const std::byte* address) {
    if (sizeof(T) == 4 && ++reads == 2) return faults::Underreads<CheckedMemory>::read<T>(address);
    return CheckedMemory::read<T>(address);
  }
  static inline int reads = 0;
};
TEST(ScriptRunTest, FindsOutsideReadAfterInterruptedCallback) {
  UnderreadsLater::reads = 0;
  // Two sizes, so that the drain does not read the second record before it delivers the first.
  expect_begins(
      violated_by_consumer<UnderreadsLater>("output 4\noutput 12\ndrain 2\n> at 0 output 4\n"),
      "in_ring: ");
}

TEST(ScriptRunTest, FindsAnEventAfterTheDrainsLast) {
  EXPECT_EQ(
      (violated<ScriptCpu, faults::IgnoresBreak<CheckedMemory>>("output 4\noutput 12\ndrain 1\n")),
      "once: an event was delivered after the drain's last");
}

TEST(ScriptRunTest, FindsThatPollReportsNothingWithinACallback) {
  EXPECT_EQ(violated<faults::SetsNoPollFlag<ScriptCpu>>("output 4\ndrain 1\n> at 0 poll\n"),
            "awake: poll reported nothing, but a record was announced");
}

TEST(ScriptRunTest, NestedStepsHappenAtTheirMoment) {
  const auto script = script::parse_script(
      "output 8\n> at 3 output 16\n>> at 100 output 24\noutput 8\ndrain 2\n> at 1 output 3000\n");
  ScriptRunner<> runner{script->settings};
  std::vector<std::size_t> sizes;
  runner.on_event = [&](const PerfEvent& event) {
    const auto& sample = std::get<Sample>(event);
    sizes.push_back(sample.size());
  };
  runner.run(script->steps);
  runner.settle();
  EXPECT_EQ(in_words(runner.violation()), "nothing");
  EXPECT_EQ(runner.ledger().totals().accepted, 5U);
  EXPECT_EQ(runner.received().delivered, 5U);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{20, 28, 12, 12, 3004}));
  EXPECT_EQ(runner.script().steps.size(), script->steps.size() + 1);  // settle()'s drain
}

TEST(ScriptRunTest, LossesAreAccountedFor) {
  const auto script = script::parse_script(
      "output 4000\noutput 4000\npause\noutput 8\nresume\ndrain 1\noutput 8\n");
  ScriptRunner<> runner{script->settings};
  runner.run(script->steps);
  runner.settle();
  EXPECT_EQ(in_words(runner.violation()), "nothing");
  EXPECT_EQ(runner.ledger().totals().lost, 2U);
  EXPECT_EQ(runner.received().lost, 2U);
}

TEST(ScriptRunTest, ADeadProducerPublishesNothingMore) {
  ScriptRunner<> runner{{}};
  runner.run({.action = script::Action::Output, .number = 4});
  runner.run(script::parse_script("output 4\n> at 12 die\n")->steps);
  EXPECT_EQ(runner.run({.action = script::Action::Output, .number = 4}), 0);
  runner.settle();
  EXPECT_EQ(in_words(runner.violation()), "nothing");
  EXPECT_EQ(runner.received().delivered, 1U);
  EXPECT_EQ(runner.ring().page().data_head, 16U);
}

TEST(ScriptRunTest, ProducerDyingAtFirstMomentReservesNothing) {
  ScriptRunner<> runner{{}};
  runner.run(script::parse_script("output 4\n> at 0 die\n")->steps);
  EXPECT_EQ(runner.ledger().position(), 0U);
}

// The script has the wait loop's drains in place of the polls, and the death. Running it repeats
// the run.
TEST(ScriptRunTest, TheScriptOfARunRepeatsIt) {
  ScriptRunner<> runner{{}};
  runner.on_poll = [&runner] { runner.run({.action = script::Action::Drain, .number = 1}); };
  const auto polls = script::parse_script(
      "output 4\noutput 8\n> at 3 poll\n> at 8 output 4\npoll\noutput 4\n> at 12 die\n> at 20 "
      "poll\n");
  runner.run(polls->steps);
  EXPECT_EQ(to_text(runner.script()),
            "output 4\noutput 8\n> at 3 drain 1\n> at 8 output 4\ndrain 1\noutput 4\n> at 12 die\n"
            "> at 20 drain 1\n");
  ScriptRunner<> again{{}};
  again.run(runner.script().steps);
  EXPECT_EQ(again.received().delivered, 3U);
  EXPECT_EQ(again.received().delivered, runner.received().delivered);
  EXPECT_EQ(again.ring().page().data_tail, runner.ring().page().data_tail);
  EXPECT_EQ(again.ring().page().data_head, runner.ring().page().data_head);
}

// `perfring faults --harness scripts` tests the faults themselves
// (//harness/faults:faults_scripts_test).

template <class Runner>
void expect_nothing_found() {
  Runner runner{random_script(1).settings};
  runner.run(random_script(1).steps);
  ASSERT_GT(runner.received().delivered, 0u);
  for (std::uint64_t seed = 1; seed <= kScriptsForAFault; ++seed) {
    const auto violation = violation_of<Runner>(random_script(seed));
    ASSERT_FALSE(violation.has_value()) << violation->message << ", by seed " << seed;
  }
}

TEST(RandomScriptTest, NothingIsFoundWithoutAFault) {
  expect_nothing_found<ScriptRunner<>>();
}
TEST(RandomScriptTest, NothingIsFoundWhereACursorDrains) {
  expect_nothing_found<ScriptRunner<ScriptCpu, testing::RingOverCursor<Cursor<CheckedMemory>>>>();
}

}  // namespace
}  // namespace perfring::rig
