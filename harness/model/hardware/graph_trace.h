#ifndef HARNESS_MODEL_HARDWARE_GRAPH_TRACE_H_
#define HARNESS_MODEL_HARDWARE_GRAPH_TRACE_H_

#include <cstddef>

#include "harness/model/engine/program.h"
#include "harness/model/engine/trace.h"
#include "harness/model/hardware/graph.h"

namespace perfring::model {

struct FailedCheck {
  Cause cause;
  std::size_t accesses = 0;  // those of the graph before it
  bool at_end = false;       // it is a check of Program::finally
};

// The accesses that led to it, in an order in which memory may have seen them: not always the
// program's.
Trace graph_trace(const Program& program, const Graph& graph, const FailedCheck& failed);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_GRAPH_TRACE_H_
