// `perfring`: the demonstration, when called without a command.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>

#include "harness/cli/check_command.h"
#include "harness/cli/check_options.h"
#include "harness/cli/check_report.h"
#include "harness/cli/check_run.h"
#include "harness/cli/grouped.h"
#include "harness/cli/live_options.h"
#include "harness/cli/live_report.h"
#include "harness/cli/live_run.h"
#include "harness/cli/sim_options.h"
#include "harness/cli/sim_report.h"
#include "harness/cli/sim_run.h"
#include "harness/cli/simulated_run.h"
#include "harness/model/fences.h"
#include "harness/user_folder.h"
#include "perfring/os/syscalls.h"

namespace perfring::cli {
namespace {

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

// An option whose text `parse` turns into `target`, or refuses.
template <class T>
void add_option(CLI::App& app, const std::string& name, T& target,
                Parsed<T> (*parse)(std::string_view), const std::string& help,
                const std::string& type) {
  app.add_option_function<std::string>(
         name,
         [&target, parse, name](const std::string& text) {
           Parsed<T> parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(name, parsed.error());
           target = *std::move(parsed);
         },
         help)
      ->type_name(type);
}

void add_live_options(CLI::App& app, LiveOptions& options) {
  add_option(app, "--seconds", options.seconds, parse_seconds, "How long to run [5]", "S");
  add_option(app, "--cpus", options.cpus, parse_cpus,
             "CPUs to generate on, such as 0 or 0-2,5 [every online CPU]", "LIST");
  add_option(app, "--payload", options.payload, parse_payload,
             "Bytes in each record, a size or a range [8-256]", "BYTES");
  add_option(app, "--pages", options.pages, parse_pages,
             "Data pages of each ring, a power of two [256]", "N");
  add_option(app, "--watermark", options.watermark, parse_watermark,
             "Bytes written between wakeups, 0: each record wakes [a quarter of the ring]",
             "BYTES");
  app.add_flag("--simulated", options.simulated,
               "Drain the simulated kernel, as is done without any argument where the live one "
               "cannot be used");
  app.add_flag("--json", options.json, "Print the verdict as JSON");
}

// What the options allow one by one but not together.
std::string conflict(const LiveOptions& options) {
  const std::size_t ring = options.pages * os::page_size();
  if (options.watermark > static_cast<std::int64_t>(ring)) {
    return fmt::format(
        "--watermark: {} exceeds the ring of {} bytes: give at most that, or more "
        "--pages",
        options.watermark, ring);
  }
  // Header, raw size, padding, and the 8 bytes that a ring never uses; a LOST in front.
  constexpr std::size_t kOverhead = 12 + 7 + 8 + 24;
  if (options.payload.max + kOverhead > ring) {
    return fmt::format(
        "--payload: a record of {} bytes does not fit a ring of {}: give at most "
        "{}, or more --pages",
        options.payload.max, ring, ring - kOverhead);
  }
  return {};
}

// CLI11 takes -1 for the largest of unsigned numbers.
CLI::Validator number_from(std::uint64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc{} && end == text.data() + text.size() && value >= least) {
          return std::string{};
        }
        return fmt::format("'{}' is not accepted: give a number from {} to {}", text, least,
                           ~std::uint64_t{0});
      },
      "");
}

CLI::App& add_sim_command(CLI::App& app, SimOptions& options) {
  CLI::App& sim = *app.add_subcommand(
      "sim",
      "Runs the simulated kernel against the drain, in one thread and in an order that the\n"
      "seed decides, and checks every event. The same seed is the same run, everywhere.");
  sim.add_option("--seed", options.seed, "What decides everything [1]")
      ->type_name("S")
      ->check(number_from(0));
  sim.add_option("--scenario", options.scenario, "Its name, or a file of settings [steady]")
      ->type_name("NAME|FILE");
  sim.add_option("--steps", options.steps, "Accesses to memory after which writers stop [50000000]")
      ->type_name("N")
      ->check(number_from(1));
  sim.add_option("--cpus", options.cpus, "Virtual CPUs, each with a ring [the scenario's]")
      ->type_name("C")
      ->check(CLI::Range(1, 64));
  sim.add_option("--set", options.sets, "A setting beside the scenario's; repeatable")
      ->type_name("NAME=VALUE")
      ->take_all();
  sim.add_option("--canary", options.canary, "A faulty kernel or consumer, to see it found")
      ->type_name("NAME");
  sim.add_flag("--list", options.list, "List scenarios, canaries and settings, and end");
  sim.add_flag("--json", options.json, "Print the verdict as JSON");
  return sim;
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
  if (const std::string message = conflict(options); !message.empty()) return fail(message);
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
  const auto drawn = write_svg(*violation, plan->svg);
  return drawn ? code : fail(drawn.error());
}

int run(int argc, char** argv) {
  CLI::App app{
      "Drains the perf rings of this machine's kernel, on every CPU, while a BPF program fills\n"
      "them, and checks each record: is it whole, in order, and accounted for?\n"
      "Without any argument, where that is not allowed: those of the simulated kernel.\n"
      "Exit codes: 0 all invariants hold, 1 one is violated, 2 usage or environment.",
      "perfring"};
  LiveOptions options;
  add_live_options(app, options);
  SimOptions sim_options;
  const CLI::App& sim_command = add_sim_command(app, sim_options);
  CheckOptions check_options;
  const CLI::App& check_command = add_check_command(app, check_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return fail(std::string{error.what()} + "\nRun with --help for what is accepted.");
  }
  if (check_command.parsed()) return check(check_options);
  return sim_command.parsed() ? sim(sim_options) : live(options, argc == 1);
}

}  // namespace
}  // namespace perfring::cli

int main(int argc, char** argv) {
  perfring::enter_user_folder();
  return perfring::cli::run(argc, argv);
}
