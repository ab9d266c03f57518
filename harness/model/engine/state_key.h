#ifndef HARNESS_MODEL_ENGINE_STATE_KEY_H_
#define HARNESS_MODEL_ENGINE_STATE_KEY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/model/engine/execution.h"

namespace perfring::model {

// A set of keys. Two different states have the same key with a probability of about 2^-128: for a
// billion states, 10^-21 in the whole exploration. The set is a flat array, because the search
// spends most of its time in it.
class VisitedStates {
 public:
  // Returns true if the key is new.
  bool insert(const GraphKey& key) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    GraphKey& slot = slots_[find(key)];
    if (slot == key) return false;
    slot = key;
    ++size_;
    return true;
  }
  bool contains(const GraphKey& key) const { return slots_[find(key)] == key; }
  std::size_t bytes() const { return slots_.size() * sizeof(GraphKey); }

 private:
  // Returns the key's slot, or the empty slot that it would take. An empty slot is all zeros.
  std::size_t find(const GraphKey& key) const {
    auto at = static_cast<std::size_t>(key.low & (slots_.size() - 1));
    while (!(slots_[at] == key || slots_[at] == GraphKey{})) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<GraphKey> old(2 * slots_.size());
    old.swap(slots_);
    for (const GraphKey& key : old) {
      if (!(key == GraphKey{})) slots_[find(key)] = key;
    }
  }

  std::vector<GraphKey> slots_ = std::vector<GraphKey>(1024);
  std::size_t size_ = 0;
};

// Returns a key of everything on which the future depends: the threads' places, the writes that a
// thread may still read, and each thread's knowledge of them. States with equal keys have equal
// futures. Only for programs in which at most one thread has sequentially consistent fences: the
// order of such fences between threads is in the graph only. `mixed`: the locations with both
// atomic and plain accesses, where an atomic access may race with a later plain one.
GraphKey future_key(const Execution& x, const std::vector<bool>& mixed);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_STATE_KEY_H_
