#ifndef PROPTESTS_SCRIPTS_H_
#define PROPTESTS_SCRIPTS_H_

// RapidCheck's generators of scripts (harness/script) and their parts, which it shrinks and prints;
// and runs of them. A counterexample is the text of a script, which `perfring sim --script`
// repeats.

#include <fmt/format.h>
#include <rapidcheck.h>

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
#include "harness/script/script.h"
#include "perfring/testing/by_cursor.h"
#include "perfring/testing/seen.h"
#include "proptests/property.h"

namespace perfring::script {

// How RapidCheck prints them.
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

// One of these; it shrinks towards the first.
template <class T>
rc::Gen<T> one_of(std::vector<T> choices) {
  const auto all = rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, choices.size()));
  return rc::gen::map(all, [choices](std::size_t i) { return choices[i]; });
}

// Multiples of 8, near 0, 2^32, 2^63 and 2^64 or anywhere.
rc::Gen<std::uint64_t> positions();

// Rings of 1, 2 or 4 pages, kernels of both words, any start; wakeups as PerfBuffer asks for them.
rc::Gen<Settings> settings();

// Bytes of payload: few, those around a page, and up to 4 pages of them.
rc::Gen<std::uint64_t> lengths();

// Lengths of payloads that the u16 of header.size cannot hold, at every remainder.
rc::Gen<std::uint64_t> oversize_lengths();

enum class Kind { Output, Drain, Break, Throw, Pause, Resume, Poll };  // Drain: the whole ring

// The kinds of steps. A kind that is named twice is twice as likely.
struct Mix {
  std::vector<Kind> kinds;
  unsigned nesting = 0;  // how deep
  rc::Gen<std::uint64_t> payloads = lengths();
};

rc::Gen<std::vector<Step>> steps(const Mix& mix);
rc::Gen<Script> scripts(const Mix& mix, const rc::Gen<Settings>& of = settings());

// Everything at once: outputs, drains of every kind, pauses, nested in each other.
Mix everything();

}  // namespace perfring::proptests

namespace perfring::proptests {

using rig::CheckedMemory;
using rig::ScriptCpu;
using Core = Ring<CheckedMemory>;
using CursorCore = testing::ByCursor<Cursor<CheckedMemory>>;

// A run that keeps copies of what is delivered. The property that it fails prints its script.
template <class Cpu = ScriptCpu, class Consumer = Core>
class CopyingRun final : public rig::ScriptRunner<Cpu, Consumer> {
 public:
  explicit CopyingRun(const Settings& settings) : rig::ScriptRunner<Cpu, Consumer>{settings} {
    this->on_event = [this](const PerfEvent& event) { seen_.push_back(testing::copy(event)); };
  }
  ~CopyingRun() {
    if (std::uncaught_exceptions() == exceptions_) return;
    RC_LOG() << "by this script:\n" << to_text(this->script());
  }
  CopyingRun(const CopyingRun&) = delete;
  CopyingRun& operator=(const CopyingRun&) = delete;

  // Since this was last asked.
  std::vector<testing::Seen> take_seen() { return std::exchange(seen_, {}); }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  std::vector<testing::Seen> seen_;
};

// Fails the property that is being checked, if something was violated.
inline void expect_good(const rig::ScriptRun& run) {
  const auto& violation = run.violation();
  if (!violation) return;
  fail(*violation);
}

// The same for events that are not those that are due, by the first thing that is wrong.
inline void expect_events(const std::vector<testing::Seen>& seen,
                          const std::vector<testing::Seen>& due) {
  RC_ASSERT_INVARIANT(no_loss, seen.size() >= due.size());
  RC_ASSERT_INVARIANT(no_invention, seen.size() <= due.size());
  RC_ASSERT_INVARIANT(intact, seen == due);
}

}  // namespace perfring::proptests

#endif  // PROPTESTS_SCRIPTS_H_
