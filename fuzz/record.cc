// Any bytes as a record: no view of it leaves them, and what is malformed says where.

#include "fuzz/record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  (void)AnyRecord{Input{data, size}}.run();
  return 0;
}
