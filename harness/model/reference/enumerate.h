#ifndef HARNESS_MODEL_REFERENCE_ENUMERATE_H_
#define HARNESS_MODEL_REFERENCE_ENUMERATE_H_

// Enumerates the executions of a litmus test directly from the axioms: every path of each thread,
// every reads-from and every modification order, and each candidate is judged as a whole. The
// enumerator has no states, no merging and no order of search: it is slow, but simple enough to
// trust. It shares only the text form with the engine.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"
#include "harness/model/reference/axioms.h"

namespace perfring::model::reference {

struct Enumeration {
  bool race = false;  // Rc11 only
  std::set<std::map<std::string, std::int64_t>> outcomes;
  std::uint64_t executions = 0;  // executions without a blocked thread
  std::uint64_t blocked = 0;     // executions with a blocked thread
  bool complete = true;          // false: Limits::keep_going ended it
};

struct Limits {
  std::uint64_t combinations = 1'000'000;  // of the threads' paths
  // Called for each combination and each execution; the enumeration ends if it returns false.
  std::function<bool(const Enumeration&)> keep_going = {};
};

// Throws UsageError for a test with more than 64 events or too many combinations of paths, and for
// operations that the model does not support: only Rc11 has plain accesses and updates.
Enumeration enumerate(const LitmusText& text, MemoryModel model, const Limits& limits = {});

// Returns an estimate of enumerate()'s running time: the number of ways in which the reads can
// choose among the stores, times the number of orders of the stores.
std::uint64_t cost(const LitmusText& text);

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_ENUMERATE_H_
