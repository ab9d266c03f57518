// A ring as a state machine. RapidCheck generates commands that are possible in the model's state,
// and runs each on a model that only counts and on the simulated kernel with the real consumer.
// After each command the two must agree.

#include <gtest/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <ostream>
#include <utility>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/rig/script_run.h"
#include "perfring/testing/copied_events.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::CopiedEvent;

// A model of the ring: K1, K12 to K15, K26, K30, K31 and K41 in their simplest form.
struct Model {
  struct Event {
    std::uint64_t size;  // bytes in the ring
    std::uint64_t lost;  // the count of a LOST; 0 for a sample
  };

  std::uint64_t ring_size = 4096;
  std::uint64_t unread = 0;
  std::uint64_t lost = 0;    // not yet reported
  std::deque<Event> events;  // in the ring
  bool paused = false;
  bool crashed = false;
  bool flag = false;  // readiness, which poll clears

  static std::uint64_t record(std::uint64_t length) { return (12 + length + 7) / 8 * 8; }

  bool has_room(std::uint64_t length) const {
    return !paused && unread + record(length) + (lost != 0 ? 24 : 0) <= ring_size - 8;
  }
  void output(std::uint64_t length) {
    if (!has_room(length)) {
      ++lost;
      return;
    }
    if (lost != 0) add({24, std::exchange(lost, 0)});
    add({record(length), 0});
    flag = true;
  }
  void add(Event event) {
    unread += event.size;
    events.push_back(event);
  }
  std::vector<Event> drain(std::size_t most) {
    std::vector<Event> taken;
    for (; !events.empty() && taken.size() < most; events.pop_front()) {
      taken.push_back(events.front());
      unread -= events.front().size;
    }
    return taken;
  }
};

// A run with its types of kernel and consumer erased, so that the commands compile once for all of
// them.
struct Sut {
  rig::ScriptRun& run;
  std::function<std::vector<CopiedEvent>()> take_events;
};

using Command = rc::state::Command<Model, Sut>;

void agree(const Model& model, const rig::ScriptRun& run) {
  expect_good(run);
  RC_ASSERT(run.readable() == !model.events.empty());
  RC_ASSERT_INVARIANT(no_loss, model.crashed || run.ledger().unreported() == model.lost);
}

void agree(const std::vector<Model::Event>& expected, const std::vector<CopiedEvent>& events) {
  RC_ASSERT_INVARIANT(no_loss, events.size() >= expected.size());
  RC_ASSERT_INVARIANT(no_invention, events.size() <= expected.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    RC_ASSERT((events[i].kind == CopiedEvent::Kind::Lost) == (expected[i].lost != 0));
    RC_ASSERT_INVARIANT(no_loss, events[i].count == expected[i].lost);
    RC_ASSERT_INVARIANT(intact,
                        expected[i].lost != 0 || events[i].bytes.size() + 12 == expected[i].size);
  }
}

std::uint64_t any_length(const Model& model) {
  // One in four just fits, or just does not.
  const std::uint64_t room = model.ring_size - 8 - model.unread;
  const std::uint64_t exact = room < 24 ? 4 : room - 12;
  return *rc::gen::weightedOneOf<std::uint64_t>(
      {{3, lengths()}, {1, one_of<std::uint64_t>({exact, exact + 1, exact - 4})}});
}

struct Output : Command {
  explicit Output(const Model& model) : length{any_length(model)} {}
  void checkPreconditions(const Model& model) const override { RC_PRE(!model.crashed); }
  void apply(Model& model) const override { model.output(length); }
  void run(const Model& model, Sut& sut) const override {
    RC_ASSERT(sut.run.run(output(length)) == (model.has_room(length) ? 0 : -ENOSPC));
    agree(nextState(model), sut.run);
  }
  void show(std::ostream& out) const override { out << "output of " << length << " bytes"; }
  const std::uint64_t length;
};

// An output that interrupts interrupt with outputs of their own, after it has reserved its space
// and written its LOST. The outer record comes first, and all are published together.
struct NestedOutput : Command {
  explicit NestedOutput(const Model& model) {
    steps.push_back(output(any_length(model)));
    const auto count = *rc::gen::inRange<std::size_t>(1, 4);
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = *rc::gen::inRange<std::uint64_t>(kBegun, kBegun + 15);
      steps.push_back({.action = Action::Output, .number = *lengths(), .depth = 1, .at = at});
    }
    std::ranges::sort(steps.begin() + 1, steps.end(), {}, &Step::at);
  }
  void checkPreconditions(const Model& model) const override {
    // The moments of a refused output differ.
    RC_PRE(!model.crashed && model.has_room(steps.front().number));
  }
  void apply(Model& model) const override {
    for (const Step& each : steps) model.output(each.number);
  }
  void run(const Model& model, Sut& sut) const override {
    RC_ASSERT(sut.run.run(steps) == 0);
    agree(nextState(model), sut.run);
  }
  void show(std::ostream& out) const override { rc::show(steps, out); }

  // perf_output_begin() takes at most 9 steps, the last of them before it reports losses.
  static constexpr std::uint64_t kBegun = 9;
  std::vector<Step> steps;
};

