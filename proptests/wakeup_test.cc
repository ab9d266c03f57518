// A consumer that follows the README's wait loop never sleeps with data in its rings, but for what
// the wakeup settings leave there; and after a timeout there is nothing left, whatever they are.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "proptests/faulty_kernels.h"
#include "proptests/plan.h"
#include "proptests/property.h"
#include "proptests/waiters.h"
#include "proptests/world.h"

namespace perfring::proptests {
namespace {

using Kind = Action::Kind;

// One thread that consumes several rings, and their producers.
template <class Cpu, class Waiter>
class Rings {
 public:
  Rings(const Settings& settings, std::size_t count) {
    std::vector<kernel::perf_event*> events;
    std::vector<std::function<void()>> drains;
    for (std::size_t i = 0; i < count; ++i) {
      worlds_.push_back(std::make_unique<World<Cpu>>(settings));
      World<Cpu>& world = *worlds_.back();
      events.push_back(&world.ring().event());
      drains.push_back([&world] { world.drain({Kind::Drain}); });
      world.set_consumer([this] { step(); });
    }
    waiter_ = std::make_unique<Waiter>(events, std::move(drains));
  }

  // The actions go to the rings in turn.
  void run(const std::vector<Action>& actions) {
    for (std::size_t i = 0; i < actions.size(); ++i) worlds_[i % worlds_.size()]->run(actions[i]);
  }

  // The producers are done: the consumer goes on until it sleeps, and nobody wakes it any more.
  void fall_asleep() {
    for (int i = 0; i < 20; ++i) step();
    RC_ASSERT(waiter_->asleep());
  }
  void times_out() {
    waiter_->times_out();
    fall_asleep();
  }
  void step() { waiter_->step(); }

  const std::vector<std::unique_ptr<World<Cpu>>>& worlds() const { return worlds_; }

