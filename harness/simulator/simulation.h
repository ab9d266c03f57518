#ifndef HARNESS_SIMULATOR_SIMULATION_H_
#define HARNESS_SIMULATOR_SIMULATION_H_

// A run: the same seed, settings and steps give the same run, bit for bit, on every machine.
//
// Threads: each thread may run one simulation at a time.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/received.h"
#include "harness/simulator/settings.h"

namespace perfring::simulator {

struct CpuTotals {
  oracle::Totals attempted;
  oracle::Received received;
  std::uint64_t unreported = 0;  // losses that no LOST has reported yet
};

struct Found {
  oracle::Violation violation;
  std::uint64_t step = 0;
  int cpu = 0;
};

struct SimulationOutcome {
  std::uint64_t steps = 0;
  std::uint64_t drains = 0;
  std::uint64_t wakeups = 0;
  std::uint64_t digest = 0;  // of all events and positions
  double seconds = 0;        // of processor time
  bool interrupted = false;
  std::uint64_t late = 0;           // late events of a merge
  std::uint64_t longest_delay = 0;  // ticks from a writer's read of the clock to its record
  std::vector<CpuTotals> cpus;
  std::optional<Found> found;  // the first violation

  std::uint64_t attempts() const;
};

struct SimulationPlan {
  std::uint64_t seed = 1;
  std::uint64_t steps = 10'000'000;  // after which nobody writes any more
  RunSettings settings;
};

// Polled from time to time. Both members may be empty.
struct Observer {
  const std::atomic<bool>* stop = nullptr;               // ends the run with the results so far
  std::function<void(std::uint64_t steps)> on_progress;  // called about twice a second
};

// Precondition: the settings are possible. Throws std::system_error if there is no memory.
SimulationOutcome simulate(const SimulationPlan& plan, const Observer& observer = {});

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SIMULATION_H_
