#ifndef HARNESS_SIMULATOR_FAULTS_H_
#define HARNESS_SIMULATOR_FAULTS_H_

// The faults of harness/faults, planted in a simulation. faults_test fails if one that the
// simulation must find is missed.

#include <span>
#include <string>
#include <string_view>

#include "harness/faults/catalogue.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {

struct SimulationFault {
  std::string name;  // in the catalogue
  SimulationOutcome (*simulate)(const SimulationPlan& plan, const Observer& observer);
  const char* scenario = "bursts";  // in which it is found
  const char* lines = "";           // settings beside the scenario's
  const char* message = "";  // of the check that finds it: a POSIX extended regular expression
  // It reads what is outside live records, so that AddressSanitizer ends the program before any
  // invariant is looked at.
  bool poisoned = false;

  const faults::Expected& expected() const {
    return faults::find_fault(name)->in(faults::Harness::Simulator);
  }
};

RunSettings settings_of(const SimulationFault& fault);

std::span<const SimulationFault> planted_faults();
// nullptr if no fault has this name.
const SimulationFault* find_planted(std::string_view name);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_FAULTS_H_