 private:
  std::vector<std::unique_ptr<World<Cpu>>> worlds_;
  std::unique_ptr<Waiter> waiter_;
};

constexpr std::uint32_t kInt = 0x8000'0000;  // what an int takes for negative

rc::Gen<Settings> any_wakeups() {
  return rc::gen::mapcat(settings(), [](const Settings& of) {
    const auto size = static_cast<std::uint32_t>(of.size());
    return rc::gen::build<Settings>(
        rc::gen::just(of),
        rc::gen::set(&Settings::wakeup_events,
                     one_of<std::uint32_t>({1, 2, 0, 3, 1000, kInt - 1, kInt})),
        rc::gen::set(&Settings::wakeup_watermark,
                     one_of<std::optional<std::uint32_t>>(
                         {std::nullopt, 1U, 64U, 1000U, size / 2, size, 0U, kInt, ~0U})));
  });
}

// What may be unread in a ring while its consumer sleeps: K30, seen from there.
struct Leftover {
  std::uint64_t bytes;
  std::uint64_t samples;
};
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// Where outputs come one after the other.
Leftover allowed(const Settings& settings) {
  const std::uint64_t half = settings.size() / 2;
  if (settings.wakeup_watermark) {
    const std::uint32_t watermark = *settings.wakeup_watermark;
    if (settings.word == kernel::Word::k32 && watermark >= kInt) return {kAny, kAny};
    return {watermark == 0 ? half : std::min<std::uint64_t>(watermark, settings.size()), kAny};
  }
  const std::uint32_t events = settings.wakeup_events;
  return {half, events == 0 ? kAny : events >= kInt ? 0 : events - 1};
}

// Where they interrupt one another, three deep: each that is interrupted between its look and what
// it does about it does so once more. So a count of events may lag behind by wakeup_events for each
// of two, unless that is 1; and a watermark may run ahead of the head, any number of bytes
// (harness/kernel/moments_test.cc).
Leftover allowed_with_interrupts(const Settings& settings) {
  const std::uint64_t samples = allowed(settings).samples;
  const bool counts = samples != 0 && samples != kAny;
  return {
      settings.wakeup_events == 1 && !settings.wakeup_watermark ? allowed(settings).bytes : kAny,
      counts ? 3 * (samples + 1) - 1 : samples};
}

// An interrupt's record between the two lines of perf_output_get_handle() is published by the
// output that it interrupts, but its wakeup may be nobody's: see TheKernelCanForgetAWakeup.
constexpr unsigned kForgetful = 2;

std::vector<Action> without_forgetting(std::vector<Action> actions) {
  for (Action& each : actions) {
    for (Action& nested : each.nested) {
      if (nested.at == kForgetful && nested.kind == Kind::Output) nested.at = 0;
    }
    each.nested = without_forgetting(std::move(each.nested));
  }
  return actions;
}

const Mix kProducers{{Kind::Output, Kind::Output, Kind::Consume, Kind::Consume}, 2};

// Outputs between which, and in whose midst, the consumer goes on; but no other output.
std::vector<Action> without_interrupts(std::vector<Action> actions) {
  for (Action& each : actions) {
    for (Action& nested : each.nested) nested.kind = Kind::Consume;
  }
  return actions;
}

template <class Cpu, class Waiter>
void sleeps_well(const Settings& of, std::size_t count, const std::vector<Action>& actions,
                 const Leftover& may) {
  Rings<Cpu, Waiter> rings{of, count};
  rings.run(actions);
  rings.fall_asleep();
  for (const auto& world : rings.worlds()) {
    expect_good(*world);
    RC_ASSERT(world->ledger().pending() <= may.samples);
    RC_ASSERT(world->unread() <= may.bytes);
  }
}

// PerfBuffer's own settings: nothing is left. No timeout needed.
template <class Cpu, class Waiter>
void never_sleeps_with_data() {
  const Settings of = *settings();
  sleeps_well<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                           without_forgetting(*actions(kProducers)), allowed(of));
}

TEST(Waiting, NeverSleepsWithDataByPoll) {
  always(never_sleeps_with_data<WatchedCpu, Waiter<ByPoll>>, 500);
}
TEST(Waiting, NeverSleepsWithDataByEpoll) {
  always(never_sleeps_with_data<WatchedCpu, Waiter<ByEpoll>>, 500);
}
TEST(Waiting, FindsAKernelThatWakesNobody) {
  EXPECT_TRUE((counterexample(never_sleeps_with_data<WakesNobody, Waiter<ByPoll>>)));
  EXPECT_TRUE((counterexample(never_sleeps_with_data<WakesNobody, Waiter<ByEpoll>>)));
}
TEST(Waiting, FindsAConsumerThatRegistersLate) {
  EXPECT_TRUE((counterexample(never_sleeps_with_data<WatchedCpu, RegistersLate>)));
}
TEST(Waiting, FindsAConsumerThatClearsFlags) {
  EXPECT_TRUE((counterexample(never_sleeps_with_data<WatchedCpu, ClearsFlags>)));
}
TEST(Waiting, FindsAConsumerThatDrainsOneRing) {
  EXPECT_TRUE((counterexample(never_sleeps_with_data<WatchedCpu, DrainsOneRing>)));
}

template <class Cpu, class Waiter>
void leaves_what_settings_say(const Settings& of) {
  sleeps_well<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                           without_interrupts(*actions(kProducers)), allowed(of));
}
template <class Cpu, class Waiter>
void leaves_what_any_settings_say() {
  leaves_what_settings_say<Cpu, Waiter>(*any_wakeups());
}

TEST(Waiting, LeavesNoMoreThanTheSettingsSayByPoll) {
  always(leaves_what_any_settings_say<WatchedCpu, Waiter<ByPoll>>, 500);
}
TEST(Waiting, LeavesNoMoreThanTheSettingsSayByEpoll) {
  always(leaves_what_any_settings_say<WatchedCpu, Waiter<ByEpoll>>, 500);
}

