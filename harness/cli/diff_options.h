#ifndef PERFRING_HARNESS_CLI_DIFF_OPTIONS_H_
#define PERFRING_HARNESS_CLI_DIFF_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/differential/campaign_options.h"

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

#endif  // PERFRING_HARNESS_CLI_DIFF_OPTIONS_H_
