// Drains that stop early: where a drain stops changes when events are delivered, not which ones.
// Any script: a sound kernel and consumer violate nothing. With a fault of harness/faults planted
// in either, some script violates an invariant. (Faults that need a property of their own have it
// in the other tests.)
// A Cursor while the kernel writes: any split into looks and releases hands out the events that the
// reference consumer finds, and no record changes before it is released.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/faults/loop_faults.h"
#include "harness/oracle/invariant.h"
#include "harness/rig/script_faults.h"
#include "harness/rig/simulated_kernel.h"
#include "harness/rig/watched_cpu.h"
#include "harness/script/script.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/reference_drain.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {

// A step of a Cursor's run. Write: the kernel outputs a payload of N bytes. Next: the consumer
// takes N records. Release: it releases the N oldest unreleased records.
struct Move {
  enum class Kind { Write, Look, Next, Release } kind = Kind::Look;
  std::uint64_t number = 0;
};
std::ostream& operator<<(std::ostream& out, const Move& move) {
  constexpr const char* kNames[]{"write ", "look ", "next ", "release "};
  return out << kNames[static_cast<std::size_t>(move.kind)] << move.number;
}

namespace {

using testing::CopiedEvent;
using testing::ReferenceDrain;

// After a break or a throw at event N, exactly N events were delivered, and the next drain starts
// with event N + 1.
template <class Consumer>
void resumes() {
  const auto stops = *steps({{StepKind::Break, StepKind::Throw}});
  CopyingRun<ScriptCpu, Consumer> run{*settings()};
  run.run(*steps({{StepKind::Output, StepKind::Output, StepKind::Pause, StepKind::Resume}, 1}));
  for (const Step& stop : stops) {
    const std::uint64_t events = static_cast<std::uint64_t>(run.run(stop));
    expect_good(run);
    RC_ASSERT(events == stop.number || !run.readable());
  }
  run.settle();
  expect_good(run);
}

TEST(ResumeTest, NextDrainResumesAfterBreakOrThrow) {
  always(resumes<Core>);
}
TEST(ResumeTest, NextCursorLookResumesAfterBreakOrThrow) {
  always(resumes<CursorCore>);
}
TEST(ResumeTest, FindsAConsumerThatRedeliversAfterABreak) {
  EXPECT_TRUE(
      counterexample(resumes<faults::RedeliversAfterBreak<CheckedMemory>>, Invariant::tail_honest));
}
TEST(ResumeTest, FindsAConsumerWithoutACommitOnThrow) {
  EXPECT_TRUE(
      counterexample(resumes<faults::NoCommitOnThrow<CheckedMemory>>, Invariant::tail_honest));
}

// Drains the same ring once as a whole and once in pieces: the events are equal.
template <class Consumer>
void splits() {
  const Settings of = *settings();
  const auto written =
      *steps({{StepKind::Output, StepKind::Output, StepKind::Pause, StepKind::Resume}, 1});
  const auto pieces = *rc::gen::container<std::vector<Step>>(rc::gen::build<Step>(
      rc::gen::set(&Step::action, one_of<Action>({Action::Drain, Action::Throw})),
      rc::gen::set(&Step::number, rc::gen::inRange<std::uint64_t>(1, 12))));
  CopyingRun<> whole{of};
  CopyingRun<ScriptCpu, Consumer> split{of};
  whole.run(written);
  split.run(written);
  whole.run(kDrain);
  split.run(pieces);
  split.run(kDrain);
  expect_good(whole);
  expect_events(split.take_events(), whole.take_events());
  RC_ASSERT_INVARIANT(tail_honest, split.ring().page().data_tail == whole.ring().page().data_tail);
}

TEST(SplitDrainTest, AnySplitGivesTheSameEvents) {
  always(splits<Core>);
}
TEST(SplitDrainTest, AnySplitByACursorGivesTheSameEvents) {
  always(splits<CursorCore>);
}
TEST(SplitDrainTest, FindsAConsumerThatCommitsAllOnABreak) {
  EXPECT_TRUE(counterexample(splits<faults::CommitsAllOnBreak<CheckedMemory>>, Invariant::no_loss));
}

class AnyScriptTest : public ::testing::TestWithParam<faults::Fault> {};

std::vector<faults::Fault> to_be_found() {
  std::vector<faults::Fault> found;
  std::ranges::copy_if(faults::catalogue(), std::back_inserter(found), [](const auto& fault) {
    const auto* const test = std::get_if<const char*>(&fault.property);
    return test != nullptr && std::string_view{*test} == faults::kAnyScript;
  });
  return found;
}

TEST_P(AnyScriptTest, FindsTheFault) {
  const rig::ScriptFault* const planted = rig::find_planted(GetParam().name);
  ASSERT_NE(planted, nullptr);
  // The invariant that the known scripts for this fault violate. Another script may violate a
  // different one first.
  const Invariant violated = std::get<Invariant>(GetParam().in(faults::Harness::Scripts));
  Mix mix = everything();
  mix.kinds.insert(mix.kinds.end(), 2, StepKind::Poll);
  EXPECT_TRUE(counterexample(
      [planted, mix, violated] {
        const Script script = *scripts(mix);
        const auto violation = planted->run(script);
        if (!violation || violation->invariant != violated) return;
        RC_FAIL(fmt::format("{}, by this script:\n{}", to_string(*violation), to_text(script)));
      },
      violated));
}

INSTANTIATE_TEST_SUITE_P(, AnyScriptTest, ::testing::ValuesIn(to_be_found()),
                         [](const auto& named) { return std::string{named.param.name}; });

rc::Gen<Move> moves() {
  const auto move = [](Move::Kind kind, const rc::Gen<std::uint64_t>& numbers) {
    return rc::gen::build<Move>(rc::gen::set(&Move::kind, rc::gen::just(kind)),
                                rc::gen::set(&Move::number, numbers));
  };
  const auto few = rc::gen::inRange<std::uint64_t>(1, 6);
  return rc::gen::weightedOneOf<Move>({{6, move(Move::Kind::Write, lengths())},
                                       {2, move(Move::Kind::Look, rc::gen::just<std::uint64_t>(0))},
                                       {3, move(Move::Kind::Next, few)},
                                       {3, move(Move::Kind::Release, few)}});
}

// A ring of the simulated kernel, a Cursor over it, and the events that the Cursor still has to
// hand out.
template <class C>
class Pulled {
 public:
  explicit Pulled(const Settings& settings)
      : kernel_{settings}, cursor_{*C::over(page(), data())}, next_{page().data_tail} {}

