#ifndef HARNESS_MODEL_ENGINE_EXPLORER_H_
#define HARNESS_MODEL_ENGINE_EXPLORER_H_

// Explores every execution of a program that the memory model allows (rc11.h), each one once.
//
// Steps that do not read are run at once: no thread's choices depend on when they run. Then each
// thread that reads next, and each write that it may read from, is a branch. The same graph is
// reached along many branches; a set of the graphs seen cuts all but the first.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/engine/execution.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/trace.h"

namespace perfring::model {

struct Bounds {
  std::size_t events = 2'000;  // of one execution; each that reads takes its share of the stack
  std::size_t steps = 10'000;  // of one run of a thread
  std::uint64_t executions = 100'000'000;
  // For the states seen and the threads' steps.
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;
  double seconds = 600;
};

struct Result {
  std::uint64_t executions = 0;  // complete; of merged ones, one for each class
  std::uint64_t blocked = 0;     // complete, but an assumption does not hold
  std::uint64_t merged = 0;      // states with the future of an earlier one
  std::uint64_t states = 0;
  std::uint64_t violations = 0;
  double seconds = 0;
  std::optional<Trace> violation;  // the first
  std::string bound;               // the one that was reached, or empty

  // Of no execution nothing is proved: an assumption may have blocked them all.
  bool proved() const { return !violation && bound.empty() && executions != 0; }
  // Why it is not: the check that is violated, the bound, or that there is no execution.
  std::string not_proved() const;
};

inline constexpr const char* kNoExecution = "no execution is complete";

struct ExploreOptions {
  Bounds bounds;
  // Believe the program's checkpoints, and merge states from which the same can follow. Does
  // nothing where two threads have sequentially consistent fences.
  bool merge = false;
  // Go on after a violation, to find each.
  bool all = false;
  // Ends the exploration, as a bound does.
  const std::atomic<bool>* stop = nullptr;
  // Called for each complete execution (each class of them, if merged).
  std::function<void(const Execution&)> on_execution = {};
  std::function<void(const Trace&)> on_violation = {};
  std::function<void(const Result&)> on_progress = {};  // about every second
};

// Throws UsageError if the program does something that is not supported.
Result explore(const Program& program, const ExploreOptions& options = {});

// The same. A violation is replaced by the shortest one found under shorter and shorter bounds.
Result explore_for_shortest(const Program& program, const ExploreOptions& options = {});

struct Comparison {
  Result each;
  Result merged;
  std::vector<std::string> differences;  // outcomes that only one of them has
};

// Tests whether a program's checkpoints are true: explores it with and without merging, and
// compares the checks that are violated and the final values of memory.
Comparison compare_merged(const Program& program, const ExploreOptions& options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_EXPLORER_H_
