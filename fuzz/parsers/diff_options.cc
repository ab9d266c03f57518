// `perfring diff`.

#include "fuzz/parsers/perfring_options.h"
#include "harness/script/script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  using fuzz::expect;
  const auto diff =
      fuzz::parse_perfring<cli::DiffOptions>(fuzz::Input{data, size}.text(), {"diff"});
  if (!diff) return 0;
  const auto& campaign = diff->campaign;
  expect(campaign.scripts >= 1 && campaign.scripts <= 1'000'000'000, "too many scripts, or none");
  expect(campaign.steps_max >= 1 && campaign.steps_max <= script::kStepsMax, "too many steps");
  expect(!diff->cpu || *diff->cpu >= 0, "a negative CPU");
  return 0;
}
