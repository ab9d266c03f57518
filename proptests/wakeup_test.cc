// A consumer that follows the README's wait loop never sleeps while its rings hold more unread data
// than its wakeup settings allow. After a timeout it leaves the rings empty.

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

  // Each ring in turn performs the next step, together with the steps nested in it.
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

constexpr std::uint32_t kSignBit = 0x8000'0000;  // negative as an int

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
    for (const std::uint32_t events : {1U, 2U, 0U, 3U, 1000U, kSignBit - 1, kSignBit}) {
      wakeups.push_back({false, events});
    }
    for (const std::uint32_t bytes : {1U, 64U, 1000U, size / 2, size, 0U, kSignBit, ~0U}) {
      wakeups.push_back({true, bytes});
    }
    return rc::gen::map(one_of(wakeups), [of](Wakeup wakeup) { return with(of, wakeup); });
  });
}

// The most that may be unread in a ring while its consumer sleeps (K30).
struct MostUnread {
  std::uint64_t bytes;
  std::uint64_t samples;
};
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// If no output interrupts another.
MostUnread most_unread(const Settings& settings) {
  const std::uint64_t half = size_of(settings) / 2;
  if (settings.watermark) {
    const std::uint64_t watermark = settings.wakeup;
    if (settings.word == kernel::Word::k32 && watermark >= kSignBit) return {kAny, kAny};
    return {watermark == 0 ? half : std::min<std::uint64_t>(watermark, size_of(settings)), kAny};
  }
  const std::uint64_t events = settings.wakeup;
  return {half, events == 0 ? kAny : events >= kSignBit ? 0 : events - 1};
}

// If outputs interrupt one another, up to three deep. An output that is interrupted between reading
// and updating rb->wakeup updates it a second time. So each of two interrupted outputs may delay
// the wakeup by wakeup_events samples, unless wakeup_events is 1. With a watermark, rb->wakeup may
// be ahead of the head by any number of bytes (harness/kernel/moments_test.cc).
MostUnread most_unread_with_interrupts(const Settings& settings) {
  const std::uint64_t samples = most_unread(settings).samples;
  const bool counts = samples != 0 && samples != kAny;
  return {settings.wakeup == 1 && !settings.watermark ? most_unread(settings).bytes : kAny,
          counts ? 3 * (samples + 1) - 1 : samples};
}

// The moment between the two lines of perf_output_get_handle(). If an interrupt outputs at this
// moment, the interrupted output publishes the interrupt's record, but may lose its wakeup: see
// AnInterruptedOutputMayLoseAWakeup.
constexpr unsigned kLosesWakeup = 2;

