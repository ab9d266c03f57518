// `perfring sim`.

#include <fmt/format.h>

#include "harness/cli/command_line.h"
#include "harness/cli/sim.h"
#include "harness/program/console.h"
#include "harness/program/counted.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::cli {

int run_command(const SimOptions& options) {
  if (options.list) {
    return deliver(options.json ? sim_list_json() : sim_list(), kHolds, "the list");
  }
  if (!options.script.empty()) return run_script(options);
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  const StopOnSignals stop;
  const ProgressLine line;
  if (options.runs != 0) {
    const SimRuns runs = run_many(*plan, options.runs, stop.requested(), [&](std::uint64_t run) {
      line.show(fmt::format("{} of {} runs", grouped(run), grouped(options.runs)));
    });
    line.clear();
    return deliver(options.json ? runs_json(runs) : runs_table(runs),
                   exit_code(conclusion_of(runs).verdict));
  }
  const SimOutcome outcome = run_sim(*plan, stop.requested(), [&](std::uint64_t steps) {
    line.show(fmt::format("{} of {} steps", grouped(steps), grouped(plan->plan.steps)));
  });
  line.clear();
  return deliver(options.json ? sim_json(*plan, outcome) : sim_table(*plan, outcome),
                 exit_code(conclusion_of(*plan, outcome).verdict));
}

}  // namespace perfring::cli
