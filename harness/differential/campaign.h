#ifndef HARNESS_DIFFERENTIAL_CAMPAIGN_H_
#define HARNESS_DIFFERENTIAL_CAMPAIGN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "harness/differential/reference_kernel.h"
#include "harness/live/emitter.h"
#include "harness/script/script.h"

namespace perfring::differential {

struct CampaignOptions {
  std::uint64_t seed = 1;       // the first script's seed; each further script's seed is one more
  std::uint64_t scripts = 300;  // number of scripts
  std::size_t steps_max = 80;
  int cpu = 0;  // the CPU to which the calling thread is bound
};

// A shrunk script for which the two kernels differ.
struct FoundDifference {
  std::optional<std::uint64_t> seed;  // the seed, for a random script
  script::Script script;
  Difference difference;
};

struct CampaignOutcome {
  Compared compared;
  std::optional<FoundDifference> finding;
};

// Returns true to end the run. Called before each step with the totals so far.
using Stop = std::function<bool(const Compared&)>;

// Runs random scripts on the live kernel and on the simulated one, until the two differ, all
// scripts are done, or `stop` returns true.
CampaignOutcome run_campaign(live::Emitter& emitter, const CampaignOptions& options,
                             const Stop& stop);

// Runs one script, and shrinks it if the kernels differ.
CampaignOutcome run_script(
    live::Emitter& emitter, const script::Script& script, int cpu,
    const Stop& stop = [](const Compared&) { return false; });

// Returns this seed's script, adapted so that a live kernel can run it.
script::Script script_of(std::uint64_t seed, std::size_t steps_max);

// Describes a finding for a human: the script, the step, the difference. `kernel` names the
// reference kernel.
std::string explain(const FoundDifference& finding, const std::string& kernel = "live kernel");

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_CAMPAIGN_H_