std::vector<Step> without_lost_wakeups(std::vector<Step> steps) {
  for (Step& each : steps) {
    if (each.depth != 0 && each.at == kLosesWakeup && each.action == Action::Output) each.at = 0;
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

// Runs the producers' steps and then checks what is unread while the consumer sleeps.
template <class Cpu, class Waiter>
void check_asleep(const Settings& of, std::size_t count, const std::vector<Step>& steps,
                  const MostUnread& most) {
  Rings<Cpu, Waiter> rings{of, count};
  rings.run(steps);
  rings.fall_asleep();
  for (const auto& run : rings.runs()) {
    expect_good(*run);
    RC_ASSERT_INVARIANT(awake, run->ledger().pending() <= most.samples);
    RC_ASSERT_INVARIANT(awake, run->unread() <= most.bytes);
  }
}

// PerfBuffer's own settings leave nothing unread, unless a wakeup is lost.
template <class Cpu, class Waiter>
void never_sleeps_with_data() {
  const Settings of = *settings();
  check_asleep<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                            without_lost_wakeups(*steps(kProducers)), most_unread(of));
}

TEST(WaitLoopTest, PollLoopNeverSleepsWithUnreadData) {
  always(never_sleeps_with_data<ScriptCpu, Waiter<ByPoll>>, 500);
}
TEST(WaitLoopTest, EpollLoopNeverSleepsWithUnreadData) {
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
void leaves_what_settings_allow(const Settings& of) {
  check_asleep<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                            without_interrupts(*steps(kProducers)), most_unread(of));
}
template <class Cpu, class Waiter>
void leaves_what_any_settings_allow() {
  leaves_what_settings_allow<Cpu, Waiter>(*any_wakeups());
}

TEST(WaitLoopTest, PollLoopLeavesOnlyWhatTheSettingsAllow) {
  always(leaves_what_any_settings_allow<ScriptCpu, Waiter<ByPoll>>, 500);
}
TEST(WaitLoopTest, EpollLoopLeavesOnlyWhatTheSettingsAllow) {
  always(leaves_what_any_settings_allow<ScriptCpu, Waiter<ByEpoll>>, 500);
}

// No bound is larger than necessary: a kernel that wakes one record late exceeds each of them.
template <class Late, class Waiter>
void finds_a_late_wakeup() {
  EXPECT_TRUE((counterexample(leaves_what_any_settings_allow<Late, Waiter>, Invariant::awake)));
  for (const std::uint32_t events : {1U, 2U, 3U, kSignBit}) {
    EXPECT_TRUE(counterexample(
        [=] {
          const Settings of = with(*settings(), {false, events});
          leaves_what_settings_allow<Late, Waiter>(of);
        },
        Invariant::awake))
        << events;
  }
  for (const std::uint32_t watermark : {0U, 64U, 1000U, 4096U}) {
    EXPECT_TRUE(counterexample(
        [=] {
          Settings of = with(*settings(), {true, watermark});
          of.pages = 2;  // so that there is room for more than the largest watermark
          leaves_what_settings_allow<Late, Waiter>(of);
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
void leaves_what_interrupts_allow() {
  const Settings of = *any_wakeups();
  check_asleep<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                            without_lost_wakeups(*steps(kProducers)),
                            most_unread_with_interrupts(of));
}

TEST(WaitLoopTest, WithInterruptsAtMostThreeIntervalsAreUnread) {
  always(leaves_what_interrupts_allow<ScriptCpu, Waiter<ByPoll>>, 500);
  always(leaves_what_interrupts_allow<ScriptCpu, Waiter<ByEpoll>>, 500);
}
TEST(WaitLoopTest, FindsAKernelThatWakesNobodyAmidInterrupts) {
  EXPECT_TRUE(
      (counterexample(leaves_what_interrupts_allow<faults::WakesNobody<ScriptCpu>, Waiter<ByPoll>>,
                      Invariant::awake)));
  EXPECT_TRUE(
      (counterexample(leaves_what_interrupts_allow<faults::WakesNobody<ScriptCpu>, Waiter<ByEpoll>>,
                      Invariant::awake)));
}

// The generated interrupts hit the moments that delay a wakeup: they exceed the bounds of outputs
// that do not interrupt one another.
void leaves_no_more_with_interrupts(Wakeup wakeup) {
  const Settings of = with(*settings(), wakeup);
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint64_t>({4, 36});
  check_asleep<ScriptCpu, Waiter<ByPoll>>(of, 1, without_lost_wakeups(*steps(mix)),
                                          most_unread(of));
}

TEST(WaitLoopTest, InterruptsMayLeaveMoreThanTheSettingsAllow) {
  EXPECT_TRUE(counterexample([] { leaves_no_more_with_interrupts({false, 3}); }, Invariant::awake));
  EXPECT_TRUE(counterexample([] { leaves_no_more_with_interrupts({true, 64}); }, Invariant::awake));
}

// The kernel may lose a wakeup, so a consumer waits with a timeout even if wakeup_events is 1.
template <class Waiter>
void never_sleeps_with_any_interrupts() {
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint64_t>({0, 4061, 36});  // rings that are soon full
  const Settings of = *settings();
  check_asleep<ScriptCpu, Waiter>(of, 1, *steps(mix), most_unread(of));
}

TEST(WaitLoopTest, AnInterruptedOutputMayLoseAWakeup) {
  EXPECT_TRUE(counterexample(never_sleeps_with_any_interrupts<Waiter<ByPoll>>, Invariant::awake));
}

// With any settings and interrupts, a timeout delivers all unread data.
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
