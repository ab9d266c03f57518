#ifndef HARNESS_CLI_CONFORM_CONFORM_H_
#define HARNESS_CLI_CONFORM_CONFORM_H_

#include <map>
#include <string>
#include <vector>

#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring conform`.
struct ConformOptions {
  std::vector<std::string> command;  // the words after --: an unmodified program
  bool has_dashes = false;           // whether -- was given
  std::string adapter;
  std::string fault;
  std::vector<std::string> only;  // ids, or prefixes of ids followed by *
  std::string known;              // a file of known failures
  std::string reader;             // the format of the program's output; empty: lines
  std::string junit;
  bool live = false;  // whether the machine's kernel is the producer
  bool reachable = false;
  bool list = false;
  bool vectors = false;
  bool json = false;
  bool markdown = false;
};

CLI::App& declare_command(CLI::App& app, ConformOptions& options);
int run_command(const ConformOptions& options);
// Moves the program after -- into `options` if the command is `conform`. Returns the number of
// remaining arguments.
int take_program(int argc, const char* const* argv, ConformOptions& options);
// Returns the reason if these options cannot be combined, otherwise "".
std::string conflict(const ConformOptions& options);

// The result of one case.
struct ConformRow {
  const conformance::Case* of = nullptr;
  conformance::Cell cell;
  double seconds = 0;
  std::string known{};  // the outcome in the file of known failures, if it is there

  // Whether the outcome is a failure that is not known, or differs from the known one.
  bool surprises() const;
};

struct ConformReport {
  std::string subject;
  std::vector<ConformRow> rows;
  bool interrupted = false;
  bool is_watched = false;  // the producer wrote while the subject read

  Conclusion conclusion() const;
};
std::string to_text(const ConformReport& report);
std::string to_json_text(const ConformReport& report);
std::string to_markdown(const ConformReport& report);
std::string to_junit(const ConformReport& report);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CONFORM_CONFORM_H_
