#ifndef HARNESS_CLI_DIFF_H_
#define HARNESS_CLI_DIFF_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/differential/campaign.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring diff`.
struct DiffOptions {
  differential::CampaignOptions campaign{.scripts = 10000};
  std::optional<int> cpu;           // none: the first that the process may run on
  std::string script;               // a file
  std::vector<std::string> traces;  // files
  std::string record;               // a folder
  bool json = false;
};

CLI::App& declare_command(CLI::App& app, DiffOptions& options);

struct DiffReport {
  const differential::CampaignOutcome& outcome;
  std::string kernel;  // what the simulated one was compared with: "live kernel"
  std::string replay;  // the command that shows a difference again
  double seconds;
  bool interrupted;
};

Conclusion conclusion_of(const DiffReport& report);

// The verdict, as text for a person and as JSON for a machine. Both hold the same figures.
std::string diff_text(const DiffReport& report);
std::string diff_json(const DiffReport& report);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DIFF_H_
