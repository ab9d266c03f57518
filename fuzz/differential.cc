// Two consumers see the same, by any script and damage (differential.h).

#include "fuzz/differential.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  Differential<>{Input{data, size}}.run();
  return 0;
}
