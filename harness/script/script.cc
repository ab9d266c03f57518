#include "harness/script/script.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perfring::script {
namespace {

constexpr const char* kDies = "'die' must be nested in an output, at depth 1";

std::optional<std::string> too_large(std::string_view what, std::uint64_t value,
                                     std::uint64_t most) {
  if (value <= most) return std::nullopt;
  return std::string{what} + " " + std::to_string(value) + ": at most " + std::to_string(most);
}

}  // namespace

bool has_number(Action action) {
  return action == Action::Output || action == Action::Drain || action == Action::Throw ||
         action == Action::Tail;
}

bool has_second(Action action) {
  return action == Action::Output || action == Action::Poll;
}

bool has_nested(Action action) {
  return action == Action::Output || action == Action::Drain || action == Action::Throw;
}

bool has_nested_steps(const Script& script) {
  return std::ranges::any_of(script.steps, [](const Step& step) { return step.depth != 0; });
}

std::span<const Step> first_with_nested(std::span<const Step> steps) {
  std::size_t end = 1;
  while (end < steps.size() && steps[end].depth > steps.front().depth) ++end;
  return steps.first(end);
}

void ActiveSteps::begin(std::span<const Step> step_and_nested) {
  Frame& frame = frames_[depth_++];
  frame.step = &step_and_nested.front();
  frame.nested = step_and_nested.subspan(1);
  frame.done.assign(frame.nested.size(), false);
  frame.moment = 0;
}

std::optional<std::string> why_impossible(const Settings& settings) {
  if (!std::has_single_bit(settings.pages) || settings.pages > kPagesMax) {
    return "a ring of " + std::to_string(settings.pages) + " pages: a power of two up to " +
           std::to_string(kPagesMax);
  }
  if ((settings.sample_type & ~kernel::kSampleTypes) != 0) {
    return "sample_type has bits that are not simulated";
  }
  if (const auto why = too_large("wakeup", settings.wakeup, 0xffff'ffff)) return why;
  if (settings.start % 8 != 0) {
    return "start " + std::to_string(settings.start) + ": a multiple of 8";
  }
  if (settings.events != 1 && settings.events != 2) {
    return "events " + std::to_string(settings.events) + ": 1 or 2";
  }
  return std::nullopt;
}

std::optional<std::string> why_impossible(const Settings& settings, const Step& step) {
  const bool consumes =
      step.action == Action::Drain || step.action == Action::Throw || step.action == Action::Tail;
  if (consumes && settings.overwrite) return "an overwriting ring is mapped read-only";
  if (step.second && settings.events < 2) return "there is no second event: set 'events 2'";
  if (const auto why = too_large("a depth of", step.depth, kDepthMax)) return why;
  if (const auto why = too_large("at", step.at, kAtMax)) return why;
  if (step.action == Action::Output) return too_large("output", step.number, kOutputMax);
  if (step.action == Action::Die && step.depth != 1) return kDies;
  return std::nullopt;
}

std::uint64_t deepest(std::span<const Step> before) {
  if (before.empty()) return 0;
  return before.back().depth + (has_nested(before.back().action) ? 1 : 0);
}

std::optional<std::string> why_misplaced(std::span<const Step> before, const Step& step) {
  if (step.depth == 0) return step.at == 0 ? std::nullopt : std::optional{"'at' without nesting"};
  if (step.action == Action::Die) {
    const auto outer = std::find_if(before.rbegin(), before.rend(),
                                    [](const Step& each) { return each.depth == 0; });
    if (outer != before.rend() && outer->action != Action::Output) return kDies;
  }
  if (step.depth <= deepest(before)) return std::nullopt;
  if (before.empty() || before.back().depth + 1 < step.depth) {
    return "no enclosing step one level up";
  }
  return "nested in '" + to_text(before.back()) + "', which can have no nested steps";
}

std::optional<std::string> why_impossible(const Script& script) {
  if (const auto why = why_impossible(script.settings)) return why;
  if (const auto why = too_large("number of steps", script.steps.size(), kStepsMax)) return why;
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    const Step& step = script.steps[i];
    auto why = why_impossible(script.settings, step);
    if (!why) why = why_misplaced(std::span{script.steps}.first(i), step);
    if (why) return to_text(step) + ": " + *why;
  }
  return std::nullopt;
}

void fill_payload(std::span<std::byte> payload, std::uint64_t step) {
  // The increment and the mixing of SplitMix64.
  std::uint64_t state = step * 0xbf58'476d'1ce4'e5b9;
  for (std::size_t i = 0; i < payload.size(); i += sizeof(state)) {
    std::uint64_t word = state += 0x9e37'79b9'7f4a'7c15;
    word = (word ^ (word >> 30)) * 0xbf58'476d'1ce4'e5b9;
    word = (word ^ (word >> 27)) * 0x94d0'49bb'1331'11eb;
    word ^= word >> 31;
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    std::memcpy(&payload[i], &word, std::min(sizeof(word), payload.size() - i));
  }
}

}  // namespace perfring::script
