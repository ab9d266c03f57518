#ifndef HARNESS_MODEL_STATE_KEY_H_
#define HARNESS_MODEL_STATE_KEY_H_

#include <cstdint>
#include <unordered_set>

#include "harness/model/execution.h"

namespace perfring::model {

// 128 bits that tell states apart. Two that differ collide with probability 2^-128 or so: with a
// billion states, 10^-21 for the whole exploration.
struct StateKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const StateKey&, const StateKey&) = default;
};

struct StateKeyHash {
  std::size_t operator()(const StateKey& key) const { return static_cast<std::size_t>(key.low); }
};

using SeenStates = std::unordered_set<StateKey, StateKeyHash>;

// Of the graph: the same for graphs with the same events, reads-from and modification order.
StateKey graph_key(const Execution& x);

// Of what can follow from here: where the threads are, the writes that somebody may still read,
// and who knows of which. Of programs in which at most one thread has sequentially consistent
// fences: what those order between threads is in the graph only.
StateKey future_key(const Execution& x);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_STATE_KEY_H_
