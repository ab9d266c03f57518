#ifndef HARNESS_MODEL_LITMUS_LITMUS_RUN_H_
#define HARNESS_MODEL_LITMUS_LITMUS_RUN_H_

// A litmus test under any of the memory models: RC11 by the engine, the others by the axioms
// (harness/model/reference).

#include "harness/model/litmus/litmus.h"

namespace perfring::model {

// What the memory model does not know is no error: the verdict says why it was refused.
LitmusVerdict run_litmus(const Litmus& litmus, MemoryModel memory_model,
                         const ExploreOptions& options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_LITMUS_RUN_H_
