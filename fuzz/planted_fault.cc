// A planted fault (drops_the_sign in harness/faults), which must be found.

#include "fuzz/hostile_drain.h"
#include "harness/faults/memory_faults.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  using namespace perfring::fuzz;
  const HostileRing ring{Input{data, size}};
  HostileDrain<faults::DropsTheSign<CheckedMemory>>{ring}.run();
  return 0;
}
