#include "harness/simulator/runs.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "harness/kernel/perf_event.h"
#include "harness/simulator/random.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kMemoryMax = std::uint64_t{64} << 20;  // for all rings and payloads

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_{~seed} {}  // differs from the run's own numbers

  RunSettings settings() {
    RunSettings s;
    s.ring.pages = std::uint64_t{1} << random_.below(random_.one_in(2) ? 4 : 13);
    const std::uint64_t ring = s.ring.pages * kPageSize;
    s.ring.word = random_.one_in(2) ? kernel::Word::k32 : kernel::Word::k64;
    s.ring.start = start(ring);
    payload(s, ring);
    s.cpus = random_.one_in(4) ? magnitude(1, 64) : random_.between(1, 3);
    while (s.cpus > 1 && s.cpus * (ring + 4 * s.payload_max) > kMemoryMax) s.cpus /= 2;
    s.burst_max = magnitude(1, 1000);
    s.idle_max = magnitude(0, 20'000);
    s.interrupts = random_.one_in(4) ? 0 : random_.between(1, 90);
    s.interval_log2 = random_.below(17);
    // A refused record takes few steps, even if its payload took long to fill.
    if (s.payload_max > 512) {
      s.burst_max = std::min<std::uint64_t>(s.burst_max, 10);
      s.idle_max = std::max(s.idle_max, s.payload_max / 8);
      const auto bits = static_cast<std::uint64_t>(std::bit_width(s.payload_max));
      s.interval_log2 = std::max(s.interval_log2, std::min<std::uint64_t>(17, bits));
    }
    // Interrupts in interrupts would otherwise make one output last for millions of steps.
    if (s.interrupts > 30) s.interval_log2 = std::max<std::uint64_t>(s.interval_log2, 4);
    s.ring.wakeup = random_.one_in(2) ? 1 : magnitude(0, 1000);
    s.ring.watermark = random_.one_in(3);
    if (s.ring.watermark) s.ring.wakeup = magnitude(1, ring);
    s.timeout = announces_each(s) && random_.one_in(4) ? 0 : magnitude(1, 50'000);
    s.callback_max = sometimes(400);
    s.break_one_in = sometimes(400);
    s.throw_one_in = sometimes(400);
    s.pause_one_in = sometimes(100);
    s.drain_with = random_.below(kCursor + 1);
    s.hostile = random_.one_in(10) ? 1 : 0;
    if (s.hostile == 0 && random_.one_in(4)) one_consumer(s);
    if (s.hostile == 0 && s.rings != kMerged) s.ring.before_5_2 = random_.one_in(4);
    return s;
  }

 private:
  // Gives all rings to one consumer.
  void one_consumer(RunSettings& s) {
    s.rings = random_.between(kInTurns, kMerged);
    s.cpus = random_.between(1, 5);
    s.payload_min = std::max<std::uint64_t>(s.payload_min, 16);
    s.payload_max = std::min(std::max(s.payload_max, s.payload_min), kIntactMax);
    s.payload_min = std::min(s.payload_min, s.payload_max);
    s.limit = sometimes(200);
    s.delay_max = sometimes(400);
    s.stall_one_in = sometimes(100);
    s.skew_max = sometimes(100);
    s.clock_tick = random_.one_in(2) ? 1 : magnitude(1, 64);
    s.slack = sometimes(10'000);
    s.hotplug = random_.one_in(3) ? magnitude(100, 20'000) : 0;
    if (announces_each(s) && s.timeout != 0) s.latency = sometimes(5'000);
    if (s.rings != kMerged) s.flush_one_in = sometimes(20);
  }

  // Draws from `least` to `most`, each order of magnitude with the same probability.
  std::uint64_t magnitude(std::uint64_t least, std::uint64_t most) {
    const auto bits = random_.below(static_cast<std::uint32_t>(std::bit_width(most - least)) + 1);
    return std::min(most, least + random_.below(std::uint32_t{1} << bits));
  }
  std::uint64_t sometimes(std::uint64_t most) { return random_.one_in(2) ? 0 : magnitude(1, most); }

  // Half of the runs pass the end of 32 or 64 bits after up to two laps.
  std::uint64_t start(std::uint64_t ring) {
    const std::uint64_t before =
        8 * std::uint64_t{1 + random_.below(static_cast<std::uint32_t>(ring / 4))};
    switch (random_.below(4)) {
      case 0:
        return (std::uint64_t{1} << 32) - before;
      case 1:
        return std::uint64_t{0} - before;
      case 2:
        return random_.next() / 8 * 8;
      default:
        return 0;
    }
  }

  // Draws mostly small payloads, sometimes payloads that kernels mishandle.
  void payload(RunSettings& s, std::uint64_t ring) {
    constexpr std::uint64_t kBeside = 12 + 32;  // a header, a raw size, a LOST, 8 bytes unused
    const bool oversize = ring >= 2 * kIntactMax && random_.one_in(8);
    const std::uint64_t most = std::min(ring - kBeside, oversize ? 3 * kIntactMax : kIntactMax);
    s.payload_max = random_.one_in(8) ? most : magnitude(0, most);
    s.payload_min = random_.one_in(4) ? s.payload_max : magnitude(0, s.payload_max);
  }

  Random random_;
};

}  // namespace

RunSettings random_settings(std::uint64_t seed) {
  return Draw{seed}.settings();
}

RunsOutcome simulate_runs(const Runs& runs,
                          const std::function<SimulationOutcome(const SimulationPlan&)>& simulate) {
  RunsOutcome all;
  while (all.runs < runs.count && !all.found && !all.interrupted) {
    const std::uint64_t seed = runs.first_seed + all.runs;
    const SimulationPlan plan{.seed = seed, .steps = runs.steps, .settings = random_settings(seed)};
    const SimulationOutcome outcome = simulate(plan);
    ++all.runs;
    all.steps += outcome.steps;
    all.drains += outcome.drains;
    all.attempted += outcome.attempts();
    for (const CpuTotals& cpu : outcome.cpus) {
      all.delivered += cpu.received.delivered;
      all.lost += cpu.attempted.lost;
      all.failed += cpu.attempted.failed;
    }
    all.interrupted = outcome.interrupted;
    all.found = outcome.found;
    if (outcome.found) all.violating = plan;
  }
  return all;
}

namespace {

// The number of steps that all attempts together may take.
constexpr std::uint64_t kBudget = 300'000'000;
constexpr std::uint64_t kSeeds = 30;

class Shrinker {
 public:
  Shrinker(const SimulationPlan& plan, const Found& found,
           const std::function<SimulationOutcome(const SimulationPlan&)>& simulate,
           const std::function<bool()>& give_up)
      : best_{plan, found}, simulate_{simulate}, give_up_{give_up} {}

  Shrunk run() {
    cut(best_.found.step + 1);
    fewest_steps();  // for violations that are only found at the end
    simplify();
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SimulationPlan plan = best_.plan;
      plan.seed = seed;
      plan.steps = best_.found.step;
      if (const auto found = attempt(plan); found && found->step < best_.found.step)
        take(plan, *found);
    }
    fewest_steps();
    return best_;
  }

 private:
  // Runs `plan`. Returns its violation if it has the invariant that is being shrunk.
  std::optional<Found> attempt(const SimulationPlan& plan) {
    if (spent_ >= kBudget || !impossible(plan.settings).empty()) return std::nullopt;
    if (give_up_ && give_up_()) return std::nullopt;
    const SimulationOutcome outcome = simulate_(plan);
    spent_ += outcome.steps;
    if (!outcome.found || outcome.found->violation.invariant != best_.found.violation.invariant) {
      return std::nullopt;
    }
    return outcome.found;
  }

  bool take(SimulationPlan plan, const Found& found) {
    best_ = {plan, found};
    return true;
  }

  bool cut(std::uint64_t steps) {
    SimulationPlan plan = best_.plan;
    plan.steps = std::min(steps, plan.steps);
    const auto found = attempt(plan);
    return found && take(plan, *found);
  }

  // Sets each setting to its simplest value if the violation still occurs within the given steps,
  // then limits the steps to those up to the violation.
  void simplify() {
    const std::uint64_t steps = std::max<std::uint64_t>(4 * best_.plan.steps, 100'000);
    const RunSettings plain{
        .cpus = 1, .ring = {}, .payload_min = 8, .payload_max = 8, .interrupts = 0};
    for (const SettingName& name : setting_names()) {
      const auto value = name.get(plain);
      if (!value) continue;
      SimulationPlan plan = best_.plan;
      name.set(plan.settings, *value);
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
  const std::function<SimulationOutcome(const SimulationPlan&)>& simulate_;
  const std::function<bool()>& give_up_;
  std::uint64_t spent_ = 0;
};

}  // namespace

Shrunk shrink(const SimulationPlan& plan, const Found& found,
              const std::function<SimulationOutcome(const SimulationPlan&)>& simulate,
              const std::function<bool()>& give_up) {
  return Shrinker{plan, found, simulate, give_up}.run();
}

}  // namespace perfring::simulator
