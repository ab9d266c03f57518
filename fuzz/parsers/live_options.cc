// `perfring` without a command, or with one that the input names.

#include "fuzz/parsers/perfring_options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  const auto live = fuzz::parse_perfring<cli::LiveOptions>(fuzz::Input{data, size}.text(), {});
  if (!live) return 0;
  fuzz::expect((live->pages & (live->pages - 1)) == 0 && live->pages != 0,
               "pages that are no power of two");
  fuzz::expect(live->seconds > 0 && live->seconds <= 86400, "seconds outside their limits");
  return 0;
}
