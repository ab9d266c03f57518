// A fuzz target of the parser that the macro PARSER names.

#include <string_view>

#include "fuzz/input.h"

namespace perfring::fuzz::parsers {

void PARSER(std::string_view text);

}  // namespace perfring::fuzz::parsers

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perfring::fuzz::parsers::PARSER(perfring::fuzz::Input{data, size}.text());
  return 0;
}
