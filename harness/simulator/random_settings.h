#ifndef HARNESS_SIMULATOR_RANDOM_SETTINGS_H_
#define HARNESS_SIMULATOR_RANDOM_SETTINGS_H_

#include <cstdint>

#include "harness/simulator/settings.h"

namespace perfring::simulator {

// Every setting drawn from the seed, within its range (setting_names()) and possible together; in
// the part of that range which a run of 100,000 steps has time for.
RunSettings random_settings(std::uint64_t seed);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_RANDOM_SETTINGS_H_
