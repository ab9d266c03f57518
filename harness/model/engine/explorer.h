#ifndef HARNESS_MODEL_ENGINE_EXPLORER_H_
#define HARNESS_MODEL_ENGINE_EXPLORER_H_

// Explores every execution of a program that the memory model allows (rc11.h), each exactly once.
//
// Steps that do not read run at once, because no thread's choices depend on when they run. The
// search then branches on each thread that reads next, and on each write that it may read from.
// Many branches reach the same graph; a set of the graphs seen cuts all but the first.

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
  std::size_t events = 2'000;  // per execution; each read uses some of the stack
  std::size_t steps = 10'000;  // per run of a thread
  std::uint64_t executions = 100'000'000;
  // Memory for the states seen and the threads' steps.
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;
  double seconds = 600;
};

struct Result {
  std::uint64_t executions = 0;  // complete ones; with merging, one for each class
  std::uint64_t blocked = 0;     // complete ones in which an assumption does not hold
  std::uint64_t merged = 0;      // states with the same future as an earlier state
  std::uint64_t states = 0;
  std::uint64_t violations = 0;
  double seconds = 0;
  std::optional<Trace> violation;  // the first one found
  std::string bound;               // the bound that ended the search, or empty

  // Without an execution nothing is proved: an assumption may have blocked all of them.
  bool proved() const { return !violation && bound.empty() && executions != 0; }
  // Returns the violated check, the bound, or kNoExecution; "" if the program is proved.
  std::string not_proved() const;
};

inline constexpr const char* kNoExecution = "no execution is complete";

struct ExploreOptions {
  Bounds bounds;
  // Trust the program's checkpoints, and merge states with the same future. No effect if two
  // threads have sequentially consistent fences.
  bool merge = false;
  // Continue after a violation, to find all of them.
  bool all = false;
  // Ends the exploration when it becomes true, as a bound does.
  const std::atomic<bool>* stop = nullptr;
  // Called for each complete execution; with merging, for each class of executions.
  std::function<void(const Execution&)> on_execution = {};
  std::function<void(const Trace&)> on_violation = {};
  std::function<void(const Result&)> on_progress = {};  // about every second
};

// Throws UsageError if the program does something that is not supported.
Result explore(const Program& program, const ExploreOptions& options = {});

// Does the same, and replaces a violation by the shortest one found under ever shorter bounds.
Result explore_for_shortest(const Program& program, const ExploreOptions& options = {});

struct Comparison {
  Result each;
  Result merged;
  std::vector<std::string> differences;  // outcomes of only one of the two
};

// Tests whether a program's checkpoints are true: explores the program with and without merging,
// and compares the violated checks and the final values of memory.
Comparison compare_merged(const Program& program, const ExploreOptions& options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_EXPLORER_H_
