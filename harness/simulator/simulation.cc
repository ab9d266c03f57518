#include "harness/simulator/simulation.h"

#include <time.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>

#include "harness/simulator/engine.h"
#include "harness/simulator/random.h"
#include "harness/simulator/simulated_consumer.h"
#include "harness/simulator/simulated_producer.h"
#include "harness/simulator/site.h"
#include "harness/simulator/world.h"

namespace perfring::simulator {
namespace {

constexpr std::uint32_t kTurnsBetweenPolls = 256;
constexpr auto kReportInterval = std::chrono::milliseconds{500};

double processor_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

std::uint64_t SimulationOutcome::attempts() const {
  return std::accumulate(
      cpus.begin(), cpus.end(), std::uint64_t{0},
      [](std::uint64_t sum, const CpuTotals& cpu) { return sum + cpu.attempted.attempts(); });
}

Engine::Engine(const SimulationPlan& plan, const Observer& observer, bool sound_writers)
    : observer_{observer},
      started_{processor_seconds()},
      world_{plan.seed, plan.settings, plan.steps, sound_writers} {
  for (std::uint64_t i = 0; i < plan.settings.cpus; ++i) {
    sites_.emplace_back(world_, static_cast<int>(i));
  }
}

void Engine::add_writer(Site& site, std::unique_ptr<Writer> writer) {
  ++writing_;
  writers_.push_back(std::move(writer));
  site.set_producer(world_.scheduler.add([this, &running = *writers_.back()] {
    running.run();
    --writing_;
  }));
}

void Engine::look_for_violation() {
  if (found_) return;
  for (const Site& site : sites_) {
    const auto& violation = site.judge().violation();
    if (!violation) continue;
    found_ = Found{*violation, world_.scheduler.now(), site.cpu()};
    world_.enter(Phase::Stopping);
    world_.scheduler.stop_interrupting();
    for (Site& each : sites_) each.consumer().wake();
    return;
  }
}

void Engine::before_turn() {
  look_for_violation();
  if (writing_ == 0 && !world_.consumers_end()) drain_rest();
  if (++turns_ % kTurnsBetweenPolls != 0) return;
  if (observer_.stop != nullptr && observer_.stop->load() && !interrupted_) {
    interrupted_ = true;
    if (world_.phase() == Phase::Writing) world_.enter(Phase::Ending);
  }
  if (!observer_.on_progress || Clock::now() - reported_ < kReportInterval) return;
  reported_ = Clock::now();
  observer_.on_progress(world_.scheduler.now());
}

// The writers are done: nothing more will be announced.
void Engine::drain_rest() {
  for (Site& site : sites_) site.check_awake();
  world_.enter(Phase::Draining);
  for (Site& site : sites_) site.consumer().wake();
}

SimulationOutcome Engine::run() {
  world_.scheduler.run([this] { before_turn(); });
  if (!found_) {
    for (Site& site : sites_) site.judge().settle();
  }
  look_for_violation();
  return outcome();
}

SimulationOutcome Engine::outcome() const {
  SimulationOutcome outcome;
  outcome.steps = world_.scheduler.now();
  outcome.seconds = processor_seconds() - started_;
  outcome.interrupted = interrupted_;
  outcome.found = found_;
  Digest digest = world_.digest;
  for (const Site& site : sites_) {
    outcome.drains += site.drains().count();
    outcome.wakeups += site.wakeups();
    digest.add(site.page().data_head);
    digest.add(site.page().data_tail);
    digest.add(site.ledger().totals().attempts());
    outcome.cpus.push_back(
        {site.ledger().totals(), site.judge().received(), site.ledger().unreported()});
  }
  outcome.digest = digest.value();
  outcome.late = world_.order.late();
  outcome.longest_delay = world_.order.longest_delay();
  return outcome;
}

SimulationOutcome simulate_with(const SimulationPlan& of, const Observer& observer,
                                DrainFactory drain_factory, WriterFactory writer_factory,
                                bool sound_writers) {
  SimulationPlan plan = of;
  plan.settings.rings = plan.settings.latency = plan.settings.hotplug = 0;
  plan.settings.flush_one_in = 0;
  Engine engine{plan, observer, sound_writers};
  std::deque<Consumer> consumers;
  for (Site& site : engine.sites()) {
    consumers.emplace_back(site, drain_factory(site));
    site.set_consumer(
        engine.world().scheduler.add([&consumer = consumers.back()] { consumer.run(); }));
    engine.add_writer(
        site, plan.settings.hostile != 0 ? std::make_unique<Intruder>(site) : writer_factory(site));
  }
  return engine.run();
}

SimulationOutcome simulate(const SimulationPlan& plan, const Observer& observer) {
  if (plan.settings.rings != kOwnConsumers) return simulate_many(plan, observer, ManyFault::None);
  return simulate_with<SimulatedCpu, RingDrain<>>(plan, observer);
}

}  // namespace perfring::simulator
