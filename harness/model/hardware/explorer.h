#ifndef HARNESS_MODEL_HARDWARE_EXPLORER_H_
#define HARNESS_MODEL_HARDWARE_EXPLORER_H_

// Explores every execution of a program that AArch64, RISC-V or the kernel's memory model (LKMM)
// allows, each once, including reads from stores that are later in another thread. The threads'
// code is the engine's (engine/program.h).
//
// The threads run one after another. A read takes the value of a store in the graph, or awaits one
// of the values that a later thread is known to store; that thread's store of the value may then be
// given to the read. An execution in which a read waits in vain is discarded. The search finds the
// values that a thread stores by exploring until no new ones appear. It never finds a store that
// happens only because some read returns the store's own value, through a branch or a sum that the
// program does not declare as a dependency. The axioms alone would allow such a store, but no
// machine does it: to a machine, both are dependencies.

#include <atomic>
#include <functional>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/hardware/graph.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

struct MachineOptions {
  Bounds bounds;
  bool all = false;  // continue after a violation, and keep the shortest one
  const std::atomic<bool>* stop = nullptr;
  // Called for each complete execution in each round of the search, so for most executions
  // repeatedly.
  std::function<void(const Graph&)> on_execution = {};
  std::function<void(const Result&)> on_progress = {};
};

// `machine` is not Rc11. Throws UsageError for operations that the machine's model does not support
// (updates; under LKMM, releasing fences). Treats accesses that are not atomic as relaxed ones. A
// check that fails does not end its thread, because a later store of the thread may have caused the
// failure. More than kMachineEventsMax accesses in an execution count as a reached bound.
Result explore_machine(const Program& program, MemoryModel machine,
                       const MachineOptions& options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_EXPLORER_H_
