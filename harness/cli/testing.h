#ifndef HARNESS_CLI_TESTING_H_
#define HARNESS_CLI_TESTING_H_

// The program as a user meets it: run as a process, with its exit code and what it prints.

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

// With few descriptors (run_with_files()) a sanitizer finds faults that are not there: its
// check of an object's type, for one, opens a pipe.
inline constexpr const char* kTooFewForASanitizer =
    "a sanitizer's checks need descriptors of their own";

// Runs `perfring` with the arguments of a shell's line; what it says on stderr is part of `out`.
// `before`: what stands before the program in that line. PERFRING_RUN_UNDER: see
// harness/foreign/run.
Ended run_line(const std::string& arguments, const std::string& before = "");

// The same, ended by a signal ("INT") once the program catches it.
Ended run_line_until(const std::string& signal, const std::string& arguments);

inline Ended run_check(const std::string& arguments, const std::string& before = "") {
  return run_line("check " + arguments, before);
}

// Throws std::runtime_error, with the text, if it is not JSON.
nlohmann::ordered_json parsed(const std::string& text);

// A file for a test, with these contents, if any.
std::string temporary(const std::string& name, const std::string& contents = "");
std::string contents(const std::filesystem::path& path);
std::vector<std::string> lines_of(const std::string& text);
std::string of_environment(const char* name);
// One of the files that a variable names, by its ending.
std::string file_of(const char* variable, const std::string& suffix);
bool there_is(const std::string& program);
// The program that a compiler, if there is one, makes of an adapter's source.
std::string compiled(const std::string& compiler, const std::string& source);

class PerfringTest : public ::testing::Test {
 protected:
  // The program is copied to where every user may read it, for runs as another user.
  void SetUp() override;

  // The command that runs the program with these arguments. `before`: a command that runs another,
  // such as setpriv(1).
  std::vector<std::string> command(const std::vector<std::string>& arguments,
                                   std::vector<std::string> before = {}) const;
  Ended run(const std::vector<std::string>& arguments, std::vector<std::string> before = {}) {
    return run_child(command(arguments, std::move(before)));
  }
  Ended run_with_files(std::size_t open_at_most, const std::vector<std::string>& arguments) {
    return run(arguments, {"/usr/bin/prlimit", "--nofile=" + std::to_string(open_at_most)});
  }
  // Runs it until the file is there, which it makes, or a child of its own, then sends it a signal.
  Ended interrupted_when(const std::vector<std::string>& arguments, const std::string& file,
                         int signal = SIGINT);
  // A shell's line, in which "$PERFRING" is the program.
  Ended shell(const std::string& line) {
    return run_child({"/usr/bin/env", "PERFRING=" + program_.string(), "/bin/sh", "-c", line});
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path program_;
};

// Tests of programs as they are, which `perfring conform` supervises. A case takes two of the
// subject's own timeouts.
class SupervisedTest : public PerfringTest {
 protected:
  void SetUp() override;
  // The program that a variable names.
  static std::string subject(const char* variable);
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_TESTING_H_
