#ifndef HARNESS_CLI_FAULTS_OPTIONS_H_
#define HARNESS_CLI_FAULTS_OPTIONS_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring faults`.
struct FaultsOptions {
  std::vector<std::string> names;  // of faults; none: all
  std::string harness;             // none: all
  bool json = false;
  bool markdown = false;
};

CLI::App& declare_command(CLI::App& app, FaultsOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_FAULTS_OPTIONS_H_
