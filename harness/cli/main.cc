// `perfring`: the demonstration, when called without a command.

#include <variant>

#include "harness/cli/command_line.h"
#include "harness/program/console.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

<<<<<<< HEAD
int parse_and_run(int argc, char** argv) {
=======
// Exit codes of every command.
constexpr int kHolds = 0;
constexpr int kViolated = 1;
constexpr int kUsageOrEnvironment = 2;
constexpr int kNotProved = 3;  // by `check`, which reached a bound

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Ends the run with what there is so far. A wrapper may send the signal twice.
void on_signal(int) {
  stop_requested = true;
}

int fail(const std::string& message) {
  fmt::print(stderr, "perfring: {}\n", message);
  return kUsageOrEnvironment;
}

// Writes the verdict to stdout and returns the exit code, which tells whether it got there.
int deliver(const std::string& verdict, int code) {
  if (std::fputs(verdict.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return fail("the verdict cannot be written: " + std::generic_category().message(errno));
  }
  return code;
}
int deliver(const std::string& verdict, bool holds) {
  return deliver(verdict, holds ? kHolds : kViolated);
}

// A line that each next one replaces, on a terminal.
class ProgressLine {
 public:
  void show(const std::string& line) const {
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", line, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

void stop_on_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

// Without any argument, a machine that does not allow it gets the simulated kernel. Who gives
// options for the live one is told that it cannot be had.
int live(const LiveOptions& options, bool bare) {
  std::string why = options.simulated ? "as asked for" : "";
  if (bare) why = why_not_live().value_or("");
  const ProgressLine line;
  stop_on_signals();
  const auto show = [&line](const LiveProgress& progress) { line.show(progress_line(progress)); };
  if (!why.empty()) line.show("Draining the simulated kernel: " + why + "\n");
  const auto outcome = why.empty() ? run_live(options, stop_requested, show)
                                   : run_simulated(options, why, stop_requested, show);
  line.clear();
  if (!outcome && !why.empty()) return fail(outcome.error());
  if (!outcome) {
    return fail("the live kernel cannot be used.\n" + outcome.error() +
                "\nWith --simulated, or no argument at all, the simulated kernel is drained "
                "instead");
  }
  return deliver(options.json ? verdict_json(*outcome) : verdict_table(*outcome), holds(*outcome));
}

int sim(const SimOptions& options) {
  if (options.list) {
    return deliver(options.json ? sim_list_json() : sim_list(), true);
  }
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  const ProgressLine line;
  stop_on_signals();
  const SimOutcome outcome = run_sim(*plan, stop_requested, [&](std::uint64_t steps) {
    line.show(fmt::format("{} of {} steps", grouped(steps), grouped(plan->plan.steps)));
  });
  line.clear();
  return deliver(options.json ? sim_json(*plan, outcome) : sim_table(*plan, outcome),
                 !outcome.outcome.found);
}

int code_of(Verdict verdict) {
  return verdict == Verdict::Holds ? kHolds : verdict == Verdict::Violated ? kViolated : kNotProved;
}

int check_litmus(const CheckOptions& options, const ProgressLine& line, const OnProgress& show) {
  const auto programs = run_litmus_file(options.litmus, options.bounds, stop_requested, show);
  line.clear();
  if (!programs) return fail(programs.error());
  return deliver(options.json ? litmus_json(*programs) : litmus_table(*programs),
                 code_of(verdict_of(*programs)));
}

int check(const CheckOptions& options) {
  if (options.list) return deliver(options.json ? check_list_json() : check_list(), true);
  if (options.fences) return deliver(model::fences_table(), true);
  const ProgressLine line;
  stop_on_signals();
  const OnProgress show = [&line](const std::string& text) { line.show(text); };
  if (!options.litmus.empty()) return check_litmus(options, line, show);
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  const std::vector<CheckedCase> cases = run_check(*plan, stop_requested, show);
  line.clear();
  const int code = deliver(options.json ? check_json(*plan, cases) : check_table(*plan, cases),
                           code_of(verdict_of(cases)));
  const model::Trace* const violation = violation_of(cases);
  if (plan->svg.empty() || violation == nullptr) return code;
  const auto drawn = write_svg(*plan, cases);
  return drawn ? code : fail(drawn.error());
}

int run(int argc, char** argv) {
>>>>>>> w-svg
  const auto parsed = parse_command_line(argc, argv);
  if (const auto* const answer = std::get_if<Answer>(&parsed)) {
    return answer->refused ? fail(answer->text) : deliver(answer->text, kHolds, "the help");
  }
  return std::visit([](const auto& options) { return run_command(options); },
                    std::get<Command>(parsed));
}

}  // namespace
}  // namespace perfring::cli

int main(int argc, char** argv) {
  return perfring::run_program("perfring", perfring::cli::parse_and_run, argc, argv);
}
