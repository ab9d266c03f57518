// The demonstration: `perfring` without a command.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "harness/cli/demo/live.h"
#include "harness/cli/demo/producer_thread.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

constexpr const char* kRow = "{:>5} {:>13} {:>13} {:>11} {:>9} {:>12} {:>7} {:>8} {:>11}  {}\n";

}  // namespace

std::string progress_line(const LiveProgress& progress) {
  constexpr std::size_t kRingsMax = 8;
  std::string line =
      fmt::format("{:5.1f} s {:>12} events/s {:>9} lost/s  fill", progress.seconds,
                  grouped(progress.events_per_second), grouped(progress.lost_per_second));
  const std::size_t shown = std::min(progress.fill.size(), kRingsMax);
  for (std::size_t i = 0; i < shown; ++i) line += fmt::format(" {:3.0f}%", progress.fill[i] * 100);
  if (shown < progress.fill.size()) {
    line += fmt::format(" (at most {:.0f}%)", std::ranges::max(progress.fill) * 100);
  }
  return line;
}

std::string verdict_table(const LiveOutcome& outcome) {
  std::string table;
  if (!outcome.simulated_because.empty()) {
    table += fmt::format("The SIMULATED kernel, with a real writer thread for each CPU: {}\n",
                         outcome.simulated_because);
  }
  table += fmt::format(kRow, "CPU", "attempted", "delivered", "lost", "malformed", "out of order",
                       "corrupt", "wakeups", "records/s", "attempted = delivered + lost");
  for (const LiveCpuOutcome& cpu : outcome.cpus) {
    const bool accounted = cpu.output.attempted == cpu.audit.delivered + cpu.audit.lost;
    table += fmt::format(kRow, cpu.cpu, grouped(cpu.output.attempted), grouped(cpu.audit.delivered),
                         grouped(cpu.audit.lost), grouped(cpu.audit.malformed),
                         grouped(cpu.audit.out_of_order), grouped(cpu.audit.corrupt),
                         grouped(cpu.wakeups), grouped(cpu.records_per_second),
                         accounted ? "yes" : "NO");
  }
  if (outcome.merge) {
    const LiveMerge& merge = *outcome.merge;
    table += fmt::format(
        "In time order: {} late, by {} ns at most; {} ahead of the clock; slack {} ns, longest "
        "delay {} ns\n",
        grouped(merge.late), grouped(merge.worst_late), grouped(merge.ahead), grouped(merge.slack),
        grouped(merge.longest_delay));
    if (!merge.note.empty()) table += merge.note + "\n";
  }
  for (const LiveCpuOutcome& cpu : outcome.cpus) {
    for (const std::string& violation : cpu.violations()) table += "VIOLATED " + violation + "\n";
  }
  const std::string verdict = sentence(conclusion_of(outcome), "All invariants hold");
  return table + fmt::format("{} in {:.1f} s\n", verdict, outcome.seconds);
}

std::string verdict_json(const LiveOutcome& outcome) {
  Json json = to_json(conclusion_of(outcome));
  json["kernel"] = outcome.simulated_because.empty() ? "live" : "simulated";
  if (!outcome.simulated_because.empty()) json["simulated_because"] = outcome.simulated_because;
  json["seconds"] = outcome.seconds;
  if (outcome.merge) {
    json["merge"] = {{"late", outcome.merge->late},
                     {"worst_late_ns", outcome.merge->worst_late},
                     {"ahead", outcome.merge->ahead},
                     {"slack_ns", outcome.merge->slack},
                     {"longest_delay_ns", outcome.merge->longest_delay}};
    if (!outcome.merge->note.empty()) json["merge"]["note"] = outcome.merge->note;
  }
  json["cpus"] = Json::array();
  for (const LiveCpuOutcome& cpu : outcome.cpus) {
    json["cpus"].push_back({
        {"cpu", cpu.cpu},
        {"attempted", cpu.output.attempted},
        {"accepted", cpu.output.accepted},
        {"delivered", cpu.audit.delivered},
        {"lost", cpu.audit.lost},
        {"malformed", cpu.audit.malformed},
        {"out_of_order", cpu.audit.out_of_order},
        {"corrupt", cpu.audit.corrupt},
        {"wakeups", cpu.wakeups},
        {"records_per_second", cpu.records_per_second},
        {"bytes", cpu.audit.bytes},
        {"accounted", cpu.output.attempted == cpu.audit.delivered + cpu.audit.lost},
        {"violations", cpu.violations()},
    });
  }
  return dump(json);
}

Conclusion conclusion_of(const LiveOutcome& outcome) {
  bool violated = false;
  std::string nothing = outcome.cpus.empty() ? "there was no CPU to drain" : "";
  for (const LiveCpuOutcome& cpu : outcome.cpus) {
    violated = violated || !cpu.violations().empty();
    if (cpu.audit.delivered == 0 && nothing.empty()) {
      nothing = fmt::format("no record of CPU {} was delivered", cpu.cpu);
    }
  }
  return conclude(violated, outcome.interrupted, nothing);
}

namespace {

// Returns the CPUs to generate on. The simulated kernel has the CPUs that this thread may run on,
// so that it does not need sysfs.
std::expected<std::vector<std::uint32_t>, std::string> cpus_of(const LiveOptions& options,
                                                               bool simulated) {
  if (simulated) return choose_cpus(options.cpus, usable_cpus(), "CPUs that this process may use");
  const auto online = os::online_cpus();
  if (!online) {
    return std::unexpected("the online CPUs are not known.\n" + online.error().explain());
  }
  return choose_cpus(options.cpus, *online, "online CPUs");
}

int live_failed(const std::string& why) {
  return fail("the live kernel cannot be used.\n" + why +
              "\nTo drain the simulated kernel instead, give --simulated or no arguments at all");
}

}  // namespace

// Without arguments, falls back to the simulated kernel if the live one cannot be used. With
// options for the live kernel, its absence is an error.
int run_command(const LiveOptions& given) {
  std::string why = given.simulated ? "requested with --simulated" : "";
  if (given.bare) why = why_not_live().value_or("");
  const bool simulated = !why.empty();
  const auto cpus = cpus_of(given, simulated);
  if (!cpus)
    return simulated || !given.cpus.empty() ? fail(cpus.error()) : live_failed(cpus.error());
  LiveOptions options = given;
  options.cpus = *cpus;
  if (!options.dump.empty()) {  // report an error before the run, not after it
    const auto writable = check_output("--dump", options.dump, Readers::OwnerAlone);
    if (!writable) return fail(writable.error());
  }
  const StopOnSignals stop;
  const ProgressLine line;
  const auto show = [&line](const LiveProgress& progress) { line.show(progress_line(progress)); };
  if (simulated) line.keep("Draining the simulated kernel instead of the live one: " + why);
  line.keep(
      fmt::format("Draining {} of CPUs {} for {} s; fill is the highest occupancy that "
                  "a drain found in each ring",
                  simulated ? "simulated rings" : "this kernel's rings",
                  os::to_cpu_list(options.cpus), options.seconds));
  const auto outcome = simulated ? run_simulated(options, why, stop.requested(), show)
                                 : run_live(options, stop.requested(), show);
  line.clear();
  if (!outcome) return simulated ? fail(outcome.error()) : live_failed(outcome.error());
  if (!options.dump.empty()) {
    const auto written = write_output("--dump", options.dump, outcome->dump, Readers::OwnerAlone);
    if (!written) return fail(written.error());
  }
  return deliver(options.json ? verdict_json(*outcome) : verdict_table(*outcome),
                 exit_code(conclusion_of(*outcome).verdict));
}

}  // namespace perfring::cli