  void carry_out(const Move& move) {
    switch (move.kind) {
      case Move::Kind::Write:
        kernel_.run(output(move.number));
        break;
      case Move::Kind::Look:
        look();
        break;
      case Move::Kind::Next:
        for (std::uint64_t i = 0; i < move.number; ++i) take();
        break;
      case Move::Kind::Release:
        release(move.number);
    }
    RC_ASSERT_INVARIANT(tail_honest, page().data_tail == released());
  }

  void finish() {
    look();
    while (!due_.empty()) take();
    take();
    release(unreleased_.size());
    RC_ASSERT(static_cast<Position>(page().data_tail) == static_cast<Position>(page().data_head));
    RC_ASSERT(cursor_.look() == 0U);
  }

 private:
  struct UnreleasedRecord {
    typename C::Record record;
    ReferenceDrain::Event event;
  };

  perf_event_mmap_page& page() { return kernel_.ring().page(); }
  Bytes data() { return kernel_.ring().data(); }
  // Where data_tail must be: the start of the oldest unreleased record, or of the next one if there
  // is none.
  std::uint64_t released() const { return unreleased_.empty() ? next_ : begins_.front(); }

  void look() {
    const auto due = ReferenceDrain{data(), next_, page().data_head}.drain();
    due_.assign(due.begin(), due.end());
    RC_ASSERT(cursor_.look() == static_cast<std::uint32_t>(page().data_head - page().data_tail));
  }

  void take() {
    const auto record = cursor_.next();
    RC_ASSERT(record.has_value() == !due_.empty());
    if (!record) return;
    RC_ASSERT_INVARIANT(intact, testing::copy(record->event()) == due_.front().event);
    begins_.push_back(next_);
    next_ = due_.front().end;
    RC_ASSERT(record->size() == next_ - begins_.back());
    unreleased_.push_back({*record, due_.front()});
    due_.pop_front();
  }

  void release(std::uint64_t count) {
    for (; count != 0 && !unreleased_.empty(); --count) {
      const UnreleasedRecord oldest = unreleased_.front();
      RC_ASSERT_INVARIANT(intact, testing::copy(oldest.record.event()) == oldest.event.event);
      unreleased_.pop_front();
      begins_.pop_front();
      unreleased_.empty() ? cursor_.release() : cursor_.release(oldest.record.end());
      RC_ASSERT_INVARIANT(tail_honest, page().data_tail == oldest.event.end);
    }
  }

  rig::SimulatedKernel kernel_;
  C cursor_;
  std::uint64_t next_;                       // position of the next record to take
  std::deque<ReferenceDrain::Event> due_;    // not yet taken since the last look
  std::deque<UnreleasedRecord> unreleased_;  // taken, not released
  std::deque<std::uint64_t> begins_;         // position of each record in unreleased_
};

template <class C>
void hands_out_each_event_once() {
  Pulled<C> pulled{*settings()};
  for (const Move& move : *rc::gen::container<std::vector<Move>>(moves())) pulled.carry_out(move);
  pulled.finish();
}

TEST(CursorSplitTest, AnySplitHandsOutEachEventOnce) {
  always(hands_out_each_event_once<Cursor<CheckedMemory>>);
}
TEST(CursorSplitTest, FindsACursorThatReleasesEarly) {
  EXPECT_TRUE(counterexample(hands_out_each_event_once<faults::ReleasesEarly<CheckedMemory>>,
                             Invariant::tail_honest));
}
TEST(CursorSplitTest, FindsCursorThatReleasesRecordsNotHandedOut) {
  EXPECT_TRUE(counterexample(hands_out_each_event_once<faults::ReleasesUndelivered<CheckedMemory>>,
                             Invariant::tail_honest));
}

}  // namespace
}  // namespace perfring::proptests