// Each bound is one that a wakeup that comes one record late exceeds.
template <class Waiter>
void finds_a_late_wakeup() {
  EXPECT_TRUE((counterexample(leaves_what_any_settings_say<WakesOneLate, Waiter>)));
  for (const std::uint32_t events : {1U, 2U, 3U, kInt}) {
    EXPECT_TRUE(counterexample([=] {
      Settings of = *settings();
      of.wakeup_events = events;
      leaves_what_settings_say<WakesOneLate, Waiter>(of);
    })) << events;
  }
  for (const std::uint32_t watermark : {0U, 64U, 1000U, 4096U}) {
    EXPECT_TRUE(counterexample([=] {
      Settings of = *settings();
      of.pages = 2;  // the largest leaves room for one that exceeds it
      of.wakeup_watermark = watermark;
      leaves_what_settings_say<WakesOneLate, Waiter>(of);
    })) << watermark;
  }
}
TEST(Waiting, FindsAKernelThatWakesOneRecordLate) {
  finds_a_late_wakeup<Waiter<ByPoll>>();
  finds_a_late_wakeup<Waiter<ByEpoll>>();
}

template <class Cpu, class Waiter>
void leaves_what_interrupts_make_of_it() {
  const Settings of = *any_wakeups();
  sleeps_well<Cpu, Waiter>(of, *rc::gen::inRange<std::size_t>(1, 4),
                           without_forgetting(*actions(kProducers)), allowed_with_interrupts(of));
}

TEST(Waiting, LeavesNoMoreThanInterruptsMakeOfTheSettings) {
  always(leaves_what_interrupts_make_of_it<WatchedCpu, Waiter<ByPoll>>, 500);
  always(leaves_what_interrupts_make_of_it<WatchedCpu, Waiter<ByEpoll>>, 500);
}
TEST(Waiting, FindsAKernelThatWakesNobodyBesideInterrupts) {
  EXPECT_TRUE((counterexample(leaves_what_interrupts_make_of_it<WakesNobody, Waiter<ByPoll>>)));
  EXPECT_TRUE((counterexample(leaves_what_interrupts_make_of_it<WakesNobody, Waiter<ByEpoll>>)));
}

// Interrupts do come at those moments: what holds of outputs in a row does not hold of them.
void leaves_the_same_with_interrupts(std::uint32_t events, std::optional<std::uint32_t> watermark) {
  Settings of = *settings();
  of.wakeup_events = events;
  of.wakeup_watermark = watermark;
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint32_t>({4, 36});
  sleeps_well<WatchedCpu, Waiter<ByPoll>>(of, 1, without_forgetting(*actions(mix)), allowed(of));
}

TEST(Waiting, InterruptsStretchTheIntervals) {
  EXPECT_TRUE(counterexample([] { leaves_the_same_with_interrupts(3, std::nullopt); }));
  EXPECT_TRUE(counterexample([] { leaves_the_same_with_interrupts(1, 64); }));
}

// Why to wait with a timeout, even with wakeup_events = 1.
template <class Waiter>
void never_sleeps_whatever_the_interrupts() {
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint32_t>({0, 4061, 36});  // rings that are soon full
  const Settings of = *settings();
  sleeps_well<WatchedCpu, Waiter>(of, 1, *actions(mix), allowed(of));
}

TEST(Waiting, TheKernelCanForgetAWakeup) {
  EXPECT_TRUE(counterexample(never_sleeps_whatever_the_interrupts<Waiter<ByPoll>>));
}

// With the timeout, all of that is only late: any settings, any interrupts.
template <class Waiter>
void empties_after_a_timeout() {
  Rings<WatchedCpu, Waiter> rings{*any_wakeups(), *rc::gen::inRange<std::size_t>(1, 4)};
  rings.run(*actions(kProducers));
  rings.fall_asleep();
  rings.times_out();
  for (const auto& world : rings.worlds()) {
    RC_ASSERT(world->ledger().pending() == 0U);
    world->settle();
    expect_good(*world);
  }
}

TEST(Waiting, EmptiesTheRingsAfterATimeout) {
  always(empties_after_a_timeout<Waiter<ByPoll>>);
  always(empties_after_a_timeout<Waiter<ByEpoll>>);
}
TEST(Waiting, FindsThatATimeoutIsOfNoUseToWhoDrainsOneRing) {
  EXPECT_TRUE(counterexample(empties_after_a_timeout<DrainsOneRing>));
}

}  // namespace
}  // namespace perfring::proptests
