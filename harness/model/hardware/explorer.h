#ifndef HARNESS_MODEL_HARDWARE_EXPLORER_H_
#define HARNESS_MODEL_HARDWARE_EXPLORER_H_

// Explores every execution of a program that AArch64, RISC-V or the kernel's memory model (LKMM)
// allows, each once: reads from stores that come later in another thread included. The threads'
// code is the engine's (engine/program.h).
//
// The threads run one after the other. A read takes the value of a store that is there, or awaits
// one of the values that a later thread is known to store; that thread's store of it may then be
// given to the read. An execution whose read waits in vain is discarded. The values that a thread
// stores are found by exploring until no new ones come up: a store that happens only because some
// read returns its own value, by a branch or a sum that the program does not say to be a
// dependency, is never found. The axioms alone would allow it, but no machine does it, for to a
// machine both are dependencies.

#include <atomic>
#include <functional>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/hardware/graph.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

struct MachineOptions {
  Bounds bounds;
  bool all = false;  // go on after a violation, and keep the shortest
  const std::atomic<bool>* stop = nullptr;
  // Called for each complete execution, in each round of the search: more than once for most.
  std::function<void(const Graph&)> on_execution = {};
  std::function<void(const Result&)> on_progress = {};
};

// `machine` is not Rc11. Throws UsageError for operations that the machine's model does not know
// (updates; under LKMM, releasing fences). Accesses that are not atomic are taken for relaxed ones.
// A check that fails does not end its thread: a later store of the thread may have caused the
// failure. An execution of more than kMachineEventsMax accesses is a bound that is reached.
Result explore_machine(const Program& program, MemoryModel machine,
                       const MachineOptions& options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_EXPLORER_H_
