#include "harness/differential/campaign.h"

#include <fmt/format.h>

#include <utility>

#include "harness/differential/live_reference.h"
#include "harness/script/script.h"
#include "perfring/os/syscalls.h"

namespace perfring::differential {
namespace {

std::optional<Difference> run_live(live::Emitter& emitter, const script::Script& script, int cpu,
                                   Compared& compared, const Stop& stop) {
  LiveReference kernel{emitter, script.settings, cpu};
  return compare(script, kernel, compared, [&] { return stop(compared); });
}

FoundDifference shrunk(live::Emitter& emitter, const script::Script& script, Difference difference,
                       int cpu, const Stop& stop) {
  Compared uncounted;
  FoundDifference finding{std::nullopt, script, std::move(difference)};
  finding.script = script::shrink(script, [&](const script::Script& candidate) {
    auto found = run_live(emitter, candidate, cpu, uncounted, stop);
    if (found) finding.difference = *found;  // keep the last candidate that fails
    return found.has_value();
  });
  return finding;
}

}  // namespace

script::Script script_of(std::uint64_t seed, std::size_t steps_max) {
  script::Script script =
      script::generate(seed, {.steps_max = steps_max, .page_size = os::page_size()});
  script.settings.word = live_word();
  return script;
}

CampaignOutcome run_script(live::Emitter& emitter, const script::Script& script, int cpu,
                           const Stop& stop) {
  CampaignOutcome outcome;
  if (auto difference = run_live(emitter, script, cpu, outcome.compared, stop)) {
    outcome.finding = shrunk(emitter, script, *std::move(difference), cpu, stop);
  }
  return outcome;
}

CampaignOutcome run_campaign(live::Emitter& emitter, const CampaignOptions& options,
                             const Stop& stop) {
  CampaignOutcome outcome;
  for (std::uint64_t i = 0; i < options.scripts && !stop(outcome.compared); ++i) {
    const std::uint64_t seed = options.seed + i;
    const script::Script script = script_of(seed, options.steps_max);
    if (auto difference = run_live(emitter, script, options.cpu, outcome.compared, stop)) {
      outcome.finding = shrunk(emitter, script, *std::move(difference), options.cpu, stop);
      outcome.finding->seed = seed;
      break;
    }
  }
  return outcome;
}

std::string explain(const FoundDifference& finding, const std::string& kernel) {
  std::string text;
  for (std::size_t i = 0; i < finding.script.steps.size(); ++i) {
    const bool here = i + 1 == finding.difference.step;
    text += script::to_text(finding.script.steps[i]) + (here ? "  # <- differs\n" : "\n");
  }
  const std::string origin =
      finding.seed ? fmt::format(" (seed {})", *finding.seed) : std::string{};
  return fmt::format(
      "The simulated kernel differs from the {}{} after step {} of this script:\n"
      "{}{}{}\n",
      kernel, origin, finding.difference.step, script::to_text(finding.script.settings), text,
      finding.difference.what);
}

}  // namespace perfring::differential
