#ifndef HARNESS_MODEL_REFERENCE_COST_H_
#define HARNESS_MODEL_REFERENCE_COST_H_

#include <cstdint>

#include "harness/model/litmus/text.h"

namespace perfring::model::reference {

// About how long enumerate() takes: the ways in which the reads can choose among the stores, times
// the orders of the stores.
std::uint64_t cost(const LitmusText& text);

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_COST_H_
