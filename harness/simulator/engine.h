#ifndef HARNESS_SIMULATOR_ENGINE_H_
#define HARNESS_SIMULATOR_ENGINE_H_

// simulate(), for any kernel and any consumer, the faulty ones too.

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>

#include "harness/simulator/consumer.h"
#include "harness/simulator/producer.h"
#include "harness/simulator/simulation.h"
#include "harness/simulator/site.h"
#include "harness/simulator/world.h"

namespace perfring::simulator {

// The part that does not depend on them.
class Engine {
 public:
  Engine(const SimulationPlan& plan, const Observer& observer, bool sound_writers);

  World& world() { return world_; }
  std::deque<Site>& sites() { return sites_; }
  template <class Writer>
  void add_writer(Site& site, Writer& writer) {
    ++writers_;
    site.set_producer(world_.scheduler.add([this, &writer] {
      writer.run();
      --writers_;
    }));
  }
  // Runs the tasks that the sites were given.
  SimulationOutcome run();

 private:
  using Clock = std::chrono::steady_clock;

  void before_turn();
  void look_for_violation();
  void drain_what_is_left();
  SimulationOutcome outcome() const;

  const Observer& observer_;
  const double started_;
  World world_;
  std::deque<Site> sites_;
  std::uint64_t writers_ = 0;  // that are not done
  std::optional<Found> found_;
  bool interrupted_ = false;
  std::uint32_t turns_ = 0;
  Clock::time_point reported_ = Clock::now();
};

// Each CPU has its own consumer, whatever the settings say.
template <class C, class Drain>
SimulationOutcome simulate_with(const SimulationPlan& of, const Observer& observer) {
  SimulationPlan plan = of;
  plan.settings.rings = plan.settings.latency = plan.settings.hotplug = 0;
  plan.settings.flush_one_in = 0;
  Engine engine{plan, observer, std::is_same_v<C, SimulatedCpu>};
  std::deque<Producer<C>> producers;
  std::deque<Consumer<Drain>> consumers;
  std::deque<Intruder> intruders;
  for (Site& site : engine.sites()) {
    Scheduler& scheduler = engine.world().scheduler;
    consumers.emplace_back(site);
    site.set_consumer(scheduler.add([&consumer = consumers.back()] { consumer.run(); }));
    if (plan.settings.hostile != 0) {
      intruders.emplace_back(site);
      engine.add_writer(site, intruders.back());
    } else {
      producers.emplace_back(site);
      engine.add_writer(site, producers.back());
    }
  }
  return engine.run();
}

// The faults of one consumer of several rings. Those of a merge come first.
enum class ManyFault : std::uint8_t {
  None,
  TrustsFifo,
  WindowOfOne,
  LooksBeforeTheClock,
  ForgetsTheSlack,
  WaitsForIdleRings,
  ReleasesOneEarly,
  DropsTheLate,
  HidesTheLate,
  SleepsOnTheYoung,
  ReadsOneRing,
  IgnoresTheLimit,
  SleepsOnTheLimit,
  SleepsAfterTheSwitch,
  ForgetsTheGone,
  FlushesWithoutABarrier,
  BarrierAfterTheRound,
};

// simulate(), with one consumer of all rings: lib's Merge, or its Ring in turns, in the loop of
// RingSet. settings.rings says which.
SimulationOutcome simulate_many(const SimulationPlan& plan, const Observer& observer,
                                ManyFault fault);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_ENGINE_H_
