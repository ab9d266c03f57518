// Two consumers see the same, by any script and damage (two_consumers.h).

#include "fuzz/two_consumers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  TwoConsumers<>{Input{data, size}}.run();
  return 0;
}
