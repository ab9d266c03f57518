// `perfring stress`.

#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/stress/stress.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/stress/processes.h"
#include "harness/stress/run.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/stress_faults.h"
#include "harness/stress/threads.h"

namespace perfring::cli {
namespace {

using stress::PartReport;
using stress::Run;

constexpr const char* kStressRow =
    "{:>10} {:>8} {:>13} {:>13} {:>13} {:>11} {:>9} {:>9} {:>9}  {}\n";

double per_second(const PartReport& outcome) {
  return outcome.seconds > 0 ? static_cast<double>(outcome.delivered) / outcome.seconds : 0;
}

std::string whole(double number) {
  return fmt::format("{:.0f}", number);
}

// Returns why a fault was not found, and how to find it.
std::string not_found(const stress::StressFault& fault) {
  const faults::Expected& expected = fault.expected(faults::Harness::Stress);
  if (is_found(expected)) {
    return fmt::format("the fault {} was not found in that time: give more --seconds", fault.name);
  }
  if (!is_found(fault.expected(faults::Harness::ThreadSanitizer))) {
    return fmt::format("the fault {} was not found, and cannot be found here: {}", fault.name,
                       explanation(std::get<faults::Reason>(expected)));
  }
  return fmt::format(
      "the fault {} was not found by the invariants; ThreadSanitizer finds it: "
      "`bazel run --config=tsan //:perfring -- stress --fault {}`",
      fault.name, fault.name);
}

bool all_hold(std::span<const PartReport> parts) {
  return std::ranges::all_of(parts, &PartReport::holds);
}

// The verdict as a table and as JSON, with the same figures. `replay` is the command that
// reproduces a violation.
std::string stress_table(std::span<const PartReport> parts, const Conclusion& conclusion,
                         const std::string& replay) {
  std::string table =
      fmt::format(kStressRow, "part", "rounds", "attempted", "delivered", "lost", "records/s",
                  "woken", "timed out", "in record", "attempted = delivered + lost");
  double seconds = 0;
  for (const PartReport& part : parts) {
    table +=
        fmt::format(kStressRow, part.part, part.rounds, part.attempted, part.delivered, part.lost,
                    whole(per_second(part)), part.woken, part.timed_out, part.killed_in_record,
                    part.attempted == part.delivered + part.lost ? "yes" : "NO");
    seconds += part.seconds;
  }
  for (const PartReport& part : parts) {
    for (const std::string& violation : part.violations) {
      table += fmt::format("VIOLATED {}: {}\n", part.part, violation);
    }
  }
  if (!all_hold(parts)) table += "  replay: " + replay + "\n";
  return table +
         fmt::format("{} in {:.1f} s\n", sentence(conclusion, "All invariants hold"), seconds);
}

std::string stress_json(std::span<const PartReport> parts, const Conclusion& conclusion,
                        const std::string& replay) {
  Json json = to_json(conclusion);
  json["replay"] = replay;
  json["parts"] = Json::array();
  for (const PartReport& part : parts) {
    json["parts"].push_back({
        {"part", part.part},
        {"rounds", part.rounds},
        {"attempted", part.attempted},
        {"delivered", part.delivered},
        {"lost", part.lost},
        {"records_per_second", per_second(part)},
        {"woken", part.woken},
        {"timed_out", part.timed_out},
        {"killed_in_record", part.killed_in_record},
        {"seconds", part.seconds},
        {"violations", part.violations},
    });
  }
  return dump(json);
}

// A drain that does not end, or a thread that is stuck, is a violation after this time
// (CLOCK_MONOTONIC, in seconds).
std::atomic<std::time_t> deadline{0};

// Checks the time, because another process may send SIGALRM, too.
void on_alarm(int) {
  std::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (now.tv_sec < deadline) return;
  constexpr const char kText[] = "VIOLATED bounded: the run did not end\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(kViolated);
}

// Reports a violation and ends the program if the run does not end during its lifetime.
class Alarm {
 public:
  explicit Alarm(double seconds) {
    const auto patience = 60 + static_cast<unsigned>(std::ceil(seconds * 2));
    std::timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    deadline = now.tv_sec + patience;
    std::signal(SIGALRM, on_alarm);
    ::alarm(patience);
  }
  ~Alarm() { ::alarm(0); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
};

std::vector<PartReport> run_parts(const StressOptions& options, Run run) {
  struct Part {
    bool wanted;
    PartReport (*run)(const Run&);
  };
  const bool all = options.every_part();
  const Part parts[] = {{all || options.threads, stress::threads<>},
                        {all || options.sleepers, stress::sleepers<>},
                        {all || options.processes, stress::processes<>}};
  int count = 0;
  for (const Part& part : parts) count += part.wanted ? 1 : 0;
  run.seconds /= count;
  std::vector<PartReport> outcomes;
  for (const Part& part : parts) {
    if (part.wanted && !run.interrupted()) outcomes.push_back(part.run(run));
  }
  return outcomes;
}

std::vector<PartReport> run_fault(const StressOptions& options, Run run) {
  const auto& parts = stress::find_planted(options.fault)->parts;
  run.patience = stress::kPatienceWithAFault;
  run.seconds /= static_cast<double>(parts.size());
  std::vector<PartReport> outcomes;
  for (const auto& part : parts) {
    if (!run.interrupted()) outcomes.push_back(part.run(run));
  }
  return outcomes;
}

}  // namespace

Conclusion conclusion_of(std::span<const PartReport> parts, bool interrupted,
                         const std::string& fault) {
  std::string nothing;
  if (!fault.empty()) {
    nothing = not_found(*stress::find_planted(fault));
  } else if (parts.empty()) {
    nothing = "no part was run";
  }
  for (const PartReport& part : parts) {
    if (part.delivered == 0 && nothing.empty()) {
      nothing = fmt::format("no record was delivered by the part {}", part.part);
    }
  }
  return conclude(!all_hold(parts), interrupted, nothing);
}

int run_command(const StressOptions& options) {
  if (options.list) {
    return deliver(options.json ? stress_list_json() : stress_list(), kHolds, "the list");
  }
  std::vector<PartReport> parts;
  bool interrupted = false;
  {
    const StopOnSignals stop;
    const Alarm alarm{options.run.seconds};
    Run run = options.run;
    run.interrupt = &stop.requested();
    parts = options.fault.empty() ? run_parts(options, run) : run_fault(options, run);
    interrupted = stop.requested();
  }
  const Conclusion conclusion = conclusion_of(parts, interrupted, options.fault);
  const auto report = options.json ? stress_json : stress_table;
  return deliver(report(parts, conclusion, replay_line(options)), exit_code(conclusion.verdict));
}

}  // namespace perfring::cli
