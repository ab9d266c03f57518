// `perfring stress`.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <vector>

#include "harness/cli/command_line.h"
#include "harness/cli/stress.h"
#include "harness/program/console.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/stress/faults.h"
#include "harness/stress/processes.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/threads.h"

namespace perfring::cli {
namespace {

using stress::PartOutcome;
using stress::Run;

// A drain that does not end, or a thread that is stuck, is a violation and not a wait.
std::atomic<std::time_t> deadline{0};

// Somebody else may send the signal, too.
void on_alarm(int) {
  std::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (now.tv_sec < deadline) return;
  constexpr const char kText[] = "VIOLATED bounded: the run does not end\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(kViolated);
}

// While one lives, the run has to end.
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

std::vector<PartOutcome> run_parts(const StressOptions& options, Run run) {
  struct Part {
    bool wanted;
    PartOutcome (*run)(const Run&);
  };
  const bool all = options.every_part();
  const Part parts[] = {{all || options.threads, stress::threads<>},
                        {all || options.sleepers, stress::sleepers<>},
                        {all || options.processes, stress::processes<>}};
  int count = 0;
  for (const Part& part : parts) count += part.wanted ? 1 : 0;
  run.seconds /= count;
  std::vector<PartOutcome> outcomes;
  for (const Part& part : parts) {
    if (part.wanted && !run.interrupted()) outcomes.push_back(part.run(run));
  }
  return outcomes;
}

std::vector<PartOutcome> run_fault(const StressOptions& options, Run run) {
  const auto& parts = stress::find_planted(options.fault)->parts;
  run.patience = stress::kPatienceWithAFault;
  run.seconds /= static_cast<double>(parts.size());
  std::vector<PartOutcome> outcomes;
  for (const auto& part : parts) {
    if (!run.interrupted()) outcomes.push_back(part.run(run));
  }
  return outcomes;
}

}  // namespace

int run_command(const StressOptions& options) {
  if (options.list) {
    return deliver(options.json ? stress_list_json() : stress_list(), kHolds, "the list");
  }
  std::vector<PartOutcome> parts;
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
