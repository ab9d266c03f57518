#ifndef HARNESS_CLI_COMMAND_LINE_H_
#define HARNESS_CLI_COMMAND_LINE_H_

// The options of each command of `perfring`. The larger commands have headers of their own.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/cli/check/check.h"
#include "harness/cli/conform/conform.h"
#include "harness/cli/faults/faults.h"
#include "harness/cli/demo/live.h"
#include "harness/cli/sim/sim.h"
#include "harness/differential/campaign.h"
#include "harness/program/options.h"
#include "harness/program/verdict.h"
#include "harness/stress/run.h"

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

// --list: the faults, each with the means that finds it.
std::string stress_list();
std::string stress_list_json();

// Concludes from the parts: "holds" if every invariant holds in each part or, with a fault, if the
// fault was found.
Conclusion conclusion_of(std::span<const stress::PartOutcome> parts, bool interrupted,
                         const std::string& fault);

// Returns the command that repeats the settings and the writers' choices.
std::string replay_line(const StressOptions& options);

// The options of `perfring diff`.
struct DiffOptions {
  differential::CampaignOptions campaign{.scripts = 10000};
  std::optional<int> cpu;           // nullopt: the first CPU that the process may run on
  std::string script;               // a file name
  std::vector<std::string> traces;  // file names
  std::string record;               // a folder name
  bool json = false;
};

// The options of `perfring events`.
struct EventsOptions {
  std::string pattern;
  bool json = false;
};

// The options of `perfring record`.
struct RecordOptions {
  std::vector<std::string> events;
  bool all = false;
  std::uint64_t pid = 0;  // 0: not given
  std::vector<std::string> command;
  std::string output;
  double seconds = 0;  // 0: until the command ends or a signal arrives
  bool callchains = false;
  bool json = false;
};

// The options of `perfring decode`.
struct DecodeOptions {
  std::string file;
  bool check = false;
  bool json = false;
};

// The options of `perfring inspect`.
struct InspectOptions {
  std::string sample_type;
  std::string file;
  std::string id;  // a case in an index of vectors
  std::uint64_t turn = 1;
  bool fuzz = false;
  bool json = false;
  std::string svg;
};

CLI::App& declare_command(CLI::App& app, StressOptions& options);
CLI::App& declare_command(CLI::App& app, DiffOptions& options);
CLI::App& declare_command(CLI::App& app, EventsOptions& options);
CLI::App& declare_command(CLI::App& app, RecordOptions& options);
CLI::App& declare_command(CLI::App& app, DecodeOptions& options);
CLI::App& declare_command(CLI::App& app, InspectOptions& options);

// The parsed options of the given command; LiveOptions if there was no command.
using Command =
    std::variant<LiveOptions, SimOptions, CheckOptions, StressOptions, DiffOptions, DecodeOptions,
                 EventsOptions, RecordOptions, FaultsOptions, ConformOptions, InspectOptions>;

std::variant<Command, Answer> parse_command_line(int argc, const char* const* argv);

// Runs the command. Returns the exit code (harness/program/verdict.h).
int run_command(const LiveOptions& options);
int run_command(const SimOptions& options);
int run_command(const CheckOptions& options);
int run_command(const StressOptions& options);
int run_command(const DiffOptions& options);
int run_command(const DecodeOptions& options);
int run_command(const EventsOptions& options);
int run_command(const RecordOptions& options);
int run_command(const FaultsOptions& options);
int run_command(const ConformOptions& options);
int run_command(const InspectOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_COMMAND_LINE_H_
