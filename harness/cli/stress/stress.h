#ifndef HARNESS_CLI_STRESS_STRESS_H_
#define HARNESS_CLI_STRESS_STRESS_H_

#include <span>
#include <string>

#include "harness/program/verdict.h"
#include "harness/stress/run.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring stress`. If no part is chosen, all of them share the time.
struct StressOptions {
  stress::Run run;
  bool threads = false;
  bool sleepers = false;
  bool processes = false;
  bool every_part() const { return !threads && !sleepers && !processes; }
  bool json = false;
  bool list = false;
  std::string fault;  // runs instead of the parts
};

CLI::App& declare_command(CLI::App& app, StressOptions& options);
int run_command(const StressOptions& options);

// --list: the faults, each with the means that finds it.
std::string stress_list();
std::string stress_list_json();

// Concludes from the parts: "holds" if every invariant holds in each part or, with a fault, if the
// fault was found.
Conclusion conclusion_of(std::span<const stress::PartReport> parts, bool interrupted,
                         const std::string& fault);

// Returns the command that repeats the settings and the writers' choices.
std::string replay_line(const StressOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_STRESS_STRESS_H_
