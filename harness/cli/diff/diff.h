#ifndef HARNESS_CLI_DIFF_DIFF_H_
#define HARNESS_CLI_DIFF_DIFF_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/differential/campaign.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring diff`.
struct DiffOptions {
  differential::CampaignOptions campaign{.scripts = 10000};
  std::optional<int> cpu;           // nullopt: the first CPU that the process may run on
  std::string script;               // a file name
  std::vector<std::string> traces;  // file names
  std::string record;               // a folder name
  bool json = false;
};

CLI::App& declare_command(CLI::App& app, DiffOptions& options);
int run_command(const DiffOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DIFF_DIFF_H_
