#ifndef HARNESS_CLI_CLI_TESTING_H_
#define HARNESS_CLI_CLI_TESTING_H_

// Runs `perfring` as a user does: as a process with an exit code and output.

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/program/child_process.h"
#include "harness/program/sanitizers.h"
#include "harness/program/temporary_folder.h"

namespace perfring::cli {

// Why a test is skipped under a sanitizer. With few descriptors (run_with_files()) a sanitizer
// reports false errors; for example, its check of an object's type opens a pipe.
inline constexpr const char* kTooFewForASanitizer =
    "a sanitizer's checks need descriptors of their own";

// Runs `perfring` with these arguments from a shell. `out` contains stderr, too. `before` precedes
// the program in the shell's line. For PERFRING_RUN_UNDER see harness/foreign/run.
ProcessResult run_line(const std::string& arguments, const std::string& before = "");

// As run_line(), but ends the run with a signal ("INT"). If the program did not catch it yet, runs
// it again and sends the signal later.
ProcessResult run_line_until(const std::string& signal, const std::string& arguments);

inline ProcessResult run_check(const std::string& arguments, const std::string& before = "") {
  return run_line("check " + arguments, before);
}

// Parses JSON. Throws std::runtime_error with the text if it is not JSON.
nlohmann::ordered_json parsed(const std::string& text);

// Returns the path of a temporary file with these contents; an empty string creates no file.
std::string temporary(const std::string& name, const std::string& contents = "");
std::string contents(const std::filesystem::path& path);
std::vector<std::string> lines_of(const std::string& text);
std::string environment_variable(const char* name);
// Returns the file with this suffix from the list in an environment variable.
std::string file_of(const char* variable, const std::string& suffix);
bool is_installed(const std::string& program);
// Compiles an adapter's source, if the compiler is installed. Returns the program.
std::string compiled(const std::string& compiler, const std::string& source);

class PerfringTest : public ::testing::Test {
 protected:
  // Copies the program to a place that every user may read, for runs as another user.
  void SetUp() override;

  // Returns the command that runs the program with these arguments. `before` is a command that runs
  // another command, such as setpriv(1).
  std::vector<std::string> command(const std::vector<std::string>& arguments,
                                   std::vector<std::string> before = {}) const;
  ProcessResult run(const std::vector<std::string>& arguments,
                    std::vector<std::string> before = {}) {
    return run_child(command(arguments, std::move(before)));
  }
  ProcessResult run_with_files(std::size_t open_at_most,
                               const std::vector<std::string>& arguments) {
    return run(arguments, {"/usr/bin/prlimit", "--nofile=" + std::to_string(open_at_most)});
  }
  // Runs the program until it or its child has created `file`, then sends it a signal.
  ProcessResult interrupt_when_created(const std::vector<std::string>& arguments,
                                       const std::string& file, int signal = SIGINT);
  // Runs a line of shell, in which "$PERFRING" is the program.
  ProcessResult shell(const std::string& line) {
    return run_child({"/usr/bin/env", "PERFRING=" + program_.string(), "/bin/sh", "-c", line});
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path program_;
};

// Return why no program can be supervised here, and why nothing can be recorded, or "".
std::string why_not_supervised();
std::string why_not_recorded();

// Tests of unmodified programs that `perfring conform` supervises. A case takes two of the
// subject's own timeouts.
class SupervisedTest : public PerfringTest {
 protected:
  void SetUp() override;
  // Returns the program that an environment variable names.
  static std::string subject(const char* variable);
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CLI_TESTING_H_
