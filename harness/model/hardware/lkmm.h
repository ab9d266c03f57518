#ifndef HARNESS_MODEL_HARDWARE_LKMM_H_
#define HARNESS_MODEL_HARDWARE_LKMM_H_

#include "harness/model/hardware/graph.h"

namespace perfring::model {

// Whether the kernel's memory model allows the graph, which is coherent and keeps its
// happens-before (Graph::comes_before): the axioms "happens-before" and "propagation" of
// tools/memory-model/linux-kernel.cat at v6.12, of plain READ_ONCE(), WRITE_ONCE(), acquiring
// loads, releasing stores, and the fences. What a growing graph breaks, it breaks for good.
bool lkmm_allows(const Graph& graph);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_LKMM_H_
