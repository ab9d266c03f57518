#include "harness/simulator/shrink.h"

#include <algorithm>
#include <optional>

namespace perfring::simulator {
namespace {

// Steps that all attempts may take together.
constexpr std::uint64_t kBudget = 300'000'000;
constexpr std::uint64_t kSeeds = 30;

class Shrinker {
 public:
  Shrinker(const Plan& plan, const Found& found,
           const std::function<Outcome(const Plan&)>& simulate,
           const std::function<bool()>& give_up)
      : best_{plan, found}, simulate_{simulate}, give_up_{give_up} {}

  Shrunk run() {
    cut(best_.found.step + 1);
    fewest_steps();  // for what is only found at the end
    simplify();
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Plan plan = best_.plan;
      plan.seed = seed;
      plan.steps = best_.found.step;
      if (const auto found = attempt(plan); found && found->step < best_.found.step)
        take(plan, *found);
    }
    fewest_steps();
    return best_;
  }

 private:
  // Runs `plan`. Returns its violation if it is the one to be shrunk.
  std::optional<Found> attempt(const Plan& plan) {
    if (spent_ >= kBudget || !impossible(plan.settings).empty()) return std::nullopt;
    if (give_up_ && give_up_()) return std::nullopt;
    const Outcome outcome = simulate_(plan);
    spent_ += outcome.steps;
    if (!outcome.found || outcome.found->violation.invariant != best_.found.violation.invariant) {
      return std::nullopt;
    }
    return outcome.found;
  }

  bool take(Plan plan, const Found& found) {
    best_ = {plan, found};
    return true;
  }

  bool cut(std::uint64_t steps) {
    Plan plan = best_.plan;
    plan.steps = std::min(steps, plan.steps);
    const auto found = attempt(plan);
    return found && take(plan, *found);
  }

  // Each setting, to the simplest value with which it still happens within the steps that there
  // were, and then is over sooner.
  void simplify() {
    const std::uint64_t steps = std::max<std::uint64_t>(4 * best_.plan.steps, 100'000);
    const RunSettings plain{
        .cpus = 1, .pages = 1, .payload_min = 8, .payload_max = 8, .interrupts = 0};
    for (const SettingName& name : setting_names()) {
      Plan plan = best_.plan;
      plan.settings.*name.field = plain.*name.field;
      if (plan.settings == best_.plan.settings) continue;
      plan.steps = steps;
      const auto found = attempt(plan);
      if (!found) continue;
      plan.steps = std::min(plan.steps, found->step + 1);
      if (const auto again = attempt(plan)) take(plan, *again);
    }
  }

  void fewest_steps() {
    std::uint64_t too_few = 0;
    while (best_.plan.steps - too_few > 1) {
      const std::uint64_t middle = too_few + (best_.plan.steps - too_few) / 2;
      if (!cut(middle)) too_few = middle;
    }
  }

  Shrunk best_;
  const std::function<Outcome(const Plan&)>& simulate_;
  const std::function<bool()>& give_up_;
  std::uint64_t spent_ = 0;
};

}  // namespace

Shrunk shrink(const Plan& plan, const Found& found,
              const std::function<Outcome(const Plan&)>& simulate,
              const std::function<bool()>& give_up) {
  return Shrinker{plan, found, simulate, give_up}.run();
}

}  // namespace perfring::simulator
