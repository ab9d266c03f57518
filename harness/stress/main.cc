// `stress`: see --help, and README.md.

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <variant>
#include <vector>

#include "harness/stress/mutants.h"
#include "harness/stress/options.h"
#include "harness/stress/processes.h"
#include "harness/stress/report.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/threads.h"

namespace perfring::stress {
namespace {

std::atomic<bool> interrupt{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Ends the run with what there is so far. A wrapper may send the signal twice.
void on_signal(int) {
  interrupt = true;
}

// A drain that does not end, or a thread that is stuck, is a violation and not a wait.
void on_alarm(int) {
  constexpr const char kText[] = "VIOLATED bounded: the run does not end\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(kViolated);
}

std::vector<Outcome> run_parts(const Options& options) {
  struct Part {
    bool wanted;
    Outcome (*run)(const Run&);
  };
  const Part parts[] = {{options.threads, threads<>},
                        {options.sleepers, sleepers<>},
                        {options.processes, processes<>}};
  int count = 0;
  for (const Part& part : parts) count += part.wanted ? 1 : 0;
  Run run = options.run;
  run.seconds /= count;
  std::vector<Outcome> outcomes;
  for (const Part& part : parts) {
    if (part.wanted && !run.interrupted()) outcomes.push_back(part.run(run));
  }
  return outcomes;
}

std::vector<Outcome> run_mutant(const Options& options) {
  Run run = options.run;
  run.patience = std::chrono::milliseconds{500};
  return {find_mutant(options.mutant)->part(run)};
}

int run(int argc, char** argv) {
  const auto parsed = parse(argc, argv);
  if (const auto* answer = std::get_if<Answer>(&parsed)) {
    fmt::print(answer->exit_code == 0 ? stdout : stderr, "{}", answer->text);
    return answer->exit_code;
  }
  Options options = std::get<Options>(parsed);
  if (options.list) {
    fmt::print("{}", mutant_list());
    return kHolds;
  }
  options.run.interrupt = &interrupt;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGALRM, on_alarm);
  ::alarm(60 + static_cast<unsigned>(std::ceil(options.run.seconds * 2)));
  const std::vector<Outcome> outcomes =
      options.mutant.empty() ? run_parts(options) : run_mutant(options);
  const std::string again = replay_line(options);
  fmt::print("{}", (options.json ? verdict_json : verdict_table)(outcomes, interrupt, again));
  return holds(outcomes) ? kHolds : kViolated;
}

}  // namespace
}  // namespace perfring::stress

int main(int argc, char** argv) {
  try {
    const int code = perfring::stress::run(argc, argv);
    if (std::fflush(stdout) == 0) return code;
    throw std::system_error{errno, std::generic_category(), "the verdict cannot be written"};
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "stress: the machine refuses: %s\n", error.what());
    return perfring::stress::kUsageOrEnvironment;
  }
}
