// A consumer that follows the README's wait loop never sleeps while its rings hold more data than
// its wakeup settings allow. After a timeout the rings are empty.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/kernel/perf_event.h"
#include "harness/script/script.h"
#include "proptests/property.h"
#include "proptests/scripts.h"
#include "proptests/waiters.h"

namespace perfring::proptests {
namespace {

using faults::Waits;

// Several rings with their producers, and one thread that consumes all of them.
template <class Cpu, class Waiter>
class Rings {
 public:
  Rings(const Settings& settings, std::size_t count) {
    std::vector<kernel::perf_event*> events;
    std::vector<std::function<void()>> drains;
    for (std::size_t i = 0; i < count; ++i) {
      runs_.push_back(std::make_unique<CopyingRun<Cpu>>(settings));
      CopyingRun<Cpu>& run = *runs_.back();
      events.push_back(&run.ring().event());
      drains.push_back([&run] { run.run(kDrain); });
      run.on_poll = [this] { step(); };
    }
    waiter_ = std::make_unique<Waiter>(events, std::move(drains));
  }

  // Deals the steps out to the rings in turn, each together with the steps nested in it.
  void run(std::span<const Step> steps) {
    for (std::size_t ring = 0; !steps.empty(); ++ring) {
      const auto first = script::first_with_nested(steps);
      runs_[ring % runs_.size()]->run(first);
      steps = steps.subspan(first.size());
    }
  }

  // Lets the consumer run until it sleeps. The producers are done, so nothing wakes it again.
  void fall_asleep() {
    for (int i = 0; i < 20; ++i) step();
    RC_ASSERT(waiter_->asleep());
  }
  void times_out() {
    waiter_->times_out();
    fall_asleep();
  }
  void step() { waiter_->step(); }

  const std::vector<std::unique_ptr<CopyingRun<Cpu>>>& runs() const { return runs_; }

