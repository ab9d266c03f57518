// `perfring stress`.

#include "fuzz/parsers/perfring_options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  const auto stress =
      fuzz::parse_perfring<cli::StressOptions>(fuzz::Input{data, size}.text(), {"stress"});
  if (!stress) return 0;
  fuzz::expect(stress->run.seconds > 0, "no time to run in");
  fuzz::expect(stress->run.rings >= 1, "no ring to run on");
  return 0;
}
