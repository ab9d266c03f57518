// Any script (script_bytes.h) on the simulated kernel: every invariant holds.

#include "fuzz/script_bytes.h"
#include "fuzz/script_run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  const perfring::script::Script script = understood(decode_script(Input{data, size}));
  if (const auto violation = ScriptRun{script}.run()) {
    fail(*violation + ", by this script:\n" + to_text(script));
  }
  return 0;
}
