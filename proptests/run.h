#ifndef PROPTESTS_RUN_H_
#define PROPTESTS_RUN_H_

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/rig/script_run.h"
#include "perfring/ring/testing/by_cursor.h"
#include "perfring/ring/testing/seen.h"
#include "proptests/scripts.h"

namespace perfring::proptests {

using rig::CheckedMemory;
using rig::ScriptCpu;
using Core = Ring<CheckedMemory>;
using CursorCore = testing::ByCursor<Cursor<CheckedMemory>>;

// A run that keeps copies of what is delivered.
template <class Cpu = ScriptCpu, class Consumer = Core>
class CopyingRun final : public rig::ScriptRunner<Cpu, Consumer> {
 public:
  explicit CopyingRun(const Settings& settings) : rig::ScriptRunner<Cpu, Consumer>{settings} {
    this->on_event = [this](const PerfEvent& event) { seen_.push_back(testing::copy(event)); };
  }

  // Since this was last asked.
  std::vector<testing::Seen> take_seen() { return std::exchange(seen_, {}); }

 private:
  std::vector<testing::Seen> seen_;
};

// Fails the property that is being checked, if something was violated.
inline void expect_good(const rig::ScriptRun& run) {
  const auto& violation = run.violation();
  if (!violation) return;
  RC_FAIL(fmt::format("{}: {}, by this script:\n{}", to_string(violation->invariant),
                      violation->message, to_text(run.script())));
}

}  // namespace perfring::proptests

#endif  // PROPTESTS_RUN_H_
