#ifndef HARNESS_MODEL_ENGINE_TRACE_H_
#define HARNESS_MODEL_ENGINE_TRACE_H_

// An execution with a violation, for people and tools: the violation's causes (its prefix by
// program order and reads-from), without unrelated steps of other threads.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/engine/execution.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"

namespace perfring::model {

inline constexpr const char* kDataRace = "data race";

// The violated check, and the thread and the place of the step that violates it.
struct Cause {
  std::string what;
  std::size_t thread = 0;
  Where where;
};

struct TraceEvent {
  std::size_t thread = 0;
  Step::Kind kind = Step::Kind::Fence;  // Read, Write, Update or Fence
  Order order = Order::Relaxed;
  Where where;
  std::string location;  // empty for a Fence
  std::optional<std::uint64_t> read, written;
  // Event numbers, counted from 1; 0 is the location's initial value.
  std::optional<std::size_t> reads_from;
  std::optional<std::size_t> after;  // the last write of the trace before it in modification order
  // The first access of its thread that precedes it in program order, but follows it as memory sees
  // them. On machines only (harness/model/hardware).
  std::optional<std::size_t> overtakes;
};

struct Trace {
  Cause cause;
  std::vector<std::string> threads;
  std::vector<TraceEvent> events;  // each after every event that it depends on
  std::vector<std::size_t> race;   // the numbers of the two racing events, or empty
  // The racing events, or the last event of the thread before its check fails, if there is one.
  std::vector<std::size_t> violated;
  std::size_t execution_events = 0;
  bool at_end = false;  // the cause is a check of Program::finally

  bool overtakes() const;  // whether an event overtakes another
};

Trace trace_of(const Program& program, const Execution& x, const Cause& cause);

// Returns a table with one column for each thread. `with_lines`: with line numbers of the source,
// not only the names of its files.
std::string trace_table(const Trace& trace, bool with_lines = true);
// Returns text for Graphviz's dot: a cluster for each thread, from left to right as in the table,
// and the violation in red. `subject` names the checked program in the caption.
std::string trace_dot(const Trace& trace, const std::string& subject);

const char* to_string(Order order);
const char* to_string(Step::Kind kind);
// "data_head := 0x10 release", "data_head = 0x10 acquire".
std::string to_string(const TraceEvent& event);
// "drain.h:78"
std::string to_string(const Where& where);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_TRACE_H_
