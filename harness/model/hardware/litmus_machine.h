#ifndef HARNESS_MODEL_HARDWARE_LITMUS_MACHINE_H_
#define HARNESS_MODEL_HARDWARE_LITMUS_MACHINE_H_

#include <set>

#include "harness/model/engine/explorer.h"
#include "harness/model/litmus/litmus.h"

namespace perfring::model {

struct MachineAnswer {
  std::set<Outcome> outcomes;
  Result result;
};

// A litmus test by the explorer, to be held beside the axioms (harness/model/reference).
MachineAnswer explore_litmus(const LitmusText& text, MemoryModel machine);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_LITMUS_MACHINE_H_
