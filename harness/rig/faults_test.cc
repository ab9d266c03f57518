// The faults themselves: `perfring faults --harness scripts`
// (//harness/faults:faults_scripts_test).

#include "harness/rig/faults.h"

#include <gtest/gtest.h>

#include "harness/rig/script_run.h"

namespace perfring::rig {
namespace {

TEST(RandomScriptTest, NothingIsFoundWithoutAFault) {
  for (std::uint64_t seed = 1; seed <= kScriptsForAFault; ++seed) {
    const auto violation = violation_of<ScriptRunner<>>(random_script(seed));
    ASSERT_FALSE(violation.has_value()) << violation->message << ", by seed " << seed;
  }
}

}  // namespace
}  // namespace perfring::rig
