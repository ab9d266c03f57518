#ifndef HARNESS_SIMULATOR_ENGINE_H_
#define HARNESS_SIMULATOR_ENGINE_H_

// simulate() for any kernel and any consumer, including faulty ones.

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "harness/simulator/simulated_consumer.h"
#include "harness/simulator/simulated_producer.h"
#include "harness/simulator/simulation.h"
#include "harness/simulator/site.h"
#include "harness/simulator/world.h"

namespace perfring::simulator {

// The part of a simulation that does not depend on the kernel and the consumer.
class Engine {
 public:
  Engine(const SimulationPlan& plan, const Observer& observer, bool sound_writers);

  World& world() { return world_; }
  std::deque<Site>& sites() { return sites_; }
  void add_writer(Site& site, std::unique_ptr<Writer> writer);
  // Runs the tasks that the sites have.
  SimulationOutcome run();

 private:
  using Clock = std::chrono::steady_clock;

  void before_turn();
  void look_for_violation();
  void drain_rest();
  SimulationOutcome outcome() const;

  const Observer& observer_;
  const double started_;
  World world_;
  std::deque<Site> sites_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::uint64_t writing_ = 0;  // writers that are not done
  std::optional<Found> found_;
  bool interrupted_ = false;
  std::uint32_t turns_ = 0;
  Clock::time_point reported_ = Clock::now();
};

// Each CPU has its own consumer, regardless of the settings.
using DrainFactory = std::unique_ptr<AnyDrain> (*)(Site&);
using WriterFactory = std::unique_ptr<Writer> (*)(Site&);
SimulationOutcome simulate_with(const SimulationPlan& of, const Observer& observer,
                                DrainFactory drain_factory, WriterFactory writer_factory,
                                bool sound_writers);

// With a kernel on Cpu `C`. `D` drains: an AnyDrain that is constructed from a Site&.
template <class C, class D>
SimulationOutcome simulate_with(const SimulationPlan& plan, const Observer& observer) {
  return simulate_with(
      plan, observer, [](Site& site) { return std::unique_ptr<AnyDrain>{new D(site)}; },
      [](Site& site) { return std::unique_ptr<Writer>{new Producer<C>(site)}; },
      std::is_same_v<C, SimulatedCpu>);
}

// The faults of a consumer of several rings. The faults of a merge come first.
enum class ManyFault : std::uint8_t {
  None,
  TrustsFifo,
  MergeWindow1,
  ReadsClockAfterHead,
  IgnoresSlack,
  WaitsForIdleRings,
  ReleasesOneEarly,
  DropsLateEvents,
  NeverMarksLate,
  SleepsOnHeldEvents,
  ReadsOneRing,
  IgnoresLimit,
  SleepsAtLimit,
  SleepsWithoutRecheck,
  AbandonsOfflineRings,
  FlushesWithoutABarrier,
  BarrierAfterTheRound,
};

// simulate() with one consumer for all rings: lib's Merge, or its Ring in turns, in RingSet's loop.
// settings.rings chooses.
SimulationOutcome simulate_many(const SimulationPlan& plan, const Observer& observer,
                                ManyFault fault);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_ENGINE_H_
