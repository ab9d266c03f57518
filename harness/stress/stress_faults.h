#ifndef HARNESS_STRESS_STRESS_FAULTS_H_
#define HARNESS_STRESS_STRESS_FAULTS_H_

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/faults/fault_catalogue.h"
#include "harness/stress/run.h"

namespace perfring::stress {

// A fault of harness/faults, planted in the parts in which it can have an effect.
struct StressFault {
  struct PlantedPart {
    std::string part;
    PartReport (*run)(const Run&);
  };
  std::string name;  // the name in the catalogue
  std::vector<PlantedPart> parts;

  const faults::Expected& expected(faults::Harness harness) const {
    return faults::find_fault(name)->in(harness);
  }
};

// How long to wait for a wakeup that a fault suppresses.
inline constexpr std::chrono::milliseconds kPatienceWithAFault{500};

std::span<const StressFault> planted_faults();
// Returns nullptr if no fault has this name.
const StressFault* find_planted(std::string_view name);

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_STRESS_FAULTS_H_
