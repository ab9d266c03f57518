#ifndef HARNESS_CLI_EVENTS_H_
#define HARNESS_CLI_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace perfring::cli {

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
  double seconds = 0;  // 0: until the command ends, or a signal
  bool callchains = false;
  bool json = false;
};

CLI::App& declare_command(CLI::App& app, EventsOptions& options);
CLI::App& declare_command(CLI::App& app, RecordOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_EVENTS_H_
