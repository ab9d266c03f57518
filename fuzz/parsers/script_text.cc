// Scripts as text: what is accepted can be run, and is read back from what is printed of it.

#include "fuzz/parsers/parser.h"
#include "harness/script/script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  const auto parsed = script::parse_script(fuzz::Input{data, size}.text());
  if (!fuzz::accepted(parsed)) return 0;
  fuzz::expect(!why_impossible(*parsed), "a script was accepted that cannot be run");
  fuzz::expect(script::parse_script(to_text(*parsed)) == *parsed, "a script is not read back");
  return 0;
}
