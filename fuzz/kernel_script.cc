// Any script (script_bytes.h) on the simulated kernel: every invariant holds.

#include <fmt/format.h>

#include <span>
#include <vector>

#include "fuzz/script_bytes.h"
#include "harness/rig/script_run.h"

namespace perfring::fuzz {
namespace {

// The ring's memory, kept from one input to the next: zeroed, and aligned as operator new does it.
std::span<std::byte> zeroed(const script::Settings& settings) {
  static std::vector<std::byte> bytes;
  bytes.assign((1 + static_cast<std::size_t>(settings.pages)) * 4096, std::byte{});
  return bytes;
}

}  // namespace
}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  const perfring::script::Script script = decode_script(Input{data, size}, Encoding::ForOracle);
  perfring::rig::ScriptRunner<> runner{script.settings, zeroed(script.settings)};
  runner.run(script.steps);
  runner.settle();
  if (const auto& violation = runner.violation()) {
    fail(fmt::format("{}: {}, by this script:\n{}", to_string(violation->invariant),
                     violation->message, to_text(script)));
  }
  return 0;
}
