// Any bytes, positions and sizes: no drain leaves the ring, runs for ever or says what is not so.

#include "fuzz/hostile_drain.h"
#include "perfring/testing/by_cursor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  const HostileRing ring{Input{data, size}};
  HostileDrain<CheckedMemory>{ring}.run();
  HostileDrain<CheckedMemory, perfring::testing::ByCursor<perfring::Cursor<CheckedMemory>>>{ring}
      .run();
  return 0;
}
