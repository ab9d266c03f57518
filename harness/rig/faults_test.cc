// The faults themselves: `perfring faults --harness scripts`
// (//harness/faults:faults_scripts_test).

#include "harness/rig/faults.h"

#include <gtest/gtest.h>

#include "harness/rig/script_run.h"
#include "perfring/ring/testing/by_cursor.h"

namespace perfring::rig {
namespace {

template <class Runner>
void expect_nothing_found() {
  for (std::uint64_t seed = 1; seed <= kScriptsForAFault; ++seed) {
    const auto violation = violation_of<Runner>(random_script(seed));
    ASSERT_FALSE(violation.has_value()) << violation->message << ", by seed " << seed;
  }
}

TEST(RandomScriptTest, NothingIsFoundWithoutAFault) {
  expect_nothing_found<ScriptRunner<>>();
}
TEST(RandomScriptTest, NothingIsFoundWhereACursorDrains) {
  expect_nothing_found<ScriptRunner<ScriptCpu, testing::ByCursor<Cursor<CheckedMemory>>>>();
}

}  // namespace
}  // namespace perfring::rig
