#ifndef HARNESS_SIMULATOR_SIMULATED_MEMORY_H_
#define HARNESS_SIMULATOR_SIMULATED_MEMORY_H_

#include <cstddef>

#include "harness/simulator/site.h"
#include "perfring/ring/hardware_memory.h"
#include "perfring/ring/memory.h"

namespace perfring::simulator {

// The Memory policy of a simulated consumer: others run before any access, and each access is
// checked. `site` is that of the running consumer: step() sets it again after others have run.
// (CheckedMemory of harness/rig only observes: scripts say what happens between two steps.)
struct SimulatedMemory {
  static inline constinit thread_local Site* site = nullptr;

  static void step() {
    Site& own = *site;
    own.consumer_step();
    site = &own;
  }

  static Position read_once(const SharedPosition& field) {
    step();
    const Position value = HardwareMemory::read_once(field);
    site->drains().saw_head(value);
    return value;
  }
  static void write_once(SharedPosition& field, SharedPosition value) {
    step();
    HardwareMemory::write_once(field, value);
  }
  static void fence_after_read_of(const SharedPosition&) {}
  static void fence_before_write_of(const SharedPosition&) {}

  static void sees_read(const std::byte* address, std::size_t size) { site->reads(address, size); }
  template <class T>
  static T read(const std::byte* address) {
    step();
    sees_read(address, sizeof(T));
    return HardwareMemory::read<T>(address);
  }
};

static_assert(Memory<SimulatedMemory>);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SIMULATED_MEMORY_H_
