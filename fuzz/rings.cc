// The fuzz targets of one ring (hostile_ring.h): lib's drains, and a drain with a planted fault.

#include <string_view>

#include "fuzz/hostile_drain.h"
#include "fuzz/hostile_ring.h"
#include "fuzz/input.h"
#include "harness/faults/memory_faults.h"
#include "perfring/ring/cursor.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring::fuzz {

// With any bytes, positions and sizes, no drain leaves the ring, runs forever, or delivers an event
// that the reference does not.
void hostile_ring(std::string_view input) {
  const HostileRing ring{Input{input}};
  HostileDrain<CheckedMemory>{ring}.run();
  HostileDrain<CheckedMemory, testing::RingOverCursor<Cursor<CheckedMemory>>>{ring}.run();
}

// Has a planted fault (ignores_top_size_bit in harness/faults), which the fuzzer must find.
void planted_fault(std::string_view input) {
  const HostileRing ring{Input{input}};
  HostileDrain<faults::IgnoresTopSizeBit<CheckedMemory>>{ring}.run();
}

}  // namespace perfring::fuzz
