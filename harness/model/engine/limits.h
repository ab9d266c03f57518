#ifndef HARNESS_MODEL_ENGINE_LIMITS_H_
#define HARNESS_MODEL_ENGINE_LIMITS_H_

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "harness/model/engine/explorer.h"

namespace perfring::model {

// Ends a search at its time or memory bound, or on a signal, and reports progress until then.
class Limits {
 public:
  // `kept` names the contents of the memory, for the message.
  Limits(const Bounds& bounds, const std::atomic<bool>* stop,
         const std::function<void(const Result&)>& on_progress, const char* kept)
      : bounds_{bounds}, stop_{stop}, on_progress_{on_progress}, kept_{kept} {}

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  // Called at each state. Returns the bound that ends the search, or an empty string. Checks time
  // and memory (`bytes`) at every 256th state only.
  template <class F>
  std::string reached(Result& result, F bytes) {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return "interrupted";
    if (result.states % 256 != 0) return {};
    result.seconds = elapsed();
    if (bytes() > bounds_.memory_bytes) {
      return fmt::format("more than {} MiB for {}", bounds_.memory_bytes >> 20, kept_);
    }
    if (result.seconds > bounds_.seconds) return fmt::format("more than {} s", bounds_.seconds);
    if (on_progress_ && result.seconds >= shown_ + 1) {
      shown_ = result.seconds;
      on_progress_(result);
    }
    return {};
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Bounds& bounds_;
  const std::atomic<bool>* const stop_;
  const std::function<void(const Result&)>& on_progress_;
  const char* const kept_;
  double shown_ = 0;  // when progress was last shown, in seconds
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_LIMITS_H_
