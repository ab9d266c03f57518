// A fuzz target: the function that the macro TARGET names, of rings.cc, scripts.cc and so on. It is
// compiled for each of them, and so includes little.

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
