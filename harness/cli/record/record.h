#ifndef HARNESS_CLI_RECORD_RECORD_H_
#define HARNESS_CLI_RECORD_RECORD_H_

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

CLI::App& declare_command(CLI::App& app, EventsOptions& options);
int run_command(const EventsOptions& options);

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

CLI::App& declare_command(CLI::App& app, RecordOptions& options);
int run_command(const RecordOptions& options);

// The options of `perfring decode`.
struct DecodeOptions {
  std::string file;
  bool check = false;
  bool json = false;
};

CLI::App& declare_command(CLI::App& app, DecodeOptions& options);
int run_command(const DecodeOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_RECORD_RECORD_H_
