#ifndef HARNESS_CLI_TESTING_H_
#define HARNESS_CLI_TESTING_H_

// The program as a user meets it: run as a process, with its exit code and what it prints.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
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
inline Ended run_line(const std::string& arguments, const std::string& before = "") {
  const char* const binary = std::getenv("PERFRING_BINARY");
  if (binary == nullptr) return {-1, "PERFRING_BINARY is not set", ""};
  const std::string command =
      "{ " + before + " $PERFRING_RUN_UNDER " + binary + " " + arguments + "; } 2>&1";
  return run_child({"/bin/sh", "-c", command});
}

inline Ended run_check(const std::string& arguments, const std::string& before = "") {
  return run_line("check " + arguments, before);
}

// A file for a test, with these contents, if any.
inline std::string temporary(const std::string& name, const std::string& contents = "") {
  const std::string path = ::testing::TempDir() + "/" + name;
  if (!contents.empty()) std::ofstream{path, std::ios::binary} << contents;
  return path;
}

inline std::string contents(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::string of_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One of the files that a variable names, by its ending.
inline std::string file_of(const char* variable, const std::string& suffix) {
  std::stringstream files{of_environment(variable)};
  for (std::string file; files >> file;) {
    if (file.ends_with(suffix)) return file;
  }
  return {};
}

inline bool there_is(const std::string& program) {
  return run_child({"/bin/sh", "-c", "command -v " + program}).exit_code == 0;
}

// The program that a compiler, if there is one, makes of an adapter's source.
inline std::string compiled(const std::string& compiler, const std::string& source) {
  const std::string to = temporary("adapter" + source.substr(source.rfind('.')));
  const std::string line = compiler + " " + to + " " + source;
  const Ended ended = run_child({"/bin/sh", "-c", line});
  EXPECT_EQ(ended.exit_code, 0) << line << "\n" << ended.err;
  return to;
}

class PerfringTest : public ::testing::Test {
 protected:
  // The program is copied to where every user may read it, for runs as another user.
  void SetUp() override {
    const char* const binary = std::getenv("PERFRING_BINARY");
    ASSERT_NE(binary, nullptr);
    program_ = folder_.path() / "perfring";
    std::filesystem::path copy = program_;
    // Another processor's (harness/foreign/run): what is called perfring is a script.
    if (const char* const emulator = std::getenv("PERFRING_RUN_UNDER")) {
      std::ofstream{program_} << "#!/bin/sh\nexec " << emulator << " \"$0.program\" \"$@\"\n";
      std::filesystem::permissions(program_, std::filesystem::perms{0755});
      copy += ".program";
    }
    std::filesystem::copy_file(binary, copy);
    std::filesystem::permissions(copy, std::filesystem::perms{0755});
  }

  // The command that runs the program with these arguments. `before`: a command that runs another,
  // such as setpriv(1).
  std::vector<std::string> command(const std::vector<std::string>& arguments,
                                   std::vector<std::string> before = {}) const {
    before.push_back(program_);
    before.insert(before.end(), arguments.begin(), arguments.end());
    return before;
  }
  Ended run(const std::vector<std::string>& arguments, std::vector<std::string> before = {}) {
    return run_child(command(arguments, std::move(before)));
  }
  Ended run_with_files(std::size_t open_at_most, const std::vector<std::string>& arguments) {
    return run(arguments, {"/usr/bin/prlimit", "--nofile=" + std::to_string(open_at_most)});
  }
  // Runs it until the file is there, which it makes, or a child of its own, then sends SIGINT.
  Ended interrupted_when(const std::vector<std::string>& arguments, const std::string& file) {
    ChildProcess child{command(arguments)};
    bool sent = false;
    return child.wait([&] {
      if (!sent && std::filesystem::exists(file)) sent = ::kill(child.id(), SIGINT) == 0;
      return false;
    });
  }
  // A shell's line, in which "$PERFRING" is the program.
  Ended shell(const std::string& line) {
    return run_child({"/usr/bin/env", "PERFRING=" + program_.string(), "/bin/sh", "-c", line});
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path program_;
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_TESTING_H_
