#include "harness/model/litmus/litmus_run.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "harness/model/reference/enumerate.h"
#include "harness/program/numbers.h"

namespace perfring::model {
namespace {

// Keeps the enumeration within the bounds. It has no states, so that memory is no bound.
class Watch {
 public:
  Watch(const ExploreOptions& options, Result& result) : options_{options}, result_{result} {}

  bool goes_on(const reference::Answer& so_far) {
    result_.executions = so_far.executions;
    result_.blocked = so_far.blocked;
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const Bounds& bounds = options_.bounds;
    if (so_far.executions > bounds.executions) {
      result_.bound = fmt::format("more than {}", counted(bounds.executions, "execution"));
    } else if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
      result_.bound = "interrupted";
    } else if (result_.seconds > bounds.seconds) {
      result_.bound = fmt::format("more than {} s", bounds.seconds);
    } else if (options_.on_progress && result_.seconds >= shown_ + 1) {
      shown_ = result_.seconds;
      options_.on_progress(result_);
    }
    return result_.bound.empty();
  }

 private:
  const ExploreOptions& options_;
  Result& result_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_ = 0;
};

LitmusVerdict enumerate(const Litmus& litmus, MemoryModel memory_model,
                        const ExploreOptions& options) {
  LitmusVerdict verdict;
  Watch watch{options, verdict.result};
  constexpr std::uint64_t kCombinationsMax = std::uint64_t{1} << 40;  // the time is the bound
  reference::Answer answer = reference::enumerate(
      litmus.text, memory_model,
      {.combinations = kCombinationsMax,
       .go_on = [&](const reference::Answer& so_far) { return watch.goes_on(so_far); }});
  if (answer.complete) watch.goes_on(answer);
  verdict.outcomes = std::move(answer.outcomes);
  if (verdict.result.bound.empty()) compare(litmus, memory_model, verdict);
  return verdict;
}

}  // namespace

LitmusVerdict run_litmus(const Litmus& litmus, MemoryModel memory_model,
                         const ExploreOptions& options) {
  try {
    return memory_model == MemoryModel::Rc11 ? run_litmus(litmus, options)
                                             : enumerate(litmus, memory_model, options);
  } catch (const UsageError& error) {
    LitmusVerdict verdict;
    verdict.refused = error.what();
    return verdict;
  }
}

}  // namespace perfring::model
