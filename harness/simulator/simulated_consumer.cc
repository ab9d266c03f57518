#include "harness/simulator/simulated_consumer.h"

#include <utility>

#include "harness/kernel/perf_event.h"
#include "harness/oracle/invariant.h"
#include "harness/simulator/random.h"
#include "harness/simulator/settings.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kHostilePause = 50;
constexpr std::uint64_t kPauseMax = 2000;

}  // namespace

Consumer::Consumer(Site& site, std::unique_ptr<AnyDrain> drain)
    : site_{site},
      drain_{std::move(drain)},
      can_break_off_{site.world().settings.drain_with == kTryFold ||
                     site.world().settings.drain_with == kCursor},
      may_never_be_empty_{site.world().settings.hostile != 0},
      timeout_{may_never_be_empty_ ? kHostilePause : site.world().settings.timeout} {}

void Consumer::run() {
  enter();
  drain_until_empty();
  while (!site_.world().consumers_end()) {
    site_.wait(timeout_);
    enter();
    pause_sometimes();
    drain_until_empty();
  }
  drain_until_empty();
}

void Consumer::drain_until_empty() {
  for (;;) {
    const bool idle = site_.world().consumers_end();  // nobody writes any more
    drain_once();
    if (may_never_be_empty_ || site_.judge().violation() || !drain_->readable()) return;
    if (idle && !stopped_) break;
  }
  site_.judge().violate(oracle::Invariant::bounded,
                        "a drain of an idle ring ended, and the ring is still readable");
}

void Consumer::drain_once() {
  over_ = stopped_ = false;
  site_.drains().begin_drain();
  try {
    drain_->drain([this](const PerfEvent& event) { return visit(event); });
  } catch (const Thrown&) {
    stopped_ = true;
  }
  stopped_ = stopped_ || over_;
  site_.drains().end_drain();
}

bool Consumer::visit(const PerfEvent& event) {
  if (over_) {
    site_.judge().violate(oracle::Invariant::once, "an event was delivered after the drain's last");
  }
  const bool continues = handle_event(event);
  over_ = !continues && can_break_off_;
  return continues;
}

bool Consumer::handle_event(const PerfEvent& event) {
  const RunSettings& settings = site_.world().settings;
  site_.drains().check_delivery(event);
  if (site_.judge().violation()) return false;
  if (settings.callback_max != 0) dwell(event);
  Random& random = site_.world().scheduler.random();
  if (random.one_in(static_cast<std::uint32_t>(settings.throw_one_in))) throw Thrown{};
  return !random.one_in(static_cast<std::uint32_t>(settings.break_one_in));
}

// Simulates a slow callback, at the end of which the event must be unchanged.
void Consumer::dwell(const PerfEvent& event) {
  const auto steps = site_.world().scheduler.random().between(
      0, static_cast<std::uint32_t>(site_.world().settings.callback_max));
  for (std::uint32_t i = 0; i < steps; ++i) SimulatedMemory::step();
  site_.judge().check_finished(event);
}

void Consumer::pause_sometimes() {
  Random& random = site_.world().scheduler.random();
  if (!random.one_in(static_cast<std::uint32_t>(site_.world().settings.pause_one_in))) return;
  kernel::perf_event_pause_output(site_.event(), true);
  site_.consumer().sleep_until(site_.world().scheduler.now() + random.below(kPauseMax));
  kernel::perf_event_pause_output(site_.event(), false);
  site_.ledger().note_interruption();  // its writer may have found the ring paused
  enter();
}

}  // namespace perfring::simulator
