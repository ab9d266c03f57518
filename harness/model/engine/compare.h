#ifndef HARNESS_MODEL_ENGINE_COMPARE_H_
#define HARNESS_MODEL_ENGINE_COMPARE_H_

#include <string>
#include <vector>

#include "harness/model/engine/explorer.h"

namespace perfring::model {

struct Comparison {
  Result each;
  Result merged;
  std::vector<std::string> differences;  // what one has and the other has not
};

// Whether a program's checkpoints say the truth: explores it with and without merging, and compares
// all that is violated and all that the memory ends with.
Comparison compare_merged(const Program& program, const ExploreOptions& options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_COMPARE_H_
