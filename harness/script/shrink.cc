#include "harness/script/shrink.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace perfring::script {
namespace {

class Shrinker {
 public:
  Shrinker(Script script, const std::function<bool(const Script&)>& fails, std::size_t limit)
      : best_{std::move(script)}, fails_{fails}, limit_{limit} {}

  Script shrunk() && {
    while (fewer_steps() || plainer_settings() || smaller_numbers()) {
    }
    return std::move(best_);
  }

 private:
  // Takes the candidate over if it fails, too.
  bool accept(Script candidate) {
    if (candidate == best_ || limit_ == 0 || why_impossible(candidate)) return false;
    --limit_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Leaves out runs of steps, long ones first.
  bool fewer_steps() {
    bool any = false;
    for (std::size_t run = std::bit_ceil(best_.steps.size()); run != 0; run /= 2) {
      for (std::size_t at = 0; at < best_.steps.size();) {
        Script candidate = best_;
        const std::size_t end = std::min(at + run, best_.steps.size());
        candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(at),
                              candidate.steps.begin() + static_cast<std::ptrdiff_t>(end));
        if (accept(std::move(candidate))) {
          any = true;
        } else {
          at += run;
        }
      }
    }
    return any;
  }

  template <class T>
  void usual(T Settings::* setting) {
    Script candidate = best_;
    candidate.settings.*setting = Settings{}.*setting;
    accept(std::move(candidate));
  }

  bool plainer_settings() {
    const Settings before = best_.settings;
    usual(&Settings::word);
    usual(&Settings::pages);
    usual(&Settings::sample_type);
    usual(&Settings::sample_id_all);
    usual(&Settings::watermark);
    usual(&Settings::wakeup);
    usual(&Settings::write_backward);
    usual(&Settings::overwrite);
    usual(&Settings::start);
    usual(&Settings::events);
    usual(&Settings::epoll);
    // RAW stays: the usual setting has it, and what is taken back would go round for ever.
    for (std::uint64_t bit = 1; bit <= best_.settings.sample_type; bit <<= 1) {
      Script candidate = best_;
      if (bit != PERF_SAMPLE_RAW) candidate.settings.sample_type &= ~bit;
      accept(std::move(candidate));
    }
    while (best_.settings.pages > 1) {
      Script candidate = best_;
      candidate.settings.pages /= 2;
      if (!accept(std::move(candidate))) break;
    }
    return best_.settings != before;
  }

  // Tries 0, then less and less less, down to the number before.
  bool smaller_number(std::size_t step, std::uint64_t Step::* number) {
    bool any = false;
    for (std::uint64_t less = best_.steps[step].*number; less != 0; less /= 2) {
      Script candidate = best_;
      if (candidate.steps[step].*number < less) continue;
      candidate.steps[step].*number -= less;
      any |= accept(std::move(candidate));
    }
    return any;
  }

  bool smaller_numbers() {
    bool any = false;
    for (std::size_t i = 0; i < best_.steps.size(); ++i) {
      any |= less_nested(i);
      any |= smaller_number(i, &Step::number);
      any |= smaller_number(i, &Step::at);
      Script candidate = best_;
      candidate.steps[i].second = false;
      any |= accept(std::move(candidate));
    }
    return any;
  }

  // With what is nested in it.
  bool less_nested(std::size_t step) {
    const std::uint64_t depth = best_.steps[step].depth;
    if (depth == 0) return false;
    Script candidate = best_;
    for (std::size_t i = step; i < candidate.steps.size(); ++i) {
      if (i != step && candidate.steps[i].depth <= depth) break;
      --candidate.steps[i].depth;
    }
    if (depth == 1) candidate.steps[step].at = 0;
    return accept(std::move(candidate));
  }

  Script best_;
  const std::function<bool(const Script&)>& fails_;
  std::size_t limit_;
};

}  // namespace

Script shrink(Script script, const std::function<bool(const Script&)>& fails, std::size_t limit) {
  return Shrinker{std::move(script), fails, limit}.shrunk();
}

}  // namespace perfring::script
