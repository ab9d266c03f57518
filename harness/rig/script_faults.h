#ifndef HARNESS_RIG_SCRIPT_FAULTS_H_
#define HARNESS_RIG_SCRIPT_FAULTS_H_

// Runs the faults of harness/faults under random scripts, and builds SimulatedKernels with the
// kernel's faults.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/oracle/invariant.h"
#include "harness/rig/simulated_kernel.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::rig {

struct ScriptFault {
  std::string name;  // as in the catalogue
  std::optional<oracle::Violation> (*run)(const script::Script& script);
  // Builds a SimulatedKernel with the fault; nullptr if the fault is not the kernel's.
  std::unique_ptr<SimulatedKernel> (*kernel)(const script::Settings& settings,
                                             const Identity& identity, unsigned page_shift);
};

std::span<const ScriptFault> planted_faults();
// Returns nullptr if no fault has this name.
const ScriptFault* find_planted(std::string_view name);

// Returns the random script of a seed, restricted to one that the oracle can judge.
script::Script random_script(std::uint64_t seed);

// The number of random scripts that finds every fault that they can find.
inline constexpr std::uint64_t kScriptsForAFault = 2'000;

struct FoundBy {
  oracle::Violation violation;
  std::uint64_t seed;
};
// Runs up to `scripts` random scripts, from seed 1 on, until one violates an invariant, or `stop`
// is set.
std::optional<FoundBy> look_for(const ScriptFault& fault, std::uint64_t scripts = kScriptsForAFault,
                                const std::atomic<bool>* stop = nullptr);

}  // namespace perfring::rig

#endif  // HARNESS_RIG_SCRIPT_FAULTS_H_
