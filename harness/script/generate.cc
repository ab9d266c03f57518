#include "harness/script/script.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>

namespace perfring::script {

namespace {

constexpr std::uint64_t kWrap = 65536;  // header.size wraps here
constexpr std::uint64_t kLargest = 200000;

class Generator {
 public:
  Generator(std::uint64_t seed, const GenerateOptions& options)
      : random_{seed}, options_{options} {}

  Script script() {
    Script script;
    script.settings = settings();
    ring_ = script.settings.pages * options_.page_size;
    style_ = below(4);
    const std::uint64_t count = between(1, std::max<std::uint64_t>(options_.steps_max, 1));
    for (std::uint64_t i = 0; i < count; ++i) {
      Step next = step(script.settings);
      if (options_.nested) nest(next, script.steps);
      if (!why_impossible(script.settings, next)) script.steps.push_back(next);
    }
    return script;
  }

 private:
  // Avoids the standard distributions: the standard defines the engine's numbers, but not theirs.
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) {
    return first + below(last - first + 1);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t one_of(std::initializer_list<std::uint64_t> values) {
    return values.begin()[below(values.size())];
  }
  // Returns a number within `distance` of `value`, and not below 0.
  std::uint64_t around(std::uint64_t value, std::uint64_t distance) {
    return between(value - std::min(value, distance), value + distance);
  }

  Settings settings() {
    Settings s;
    if (options_.any_word && one_in(2)) s.word = kernel::Word::k32;
    const auto sizes = static_cast<unsigned>(std::bit_width(options_.pages_max));
    s.pages = std::uint64_t{1} << (one_in(2) ? below(std::min(sizes, 2u)) : below(sizes));
    if (one_in(2)) s.sample_type = sample_type();
    s.sample_id_all = one_in(3);
    s.watermark = one_in(2);
    const std::uint64_t ring = s.pages * options_.page_size;
    s.wakeup = s.watermark ? watermark(ring)
                           : one_of({0, 1, 1, 2, 3, 7, 100, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff});
    s.write_backward = one_in(8);
    s.overwrite = one_in(8);
    if (options_.any_start) s.start = start(ring);
    s.events = one_in(4) ? 2 : 1;
    s.epoll = static_cast<Epoll>(below(3));
    return s;
  }

  std::uint64_t sample_type() {
    std::uint64_t type = one_in(16) ? 0 : PERF_SAMPLE_RAW;
    for (const std::uint64_t bit :
         {PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_CPU,
          PERF_SAMPLE_PERIOD, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_IDENTIFIER}) {
      if (one_in(3)) type |= bit;
    }
    return type;
  }

  std::uint64_t watermark(std::uint64_t ring) {
    const std::uint64_t near_ring = around(ring, 1);
    const std::uint64_t near_half = around(ring / 2, 1);
    return one_of({0, 1, 8, 63, 64, 65, near_half, near_ring, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff,
                   below(ring), below(ring)});
  }

  std::uint64_t start(std::uint64_t ring) {
    const std::uint64_t before = 8 * below(ring / 8 + 1);
    return one_of({0, before, (std::uint64_t{1} << 32) - before, 0 - before, random_() & ~7ull});
  }

  Step step(const Settings& settings) {
    Step step;
    const std::uint64_t die = below(100);
    if (die < 62) {
      step = {Action::Output, size()};
    } else if (die < 77) {
      step = {Action::Drain, one_in(4) ? between(0, 1000) : between(0, 4)};
    } else if (die < 84) {
      step = {Action::Poll};
    } else if (die < 90) {
      step = {Action::Epoll};
    } else if (die < 92) {
      step = {Action::Rearm};
    } else if (die < 93) {
      step = {Action::Tail, tail_step()};
    } else if (die < 95) {
      step = {Action::Pause};
    } else if (die < 98) {
      step = {Action::Resume};
    } else {
      step = {one_in(2) ? Action::Disable : Action::Enable};
    }
    step.second = has_second(step.action) && settings.events == 2 && one_in(2);
    return step;
  }

  void nest(Step& step, const std::vector<Step>& before) {
    if (step.action == Action::Drain && one_in(4)) step.action = Action::Throw;
    step.depth = before.empty() ? 0 : below(before.back().depth + 2);
    if (step.depth != 0) step.at = one_in(4) ? below(100) : below(12);
    if (why_impossible(Settings{}, step) || why_misplaced(before, step)) step.depth = step.at = 0;
  }

  std::uint64_t tail_step() {
    return one_of(
        {1, 8, 64, ring_, ring_ - 8, std::uint64_t{1} << 32, 0 - std::uint64_t{8}, random_()});
  }

  // Each script has its own style, so that some scripts fill their rings and some never do.
  std::uint64_t size() {
    switch (style_) {
      case 0:
        return small_size();
      case 1:  // a few outputs fill the ring
        return between(0, std::min(ring_ / 2, kWrap - 32));
      default:
        return mixed_size();
    }
  }

  std::uint64_t small_size() { return one_in(2) ? between(0, 32) : between(0, 600); }

  std::uint64_t mixed_size() {
    const std::uint64_t die = below(100);
    if (die < 60) return small_size();
    if (die < 72) return around(8 * below(256), 1);
    if (die < 80) return std::min(around(ring_ - std::min<std::uint64_t>(ring_, 48), 56), kLargest);
    if (die < 84) return std::min(around(ring_ / 2, 64), kLargest);
    if (die < 93) return between(kWrap - 100, kWrap + 32);
    if (die < 95) return around(131052, 64);
    if (die < 97) return kLargest;
    return between(0, kLargest);
  }

  std::mt19937_64 random_;
  GenerateOptions options_;
  std::uint64_t ring_ = 0;
  std::uint64_t style_ = 0;
};

}  // namespace

Script generate(std::uint64_t seed, const GenerateOptions& options) {
  return Generator{seed, options}.script();
}

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
  // Replaces the best script by the candidate, and returns true, if the candidate fails, too.
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
    // Keeps RAW: the default setting has it, so removing it here would undo the step above forever.
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

  // Tries 0, then subtracts ever smaller amounts.
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

  // Moves the step, and the steps nested in it, one level out.
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
