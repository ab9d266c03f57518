// The fuzz targets of rings, scripts and records, and one with a planted fault. The macro TARGET
// names the one that is made of this file.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/hostile_drain.h"
#include "fuzz/record.h"
#include "fuzz/script_bytes.h"
#include "fuzz/two_consumers.h"
#include "harness/faults/memory_faults.h"
#include "harness/rig/script_run.h"
#include "perfring/testing/by_cursor.h"

namespace perfring::fuzz {

// Any bytes, positions and sizes: no drain leaves the ring, runs for ever or delivers what the
// reference does not.
inline void hostile_ring(Input input) {
  const HostileRing ring{input};
  HostileDrain<CheckedMemory>{ring}.run();
  HostileDrain<CheckedMemory, testing::ByCursor<Cursor<CheckedMemory>>>{ring}.run();
}

// A planted fault (drops_the_sign in harness/faults), which must be found.
inline void planted_fault(Input input) {
  const HostileRing ring{input};
  HostileDrain<faults::DropsTheSign<CheckedMemory>>{ring}.run();
}

// Two consumers see the same, by any script and damage (two_consumers.h).
inline void two_consumers(Input input) {
  TwoConsumers<>{input}.run();
}

// A script's ring, kept from one input to the next: zeroed, and aligned as operator new does it.
inline std::span<std::byte> zeroed(const script::Settings& settings) {
  static std::vector<std::byte> bytes;
  bytes.assign((1 + static_cast<std::size_t>(settings.pages)) * 4096, std::byte{});
  return bytes;
}

// Any script (script_bytes.h) on the simulated kernel: every invariant holds.
inline void kernel_script(Input input) {
  const script::Script script = decode_script(input, Encoding::ForOracle);
  rig::ScriptRunner<> runner{script.settings, zeroed(script.settings)};
  runner.run(script.steps);
  runner.settle();
  if (const auto& violation = runner.violation()) {
    fail(fmt::format("{}, by this script:\n{}", to_string(*violation), to_text(script)));
  }
}

// Any bytes as a record: no view of it leaves them, and what is malformed says where.
inline void record(Input input) {
  static_cast<void>(AnyRecord{input}.run());
}

}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perfring::fuzz::TARGET(perfring::fuzz::Input{data, size});
  return 0;
}
