#ifndef HARNESS_CLI_STRESS_OPTIONS_H_
#define HARNESS_CLI_STRESS_OPTIONS_H_

#include <string>

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

}  // namespace perfring::cli

#endif  // HARNESS_CLI_STRESS_OPTIONS_H_
