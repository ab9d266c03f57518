#ifndef HARNESS_SIMULATOR_CANARIES_H_
#define HARNESS_SIMULATOR_CANARIES_H_

// Kernels and consumers with one fault each, which the invariants must find. A harness that lets
// one pass is broken.

#include <span>
#include <string_view>

#include "harness/oracle/invariant.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulation.h"

namespace perfring::simulator {

struct Canary {
  const char* name;
  const char* fault;
  oracle::Invariant found_as;
  const char* message;   // of the check that finds it: a POSIX extended regular expression
  const char* scenario;  // in which it is found
  const char* lines;     // settings beside the scenario's
  Outcome (*simulate)(const Plan& plan, const Observer& observer);
  // It reads what is outside live records, so that AddressSanitizer ends the program before any
  // invariant is looked at.
  bool poisoned = false;
};

Settings settings_of(const Canary& canary);

std::span<const Canary> canaries();
// nullptr if no canary has this name.
const Canary* find_canary(std::string_view name);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_CANARIES_H_
