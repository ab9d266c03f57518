#ifndef HARNESS_STRESS_SETTING_H_
#define HARNESS_STRESS_SETTING_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::stress {

using Random = std::mt19937_64;

// Task, softirq, irq and NMI: each may interrupt those before it.
inline constexpr unsigned kLevelsMax = 4;

// One ring of a round, and its writers.
struct Setting {
  script::Settings ring{};
  unsigned levels = 1;  // how many of the above write, each a stream of its own
  std::uint32_t first_stream = 0;
  std::uint32_t payload_max = 0;  // bytes
  unsigned calm = 1;              // steps of the writer between two disturbances, on average
  bool patient = false;           // the writer yields after -ENOSPC
  std::uint64_t seed = 0;
};

// A setting by chance, of the data pages given, or 1 or 2 if 0 are. Its positions start at 0, or so
// that they soon cross 2^32 or, on a 64-bit kernel, 2^64.
Setting draw(Random& random, std::size_t pages);

std::size_t ring_size(const Setting& setting);
// The longest payload that finds room in an empty ring, with a LOST before it.
std::uint32_t longest_payload(std::size_t ring_size);
// One line that names it, for reports.
std::string describe(const Setting& setting);

// The ring of a setting.
class StressRing : public rig::SimulatedRing {
 public:
  explicit StressRing(const Setting& setting) : SimulatedRing{setting.ring}, setting_{setting} {}
  const Setting& setting() const { return setting_; }

 private:
  Setting setting_;
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_SETTING_H_
