#ifndef PROPTESTS_SCRIPTS_H_
#define PROPTESTS_SCRIPTS_H_

// RapidCheck generators of scripts (harness/script) and of their parts, and runs of scripts.
// RapidCheck shrinks a counterexample and prints it as the text of a script, which `perfring sim
// --script` runs again.

#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <utility>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/rig/script_run.h"
#include "harness/rig/watched_cpu.h"
#include "harness/script/script.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/ring_over_cursor.h"
#include "proptests/property.h"

namespace perfring::script {

// RapidCheck prints the types with these.
void showValue(const Settings& settings, std::ostream& out);
void showValue(const Step& step, std::ostream& out);
void showValue(const Script& script, std::ostream& out);

}  // namespace perfring::script

namespace perfring::proptests {

using script::Action;
using script::Script;
using script::Settings;
using script::Step;

inline constexpr Step kDrain{.action = Action::Drain, .number = rig::kWholeRing};

constexpr Step output(std::uint64_t length) {
  return {.action = Action::Output, .number = length};
}

inline std::uint64_t size_of(const Settings& settings) {
  return settings.pages * 4096;
}

// One of the choices. Shrinks towards the first.
template <class T>
rc::Gen<T> one_of(std::vector<T> choices) {
  const auto all = rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, choices.size()));
  return rc::gen::map(all, [choices](std::size_t i) { return choices[i]; });
}

// Multiples of 8: at or up to 32 KiB below 0 (modulo 2^64), 2^31, 2^32, 2^63 or 7 * 2^32; or
// anywhere.
rc::Gen<std::uint64_t> positions();

// Rings of 1, 2 or 4 pages, on 32-bit and 64-bit kernels, at any start, with PerfBuffer's wakeups.
rc::Gen<Settings> settings();

// Lengths of payloads in bytes: mostly short, some around a page, and up to 4 pages.
rc::Gen<std::uint64_t> lengths();

// Lengths of payloads that are too long for the u16 header.size, at every remainder.
rc::Gen<std::uint64_t> oversize_lengths();

enum class StepKind { Output, Drain, Break, Throw, Pause, Resume, Poll };  // Drain: the whole ring

// The kinds of steps to generate. A kind that is listed twice is twice as likely.
struct Mix {
  std::vector<StepKind> kinds;
  unsigned nesting = 0;  // depth limit
  rc::Gen<std::uint64_t> payloads = lengths();
};

rc::Gen<std::vector<Step>> steps(const Mix& mix);
rc::Gen<Script> scripts(const Mix& mix, const rc::Gen<Settings>& of = settings());

// Outputs, drains of every kind, and pauses, nested in one another.
Mix everything();

}  // namespace perfring::proptests

namespace perfring::proptests {

using rig::CheckedMemory;
using rig::ScriptCpu;
using Core = Ring<CheckedMemory>;
using CursorCore = testing::RingOverCursor<Cursor<CheckedMemory>>;

// A run that keeps copies of the delivered events. If the property fails, the run prints its
// script.
template <class Cpu = ScriptCpu, class Consumer = Core>
class CopyingRun final : public rig::ScriptRunner<Cpu, Consumer> {
 public:
  explicit CopyingRun(const Settings& settings) : rig::ScriptRunner<Cpu, Consumer>{settings} {
    this->on_event = [this](const PerfEvent& event) { events_.push_back(testing::copy(event)); };
  }
  ~CopyingRun() {
    if (std::uncaught_exceptions() == exceptions_) return;
    RC_LOG() << "by this script:\n" << to_text(this->script());
  }
  CopyingRun(const CopyingRun&) = delete;
  CopyingRun& operator=(const CopyingRun&) = delete;

  // Returns the events delivered since the last call.
  std::vector<testing::CopiedEvent> take_events() { return std::exchange(events_, {}); }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  std::vector<testing::CopiedEvent> events_;
};

// Fails the property that is being checked if the run has violated an invariant.
inline void expect_good(const rig::ScriptRun& run) {
  const auto& violation = run.violation();
  if (!violation) return;
  fail(*violation);
}

// Fails the property that is being checked if the delivered events are not the expected ones.
inline void expect_events(const std::vector<testing::CopiedEvent>& events,
                          const std::vector<testing::CopiedEvent>& due) {
  RC_ASSERT_INVARIANT(no_loss, events.size() >= due.size());
  RC_ASSERT_INVARIANT(no_invention, events.size() <= due.size());
  RC_ASSERT_INVARIANT(intact, events == due);
}

}  // namespace perfring::proptests

#endif  // PROPTESTS_SCRIPTS_H_