 private:
  std::vector<std::unique_ptr<CopyingRun<Cpu>>> runs_;
  std::unique_ptr<Waiter> waiter_;
};

constexpr std::uint32_t kInt = 0x8000'0000;  // the smallest u32 that is a negative int

// The wakeup fields of perf_event_attr: wakeup_watermark if `watermark`, else wakeup_events.
struct Wakeup {
  bool watermark;
  std::uint32_t value;
};

Settings with(Settings settings, Wakeup wakeup) {
  settings.watermark = wakeup.watermark;
  settings.wakeup = wakeup.value;
  return settings;
}

rc::Gen<Settings> any_wakeups() {
  return rc::gen::mapcat(settings(), [](const Settings& of) {
    const auto size = static_cast<std::uint32_t>(size_of(of));
    std::vector<Wakeup> wakeups;
    for (const std::uint32_t events : {1U, 2U, 0U, 3U, 1000U, kInt - 1, kInt}) {
      wakeups.push_back({false, events});
    }
    for (const std::uint32_t bytes : {1U, 64U, 1000U, size / 2, size, 0U, kInt, ~0U}) {
      wakeups.push_back({true, bytes});
    }
    return rc::gen::map(one_of(wakeups), [of](Wakeup wakeup) { return with(of, wakeup); });
  });
}

// Upper bounds of what may be unread in a ring while its consumer sleeps (K30).
struct Leftover {
  std::uint64_t bytes;
  std::uint64_t samples;
};
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// The bounds if no output interrupts another.
Leftover allowed(const Settings& settings) {
  const std::uint64_t half = size_of(settings) / 2;
  if (settings.watermark) {
    const std::uint64_t watermark = settings.wakeup;
    if (settings.word == kernel::Word::k32 && watermark >= kInt) return {kAny, kAny};
    return {watermark == 0 ? half : std::min<std::uint64_t>(watermark, size_of(settings)), kAny};
  }
  const std::uint64_t events = settings.wakeup;
  return {half, events == 0 ? kAny : events >= kInt ? 0 : events - 1};
}

// The bounds if outputs interrupt one another, up to three deep. An output that is interrupted
// between reading and updating rb->wakeup updates it a second time. A count of events may therefore
// lag by wakeup_events for each of two interrupted outputs, unless wakeup_events is 1. A watermark
// may run ahead of the head by any number of bytes (harness/kernel/moments_test.cc).
Leftover allowed_with_interrupts(const Settings& settings) {
  const std::uint64_t samples = allowed(settings).samples;
  const bool counts = samples != 0 && samples != kAny;
  return {settings.wakeup == 1 && !settings.watermark ? allowed(settings).bytes : kAny,
          counts ? 3 * (samples + 1) - 1 : samples};
}

// The moment between the two lines of perf_output_get_handle(). The record of an interrupt at this
// moment is published by the interrupted output, but its wakeup may be lost: see
// TheKernelCanForgetAWakeup.
constexpr unsigned kForgetful = 2;

std::vector<Step> without_forgetting(std::vector<Step> steps) {
  for (Step& each : steps) {
    if (each.depth != 0 && each.at == kForgetful && each.action == Action::Output) each.at = 0;
  }
  return steps;
}

const Mix kProducers{{StepKind::Output, StepKind::Output, StepKind::Poll, StepKind::Poll}, 2};

// Replaces nested outputs by polls: the consumer runs between outputs and in the middle of each,
// but no output interrupts another.
std::vector<Step> without_interrupts(std::vector<Step> steps) {
  std::erase_if(steps, [](const Step& each) { return each.depth > 1; });
  for (Step& each : steps) {
    if (each.depth == 1) each = {.action = Action::Poll, .depth = 1, .at = each.at};
  }
  return steps;
}

template <class Cpu, class Waiter>
void sleeps_well(const Settings& of, std::size_t count, const std::vector<Step>& steps,
                 const Leftover& may) {
  Rings<Cpu, Waiter> rings{of, count};
  rings.run(steps);
  rings.fall_asleep();
  for (const auto& run : rings.runs()) {
    expect_good(*run);
    RC_ASSERT_INVARIANT(awake, run->ledger().pending() <= may.samples);
    RC_ASSERT_INVARIANT(awake, run->unread() <= may.bytes);
  }
}

// With PerfBuffer's own settings nothing is left unread, so no timeout is needed.
template <class Cpu, class Waiter>
void never_sleeps_with_data() {
  const Settings of = *settings();
  sleeps_well<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                           without_forgetting(*steps(kProducers)), allowed(of));
}

TEST(WaitLoopTest, AWaiterByPollNeverSleepsWithData) {
  always(never_sleeps_with_data<ScriptCpu, Waiter<ByPoll>>, 500);
}
TEST(WaitLoopTest, AWaiterByEpollNeverSleepsWithData) {
  always(never_sleeps_with_data<ScriptCpu, Waiter<ByEpoll>>, 500);
}
TEST(WaitLoopTest, FindsAKernelThatWakesNobody) {
  EXPECT_TRUE((counterexample(
      never_sleeps_with_data<faults::WakesNobody<ScriptCpu>, Waiter<ByPoll>>, Invariant::awake)));
  EXPECT_TRUE((counterexample(
      never_sleeps_with_data<faults::WakesNobody<ScriptCpu>, Waiter<ByEpoll>>, Invariant::awake)));
}
TEST(WaitLoopTest, FindsAKernelThatWakesEverySecondTime) {
  EXPECT_TRUE((counterexample(
      never_sleeps_with_data<faults::WakesEverySecondTime<ScriptCpu>, Waiter<ByPoll>>,
      Invariant::awake)));
}
TEST(WaitLoopTest, FindsAKernelThatWakesBeforePublishing) {
  EXPECT_TRUE((counterexample(
      never_sleeps_with_data<faults::WakesBeforePublishing<ScriptCpu>, Waiter<ByPoll>>,
      Invariant::awake)));
}
TEST(WaitLoopTest, FindsAConsumerWithoutAFirstDrain) {
  EXPECT_TRUE((counterexample(
      never_sleeps_with_data<ScriptCpu, Waiter<ByEpoll, Waits::NoFirstDrain>>, Invariant::awake)));
}
TEST(WaitLoopTest, FindsAConsumerThatClearsAfterTheDrain) {
  EXPECT_TRUE(
      (counterexample(never_sleeps_with_data<ScriptCpu, Waiter<ByPoll, Waits::ClearsAfterDrain>>,
                      Invariant::awake)));
}
TEST(WaitLoopTest, FindsAConsumerThatDrainsOneRing) {
  EXPECT_TRUE((counterexample(
      never_sleeps_with_data<ScriptCpu, Waiter<ByPoll, Waits::DrainsOneRing>>, Invariant::awake)));
}

template <class Cpu, class Waiter>
void leaves_what_settings_say(const Settings& of) {
  sleeps_well<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                           without_interrupts(*steps(kProducers)), allowed(of));
}
template <class Cpu, class Waiter>
void leaves_what_any_settings_say() {
  leaves_what_settings_say<Cpu, Waiter>(*any_wakeups());
}

TEST(WaitLoopTest, ByPollNoMoreStaysThanTheWakeupSettingsLeave) {
  always(leaves_what_any_settings_say<ScriptCpu, Waiter<ByPoll>>, 500);
}
TEST(WaitLoopTest, ByEpollNoMoreStaysThanTheWakeupSettingsLeave) {
  always(leaves_what_any_settings_say<ScriptCpu, Waiter<ByEpoll>>, 500);
}

