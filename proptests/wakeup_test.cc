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
Leftover allowed(const Settings& settings) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t half = settings.size() / 2;
  if (settings.wakeup_watermark) {
    const std::uint32_t watermark = *settings.wakeup_watermark;
    if (settings.word == kernel::Word::k32 && watermark >= kInt) return {any, any};
    return {watermark == 0 ? half : std::min<std::uint64_t>(watermark, settings.size()), any};
  }
  const std::uint32_t events = settings.wakeup_events;
  return {half, events == 0 ? any : events >= kInt ? 0 : events - 1};
}

// An interrupt's record between the two lines of perf_output_get_handle() is published by the
// output that it interrupts, but its wakeup may be nobody's: see TheKernelCanForgetAWakeup.
constexpr unsigned kForgetful = 1;

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

template <class Cpu, class Waiter>
void sleeps_well(const Settings& of, std::size_t count, const std::vector<Action>& actions) {
  Rings<Cpu, Waiter> rings{of, count};
  rings.run(actions);
  rings.fall_asleep();
  for (const auto& world : rings.worlds()) {
    expect_good(*world);
    RC_ASSERT(world->ledger().pending() <= allowed(of).samples);
    RC_ASSERT(world->unread() <= allowed(of).bytes);
  }
}

// PerfBuffer's own settings: nothing is left. No timeout needed.
template <class Cpu, class Waiter>
void never_sleeps_with_data() {
  sleeps_well<Cpu, Waiter>(*settings(), *rc::gen::inRange<std::size_t>(1, 4),
                           without_forgetting(*actions(kProducers)));
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
void leaves_what_settings_say() {
  sleeps_well<Cpu, Waiter>(*any_wakeups(), *rc::gen::inRange<std::size_t>(1, 4),
                           without_forgetting(*actions(kProducers)));
}

TEST(Waiting, LeavesNoMoreThanTheSettingsSayByPoll) {
  always(leaves_what_settings_say<WatchedCpu, Waiter<ByPoll>>, 500);
}
TEST(Waiting, LeavesNoMoreThanTheSettingsSayByEpoll) {
  always(leaves_what_settings_say<WatchedCpu, Waiter<ByEpoll>>, 500);
}

// Why to wait with a timeout, even with wakeup_events = 1.
template <class Waiter>
void never_sleeps_whatever_the_interrupts() {
  Mix mix = kProducers;
  mix.payloads = one_of<std::uint32_t>({0, 4061, 36});  // rings that are soon full
  sleeps_well<WatchedCpu, Waiter>(*settings(), 1, *actions(mix));
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
