#ifndef HARNESS_CLI_DIFF_OPTIONS_H_
#define HARNESS_CLI_DIFF_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/differential/campaign_options.h"

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

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DIFF_OPTIONS_H_
