// The fuzz targets of one ring (hostile_ring.h): of lib's drains, and of one with a planted fault.

#include <string_view>

#include "fuzz/hostile_drain.h"
#include "harness/faults/memory_faults.h"
#include "perfring/testing/by_cursor.h"

namespace perfring::fuzz {

// Any bytes, positions and sizes: no drain leaves the ring, runs for ever or delivers what the
// reference does not.
void hostile_ring(std::string_view input) {
  const HostileRing ring{Input{input}};
  HostileDrain<CheckedMemory>{ring}.run();
  HostileDrain<CheckedMemory, testing::ByCursor<Cursor<CheckedMemory>>>{ring}.run();
}

// A planted fault (drops_the_sign in harness/faults), which must be found.
void planted_fault(std::string_view input) {
  const HostileRing ring{Input{input}};
  HostileDrain<faults::DropsTheSign<CheckedMemory>>{ring}.run();
}

}  // namespace perfring::fuzz
