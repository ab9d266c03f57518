#ifndef HARNESS_SIMULATOR_SIMULATION_FAULTS_H_
#define HARNESS_SIMULATOR_SIMULATION_FAULTS_H_

// The faults of harness/faults, planted in a simulation. simulation_faults_test fails if the
// simulation misses a fault that it must find.

#include <span>
#include <string>
#include <string_view>

#include "harness/faults/fault_catalogue.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {

struct SimulationFault {
  std::string name;  // the name in the catalogue
  SimulationOutcome (*simulate)(const SimulationPlan& plan, const Observer& observer);
  const char* scenario = "bursts";  // the scenario that finds it
  const char* lines = "";           // settings in addition to the scenario's
  const char* message = "";  // a POSIX extended regular expression for the finding check's message
  // The fault reads outside live records, so that AddressSanitizer ends the program before any
  // invariant is checked.
  bool poisoned = false;

  const faults::Expected& expected() const {
    return faults::find_fault(name)->in(faults::Harness::Simulator);
  }
};

RunSettings settings_of(const SimulationFault& fault);

std::span<const SimulationFault> planted_faults();
// Returns nullptr if no fault has this name.
const SimulationFault* find_planted(std::string_view name);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SIMULATION_FAULTS_H_
