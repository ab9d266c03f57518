#ifndef HARNESS_MODEL_REFERENCE_ENUMERATE_H_
#define HARNESS_MODEL_REFERENCE_ENUMERATE_H_

// The executions of a litmus test straight from the axioms: every path of each thread, every
// reads-from, every modification order, each judged as a whole. No states, no merging, no order of
// search: slow, and simple enough to be believed. It shares nothing with the engine but the text
// form.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "harness/model/litmus/text.h"
#include "harness/model/reference/axioms.h"

namespace perfring::model::reference {

struct Enumeration {
  bool race = false;  // Rc11 only
  std::set<std::map<std::string, std::int64_t>> outcomes;
  std::uint64_t executions = 0;  // without a blocked thread
  std::uint64_t blocked = 0;     // with one
  bool complete = true;          // false: Limits::go_on ended it
};

struct Limits {
  std::uint64_t combinations = 1'000'000;  // of the threads' paths
  // Asked for each combination and each execution. Where it says no, the enumeration ends.
  std::function<bool(const Enumeration&)> go_on = {};
};

// Throws UsageError for a test of more than 64 events or more combinations of paths, and for
// operations that the model does not know: plain accesses and updates are Rc11's only.
Enumeration enumerate(const LitmusText& text, MemoryModel model, const Limits& limits = {});

// About how long enumerate() takes: the ways in which the reads can choose among the stores, times
// the orders of the stores.
std::uint64_t cost(const LitmusText& text);

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_ENUMERATE_H_
