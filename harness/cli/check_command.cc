#include "harness/cli/check_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace perfring::cli {
namespace {

// Not more events than the stack has room for, nor a time that is no number.
constexpr int kEventsMax = 5'000;
constexpr double kSecondsMin = 1e-6, kSecondsMax = 1e6;

std::string in_time(const std::string& text) {
  double seconds = 0;
  if (CLI::detail::lexical_cast(text, seconds) && seconds >= kSecondsMin && seconds <= kSecondsMax)
    return "";
  return fmt::format("{} is not accepted: {} to {}", text, kSecondsMin, kSecondsMax);
}

std::vector<CLI::Option*> add_bounds(CLI::App& check, model::Bounds& bounds) {
  return {
      check.add_option("--events", bounds.events, "Bound: events in an execution [2000]")
          ->type_name("N")
          ->check(CLI::Range(1, kEventsMax)),
      check.add_option("--executions", bounds.executions, "Bound: executions [100000000]")
          ->type_name("N")
          ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 60)),
      check
          .add_option_function<std::uint64_t>(
              "--memory", [&bounds](std::uint64_t mib) { bounds.memory_bytes = mib << 20; },
              "Bound: memory for states [8192]")
          ->type_name("MIB")
          ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20)),
      check.add_option("--seconds", bounds.seconds, "Bound: time for each program [600]")
          ->type_name("S")
          ->check(in_time),
  };
}

// What is asked instead of a program's verdict, and what may be asked with it.
struct Alone {
  const CLI::Option* option;
  std::vector<CLI::Option*> with = {};
};

// Nothing is asked for in vain. With Option::excludes() the help would be about little else.
void refuse_more(const CLI::App& check, const std::vector<Alone>& all) {
  for (const Alone& alone : all) {
    if (alone.option->count() == 0) continue;
    for (const CLI::Option* const other : check.get_options()) {
      const bool may = other == alone.option || std::ranges::count(alone.with, other) != 0;
      if (other->count() == 0 || may) continue;
      throw CLI::ExcludesError{other->get_name(), alone.option->get_name()};
    }
  }
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
  CLI::Option* const litmus =
      check.add_option("--litmus", options.litmus, "Run litmus tests instead, print differences")
          ->type_name("FILE");
  std::vector<CLI::Option*> with_litmus = add_bounds(check, options.bounds);
  CLI::Option* const fences = check.add_flag("--fences", options.fences,
                                             "Print which fence is necessary, which is sufficient");
  CLI::Option* const list =
      check.add_flag("--list", options.list, "List programs and mutants, and end");
  CLI::Option* const json = check.add_flag("--json", options.json, "Print the verdict as JSON");
  with_litmus.push_back(json);
  // Registers are not kept where states merge.
  const std::vector<Alone> alone{{litmus, with_litmus}, {fences}, {list, {json}}};
  check.parse_complete_callback([&check, alone] { refuse_more(check, alone); });
  return check;
}

}  // namespace perfring::cli
