#ifndef HARNESS_MODEL_STATE_KEY_H_
#define HARNESS_MODEL_STATE_KEY_H_

#include <cstdint>
#include <unordered_set>

#include "harness/model/execution.h"

namespace perfring::model {

// Two keys that should differ are the same with probability 2^-128 or so: for a billion states,
// 10^-21 for the whole exploration.
struct KeyHash {
  std::size_t operator()(const GraphKey& key) const { return static_cast<std::size_t>(key.low); }
};

using SeenStates = std::unordered_set<GraphKey, KeyHash>;

// Of what can follow from here: where the threads are, the writes that somebody may still read,
// and who knows of which. Of programs in which at most one thread has sequentially consistent
// fences: what those order between threads is in the graph only.
GraphKey future_key(const Execution& x);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_STATE_KEY_H_
