// The demonstration: `perfring` without a command.

#include <fmt/format.h>

#include <expected>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"
#include "harness/cli/live.h"
#include "harness/cli/producer.h"
#include "harness/program/console.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

// Which CPUs to generate on. The simulated kernel has those that this thread may run on, so that
// it needs no sysfs.
std::expected<std::vector<std::uint32_t>, std::string> cpus_of(const LiveOptions& options,
                                                               bool simulated) {
  if (simulated) return choose_cpus(options.cpus, usable_cpus(), "CPUs that this process may use");
  const auto online = os::online_cpus();
  if (!online) {
    return std::unexpected("which CPUs are online is not known.\n" + online.error().explain());
  }
  return choose_cpus(options.cpus, *online, "online CPUs");
}

int live_failed(const std::string& why) {
  return fail("the live kernel cannot be used.\n" + why +
              "\nWith --simulated, or no argument at all, the simulated kernel is drained instead");
}

}  // namespace

// Without any argument, a machine that does not allow it gets the simulated kernel. Who gives
// options for the live one gets an error if there is none.
int run_command(const LiveOptions& given) {
  std::string why = given.simulated ? "as asked for" : "";
  if (given.bare) why = why_not_live().value_or("");
  const bool simulated = !why.empty();
  const auto cpus = cpus_of(given, simulated);
  if (!cpus)
    return simulated || !given.cpus.empty() ? fail(cpus.error()) : live_failed(cpus.error());
  LiveOptions options = given;
  options.cpus = *cpus;
  const StopOnSignals stop;
  const ProgressLine line;
  const auto show = [&line](const LiveProgress& progress) { line.show(progress_line(progress)); };
  if (simulated) line.keep("The simulated kernel is drained in place of the live one: " + why);
  line.keep(
      fmt::format("Draining {} of CPUs {} for {} s; fill is the highest occupancy that "
                  "a drain found in each ring",
                  simulated ? "simulated rings" : "this kernel's rings",
                  os::to_cpu_list(options.cpus), options.seconds));
  const auto outcome = simulated ? run_simulated(options, why, stop.requested(), show)
                                 : run_live(options, stop.requested(), show);
  line.clear();
  if (!outcome) return simulated ? fail(outcome.error()) : live_failed(outcome.error());
  return deliver(options.json ? verdict_json(*outcome) : verdict_table(*outcome),
                 exit_code(conclusion_of(*outcome).verdict));
}

}  // namespace perfring::cli
