// Runs the fuzz target that the macro TARGET names, a function in rings.cc, scripts.cc, ... This
// file is compiled once for each target, and so includes little.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace perfring::fuzz {

void TARGET(std::string_view input);

}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perfring::fuzz::TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
