#ifndef HARNESS_DIFFERENTIAL_CAMPAIGN_H_
#define HARNESS_DIFFERENTIAL_CAMPAIGN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "harness/differential/reference.h"
#include "harness/live/emitter.h"
#include "harness/script/script.h"

namespace perfring::differential {

struct CampaignOptions {
  std::uint64_t seed = 1;       // of the first script; the next one's is one more
  std::uint64_t scripts = 300;  // how many
  std::size_t steps_max = 80;
  int cpu = 0;  // that the calling thread is bound to
};

// A script for which the kernels differ, shrunk.
struct FoundDifference {
  std::optional<std::uint64_t> seed;  // of a random script
  script::Script script;
  Difference difference;
};

struct CampaignOutcome {
  Compared compared;
  std::optional<FoundDifference> finding;
};

// Whether to end; asked before each step, with what was compared so far.
using Stop = std::function<bool(const Compared&)>;

// Random scripts on the live kernel and on the simulated one, until they differ, all are done, or
// `stop` says so.
CampaignOutcome run_campaign(live::Emitter& emitter, const CampaignOptions& options,
                             const Stop& stop);

// One script, shrunk if the kernels differ.
CampaignOutcome run_script(
    live::Emitter& emitter, const script::Script& script, int cpu,
    const Stop& stop = [](const Compared&) { return false; });

// The script of this seed, that a live kernel can run.
script::Script script_of(std::uint64_t seed, std::size_t steps_max);

// A finding for a person: the script, the step, what differed. `kernel` is the one that is right.
std::string explain(const FoundDifference& finding, const std::string& kernel = "live kernel");

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_CAMPAIGN_H_