struct Drain : Command {
  Drain()
      : step{*one_of<Step>({kDrain,
                            {.action = Action::Drain, .number = 1},
                            {.action = Action::Throw, .number = 1}})} {
    if (step.number == 1) step.number = *rc::gen::inRange<std::uint64_t>(1, 8);
  }
  std::size_t most() const { return static_cast<std::size_t>(step.number); }
  void apply(Model& model) const override { model.drain(most()); }
  void run(const Model& model, Sut& sut) const override {
    Model next = model;
    const auto expected = next.drain(most());
    sut.run.run(step);
    expect_good(sut.run);
    agree(expected, sut.take_events());
    agree(next, sut.run);
  }
  void show(std::ostream& out) const override { showValue(step, out); }
  Step step;
};

struct Pause : Command {
  explicit Pause(const Model& model) : pause{!model.paused} {}
  void apply(Model& model) const override { model.paused = pause; }
  void run(const Model& model, Sut& sut) const override {
    sut.run.run(Step{.action = pause ? Action::Pause : Action::Resume});
    agree(nextState(model), sut.run);
  }
  void show(std::ostream& out) const override { out << (pause ? "pause" : "resume"); }
  const bool pause;
};

struct Poll : Command {
  void apply(Model& model) const override { model.flag = false; }
  void checkPreconditions(const Model& model) const override { RC_PRE(!model.crashed); }
  void run(const Model& model, Sut& sut) const override {
    RC_ASSERT((sut.run.run(Step{.action = Action::Poll}) != 0) == model.flag);
    agree(nextState(model), sut.run);
  }
  void show(std::ostream& out) const override { out << "poll"; }
};

// The producer dies in the middle of an output, whose record may or may not have been published.
// Everything published before is delivered, and nothing else ever follows.
struct Crash : Command {
  explicit Crash(const Model& model)
      : length{any_length(model)}, moment{*rc::gen::inRange<std::uint64_t>(0, 26)} {
    // Rarely, because little can happen after it.
    RC_PRE(*rc::gen::resize(100, rc::gen::inRange(0, 8)) == 7);
    steps.push_back(output(length));
    steps.push_back({.action = Action::Die, .depth = 1, .at = moment});
  }
  void checkPreconditions(const Model& model) const override { RC_PRE(!model.crashed); }
  void apply(Model& model) const override {
    model.crashed = true;
    model.drain(~std::size_t{0});
  }
  void run(const Model& model, Sut& sut) const override {
    const std::uint64_t head = sut.run.ring().page().data_head;
    sut.run.run(steps);
    const bool published = sut.run.ring().page().data_head != head;
    Model whole = model;
    if (published) {
      RC_ASSERT(model.has_room(length));
      whole.output(length);
    }
    sut.run.run(kDrain);
    expect_good(sut.run);
    agree(whole.drain(~std::size_t{0}), sut.take_events());
    sut.run.settle();
    expect_good(sut.run);
    RC_ASSERT(!sut.run.readable());
  }
  void show(std::ostream& out) const override {
    out << "death at moment " << moment << " of an output of " << length << " bytes; drain";
  }
  const std::uint64_t length;
  const std::uint64_t moment;
  std::vector<Step> steps;
};

template <class Cpu, class Consumer>
void is_as_modelled() {
  const Settings of = *settings();
  CopyingRun<Cpu, Consumer> run{of};
  Sut sut{run, [&run] { return run.take_events(); }};
  Model model;
  model.ring_size = size_of(of);
  rc::state::check(model, sut,
                   rc::state::gen::execOneOfWithArgs<Output, Output, Output, NestedOutput, Drain,
                                                     Pause, Poll, Crash>());
  run.settle();
  expect_good(run);
}

TEST(StateMachineTest, RingAgreesWithTheModelAfterEachCommand) {
  always(is_as_modelled<ScriptCpu, Core>, 1000);
}
TEST(StateMachineTest, FindsAKernelThatStoresAfterPublishing) {
  EXPECT_TRUE((counterexample(is_as_modelled<faults::StoresAfterPublishing<ScriptCpu>, Core>,
                              Invariant::intact)));
}
TEST(StateMachineTest, FindsAKernelThatWritesAWrongLostCount) {
  EXPECT_TRUE((counterexample(is_as_modelled<faults::WritesAWrongLostCount<ScriptCpu>, Core>,
                              Invariant::no_loss)));
}
TEST(StateMachineTest, FindsAConsumerThatCommitsAllOnABreak) {
  EXPECT_TRUE((counterexample(is_as_modelled<ScriptCpu, faults::CommitsAllOnBreak<CheckedMemory>>,
                              Invariant::tail_honest)));
}
TEST(StateMachineTest, FindsAConsumerWithPositionsOf64Bits) {
  EXPECT_TRUE((counterexample(is_as_modelled<ScriptCpu, faults::PositionsOf64Bits<CheckedMemory>>,
                              Invariant::no_invention)));
}

}  // namespace
}  // namespace perfring::proptests
