// Scenarios of the simulator: what is accepted is within its limits, and is read back from what is
// printed of it.

#include "harness/simulator/settings.h"

#include "fuzz/parsers/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  const auto parsed = simulator::parse_settings(fuzz::Input{data, size}.text(), "text");
  if (!fuzz::accepted(parsed)) return 0;
  for (const simulator::SettingName& name : simulator::setting_names()) {
    const std::uint64_t value = *parsed.*name.field;
    fuzz::expect(value >= name.min && value <= name.max, "a setting outside its limits");
  }
  // "a=1 b=2" as lines.
  std::string again = simulator::difference(*parsed, {});
  for (char& c : again) c = c == ' ' ? '\n' : c == '=' ? ' ' : c;
  fuzz::expect(simulator::parse_settings(again, "again") == *parsed, "settings are not read back");
  static_cast<void>(simulator::impossible(*parsed));
  return 0;
}
