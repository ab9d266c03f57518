// A fuzz target of the parser that the macro TARGET names.

#include <string_view>

#include "fuzz/input.h"

namespace perfring::fuzz::parsers {

void TARGET(std::string_view text);

}  // namespace perfring::fuzz::parsers

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perfring::fuzz::parsers::TARGET(perfring::fuzz::Input{data, size}.text());
  return 0;
}
