#ifndef HARNESS_CLI_INSPECT_INSPECT_H_
#define HARNESS_CLI_INSPECT_INSPECT_H_

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace perfring::cli {

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

CLI::App& declare_command(CLI::App& app, InspectOptions& options);
int run_command(const InspectOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_INSPECT_INSPECT_H_
