// The fuzz targets of scripts (script_bytes.h).

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "fuzz/script_bytes.h"
#include "fuzz/two_consumers.h"
#include "harness/rig/script_run.h"

namespace perfring::fuzz {
namespace {

// A script's ring, kept from one input to the next: zeroed, and aligned as operator new does it.
std::span<std::byte> zeroed(const script::Settings& settings) {
  static std::vector<std::byte> bytes;
  bytes.assign((1 + static_cast<std::size_t>(settings.pages)) * 4096, std::byte{});
  return bytes;
}

}  // namespace

// Two consumers see the same, by any script and damage (two_consumers.h).
void two_consumers(std::string_view input) {
  TwoConsumers<>{Input{input}}.run();
}

// Any script (script_bytes.h) on the simulated kernel: every invariant holds.
void kernel_script(std::string_view input) {
  const script::Script script = decode_script(Input{input}, Encoding::ForOracle);
  rig::ScriptRunner<> runner{script.settings, zeroed(script.settings)};
  runner.run(script.steps);
  runner.settle();
  if (const auto& violation = runner.violation()) {
    fail(fmt::format("{}, by this script:\n{}", to_string(*violation), to_text(script)));
  }
}

}  // namespace perfring::fuzz
