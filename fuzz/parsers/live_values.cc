// The values of the demonstration's options: a payload, a watermark, CPUs.

#include "fuzz/parsers/parser.h"
#include "harness/cli/live.h"
#include "perfring/os/cpus.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  using fuzz::expect;
  const std::string_view text = fuzz::Input{data, size}.text();
  if (const auto payload = cli::parse_payload(text); fuzz::accepted(payload)) {
    expect(payload->min <= payload->max && payload->max <= 65516, "a payload outside its limits");
  }
  if (const auto watermark = cli::parse_watermark(text); fuzz::accepted(watermark)) {
    expect(*watermark >= 0, "a watermark below 0");
  }
  if (const auto cpus = os::parse_cpu_list(text)) {
    expect(cpus->size() <= 65536, "too many CPUs");
  }
  fuzz::accepted(cli::parse_cpus(text));
  return 0;
}
