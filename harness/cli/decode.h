#ifndef HARNESS_CLI_DECODE_H_
#define HARNESS_CLI_DECODE_H_

#include <string>

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring decode`.
struct DecodeOptions {
  std::string file;
  bool check = false;
  bool json = false;
};

CLI::App& declare_command(CLI::App& app, DecodeOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DECODE_H_
