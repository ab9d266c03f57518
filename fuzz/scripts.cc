// The fuzz targets of scripts (script_bytes.h).

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/script_bytes.h"
#include "fuzz/two_consumers.h"
#include "harness/oracle/invariant.h"
#include "harness/rig/script_run.h"
#include "harness/script/script.h"

namespace perfring::fuzz {
namespace {

// Returns zeroed memory for a script's ring, aligned as by operator new. It is kept from one input
// to the next.
std::span<std::byte> zeroed(const script::Settings& settings) {
  static std::vector<std::byte> bytes;
  bytes.assign((1 + static_cast<std::size_t>(settings.pages)) * 4096, std::byte{});
  return bytes;
}

}  // namespace

// With any script and damage, two consumers deliver the same (two_consumers.h).
void two_consumers(std::string_view input) {
  TwoConsumers<>{Input{input}}.run();
}

// With any script (script_bytes.h) on the simulated kernel, every invariant holds.
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
