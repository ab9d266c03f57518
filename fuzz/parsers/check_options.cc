// `perfring check`.

#include "fuzz/parsers/perfring_options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  const auto check =
      fuzz::parse_perfring<cli::CheckOptions>(fuzz::Input{data, size}.text(), {"check"});
  if (check) fuzz::accepted(cli::plan_of(*check));
  return 0;
}
