#ifndef HARNESS_CLI_CONFORM_H_
#define HARNESS_CLI_CONFORM_H_

#include <map>
#include <string>
#include <vector>

#include "harness/conformance/judge.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring conform`.
struct ConformOptions {
  std::vector<std::string> command;  // a program, run as it is
  bool has_dashes = false;           // and something is to be run
  std::string adapter;
  std::string fault;
  std::vector<std::string> only;  // ids, or beginnings of ids with a * behind
  std::string known;              // a file of known failures
  std::string reader;             // of a program's output: lines, unless it is given
  std::string junit;
  bool live = false;  // the machine's kernel is the producer
  bool reachable = false;
  bool list = false;
  bool vectors = false;
  bool json = false;
  bool markdown = false;
};

CLI::App& declare_command(CLI::App& app, ConformOptions& options);
// Takes the program after --, if the command is `conform`. Returns how many words are left.
int take_program(int argc, const char* const* argv, ConformOptions& options);
// Why these options are refused, if so.
std::string conflict(const ConformOptions& options);

// One case, run.
struct ConformRow {
  const conformance::Case* of = nullptr;
  conformance::Cell cell;
  double seconds = 0;
  std::string known{};  // the outcome that is known of it, if it is a failure

  // Other than it should be, or than is known.
  bool surprises() const;
};

struct ConformReport {
  std::string subject;
  std::vector<ConformRow> rows;
  bool interrupted = false;

  Conclusion conclusion() const;
};
std::string to_text(const ConformReport& report);
std::string to_json_text(const ConformReport& report);
std::string to_markdown(const ConformReport& report);
std::string to_junit(const ConformReport& report);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CONFORM_H_