// The bounds are tight: a wakeup that comes one record late exceeds each of them.
template <class Late, class Waiter>
void finds_a_late_wakeup() {
  EXPECT_TRUE((counterexample(leaves_what_any_settings_say<Late, Waiter>, Invariant::awake)));
  for (const std::uint32_t events : {1U, 2U, 3U, kInt}) {
    EXPECT_TRUE(counterexample(
        [=] {
          const Settings of = with(*settings(), {false, events});
          leaves_what_settings_say<Late, Waiter>(of);
        },
        Invariant::awake))
        << events;
  }
  for (const std::uint32_t watermark : {0U, 64U, 1000U, 4096U}) {
    EXPECT_TRUE(counterexample(
        [=] {
          Settings of = with(*settings(), {true, watermark});
          of.pages = 2;  // so that there is room for more than the largest watermark
          leaves_what_settings_say<Late, Waiter>(of);
        },
        Invariant::awake))
        << watermark;
  }
}
TEST(WaitLoopTest, FindsAKernelThatWakesOneRecordLate) {
  using Late = faults::WakesOneRecordLate<ScriptCpu>;
  finds_a_late_wakeup<Late, Waiter<ByPoll>>();
  finds_a_late_wakeup<Late, Waiter<ByEpoll>>();
}

template <class Cpu, class Waiter>
void leaves_what_interrupts_make_of_it() {
  const Settings of = *any_wakeups();
  sleeps_well<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                           without_forgetting(*steps(kProducers)), allowed_with_interrupts(of));
}

TEST(WaitLoopTest, InterruptsLeaveAtMostThreeIntervalsUnread) {
  always(leaves_what_interrupts_make_of_it<ScriptCpu, Waiter<ByPoll>>, 500);
  always(leaves_what_interrupts_make_of_it<ScriptCpu, Waiter<ByEpoll>>, 500);
}
TEST(WaitLoopTest, FindsAKernelThatWakesNobodyBesideInterrupts) {
  EXPECT_TRUE((counterexample(
      leaves_what_interrupts_make_of_it<faults::WakesNobody<ScriptCpu>, Waiter<ByPoll>>,
      Invariant::awake)));
  EXPECT_TRUE((counterexample(
      leaves_what_interrupts_make_of_it<faults::WakesNobody<ScriptCpu>, Waiter<ByEpoll>>,
      Invariant::awake)));
}

// The generated interrupts do hit those moments: the bounds for outputs in a row do not hold here.
void leaves_the_same_with_interrupts(Wakeup wakeup) {
  const Settings of = with(*settings(), wakeup);
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint64_t>({4, 36});
  sleeps_well<ScriptCpu, Waiter<ByPoll>>(of, 1, without_forgetting(*steps(mix)), allowed(of));
}

TEST(WaitLoopTest, InterruptsStretchTheIntervals) {
  EXPECT_TRUE(
      counterexample([] { leaves_the_same_with_interrupts({false, 3}); }, Invariant::awake));
  EXPECT_TRUE(
      counterexample([] { leaves_the_same_with_interrupts({true, 64}); }, Invariant::awake));
}

// The reason to wait with a timeout even if wakeup_events is 1.
template <class Waiter>
void never_sleeps_whatever_the_interrupts() {
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint64_t>({0, 4061, 36});  // rings that are soon full
  const Settings of = *settings();
  sleeps_well<ScriptCpu, Waiter>(of, 1, *steps(mix), allowed(of));
}

TEST(WaitLoopTest, TheKernelCanForgetAWakeup) {
  EXPECT_TRUE(
      counterexample(never_sleeps_whatever_the_interrupts<Waiter<ByPoll>>, Invariant::awake));
}

// With a timeout, data is delivered late at worst, under any settings and interrupts.
template <class Waiter>
void empties_after_a_timeout() {
  Rings<ScriptCpu, Waiter> rings{*any_wakeups(), *rc::gen::inRange<std::size_t>(1, 4)};
  rings.run(*steps(kProducers));
  rings.fall_asleep();
  rings.times_out();
  for (const auto& run : rings.runs()) {
    RC_ASSERT_INVARIANT(awake, run->ledger().pending() == 0U);
    run->settle();
    expect_good(*run);
  }
}

TEST(WaitLoopTest, AfterATimeoutTheRingsAreEmpty) {
  always(empties_after_a_timeout<Waiter<ByPoll>>);
  always(empties_after_a_timeout<Waiter<ByEpoll>>);
}
TEST(WaitLoopTest, FindsAConsumerThatDrainsOneRingAfterATimeout) {
  EXPECT_TRUE((counterexample(empties_after_a_timeout<Waiter<ByPoll, Waits::DrainsOneRing>>,
                              Invariant::awake)));
}

}  // namespace
}  // namespace perfring::proptests
