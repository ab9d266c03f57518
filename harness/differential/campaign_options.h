#ifndef HARNESS_DIFFERENTIAL_CAMPAIGN_OPTIONS_H_
#define HARNESS_DIFFERENTIAL_CAMPAIGN_OPTIONS_H_

#include <cstddef>
#include <cstdint>

namespace perfring::differential {

struct CampaignOptions {
  std::uint64_t seed = 1;       // of the first script; the next one's is one more
  std::uint64_t scripts = 300;  // how many
  std::size_t steps_max = 80;
  int cpu = 0;  // that the calling thread is bound to
};

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_CAMPAIGN_OPTIONS_H_
