#ifndef HARNESS_CLI_STRESS_H_
#define HARNESS_CLI_STRESS_H_

#include <span>
#include <string>

#include "harness/program/verdict.h"
#include "harness/stress/run.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring stress`. With no part named, all share the time.
struct StressOptions {
  stress::Run run;
  bool threads = false;
  bool sleepers = false;
  bool processes = false;
  bool every_part() const { return !threads && !sleepers && !processes; }
  bool json = false;
  bool list = false;
  std::string fault;  // in place of the parts
};

CLI::App& declare_command(CLI::App& app, StressOptions& options);

// --list: the faults, and what finds each.
std::string stress_list();
std::string stress_list_json();

// The command that repeats the settings and the writers' choices.
std::string replay_line(const StressOptions& options);

// Concludes from the parts: every invariant holds of the records of each; with a fault, it is
// found.
Conclusion conclusion_of(std::span<const stress::PartOutcome> parts, bool interrupted,
                         const std::string& fault);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
// `replay` is the command that reproduces a violation.
std::string stress_table(std::span<const stress::PartOutcome> parts, const Conclusion& conclusion,
                         const std::string& replay);
std::string stress_json(std::span<const stress::PartOutcome> parts, const Conclusion& conclusion,
                        const std::string& replay);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_STRESS_H_
