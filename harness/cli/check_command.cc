#include "harness/cli/check_command.h"

namespace perfring::cli {
namespace {

void add_bounds(CLI::App& check, CheckOptions& options) {
  model::Bounds& bounds = options.bounds;
  check.add_option("--events", bounds.events, "Bound: events in an execution [2000]")
      ->type_name("N")
      ->check(CLI::Range(1, 60'000));
  check.add_option("--executions", bounds.executions, "Bound: executions [100000000]")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  check.add_option("--memory", options.memory_mib, "Bound: memory for states [8192]")
      ->type_name("MIB")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20));
  check.add_option("--seconds", bounds.seconds, "Bound: time for each program [600]")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
}

}  // namespace

CLI::App& add_check_command(CLI::App& app, CheckOptions& options) {
  CLI::App& check = *app.add_subcommand(
      "check",
      "Explores every execution that the RC11 memory model allows of a program of a few records,\n"
      "the source that ships among them, and proves its checks or prints what breaks them.\n"
      "Exit codes: 0 holds, 1 violated, 2 usage or environment, 3 not proved: a bound was "
      "reached.");
  check.add_option("program", options.program, "Its name, see --list [ring]")->type_name("PROGRAM");
  check.add_option("--records", options.records, "Records that are written")->type_name("N");
  check.add_option("--polls", options.polls, "Drains meanwhile")->type_name("P");
  check.add_option("--lengths", options.lengths, "Of the records, in turn, such as 3,2,1")
      ->type_name("LIST")
      ->delimiter(',');
  check.add_option("--mutant", options.mutant, "With one thing wrong, see --list")
      ->type_name("NAME");
  check
      .add_option("--form", options.form,
                  "A: the ring's words are atomic; B: they are not, and may race [both]")
      ->type_name("A|B");
  check.add_flag("--merge", options.merge, "Merge states from which the same follows");
  check.add_flag("--compare", options.compare, "Explore with and without merging, and compare");
  check.add_option("--svg", options.svg, "Draw the violation, if there is one")->type_name("FILE");
  // Registers are not kept where states merge.
  check.add_option("--litmus", options.litmus, "Run litmus tests instead, and print differences")
      ->type_name("FILE")
      ->excludes("program", "--records", "--polls", "--lengths", "--mutant", "--form", "--merge",
                 "--compare", "--svg");
  add_bounds(check, options);
  check.add_flag("--fences", options.fences, "Print which fence is necessary, which is sufficient");
  check.add_flag("--list", options.list, "List programs and mutants, and end");
  check.add_flag("--json", options.json, "Print the verdict as JSON");
  return check;
}

}  // namespace perfring::cli
