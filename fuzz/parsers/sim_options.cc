// `perfring sim`: what is accepted is a plan that can be run, and that can be replayed.

#include "fuzz/parsers/perfring_options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  auto sim = fuzz::parse_perfring<cli::SimOptions>(fuzz::Input{data, size}.text(), {"sim"});
  if (!sim) return 0;
  // No file of this machine's.
  if (simulator::find_scenario(sim->scenario) == nullptr) {
    sim->scenario.insert(0, "there is no file ");
  }
  const auto plan = cli::plan_of(*sim);
  if (!fuzz::accepted(plan)) return 0;
  fuzz::expect(simulator::impossible(plan->plan.settings).empty(), "a plan that cannot be");
  fuzz::expect(!cli::replay_line(*plan, plan->plan).empty(), "a plan without a replay line");
  return 0;
}
