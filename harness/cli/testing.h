#ifndef HARNESS_CLI_TESTING_H_
#define HARNESS_CLI_TESTING_H_

// The program as a user meets it: run as a process, with its exit code and what it prints.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace perfring::cli {

// g++ defines a macro, clang has a feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) ||
                                   __has_feature(thread_sanitizer) ||
                                   __has_feature(undefined_behavior_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// With few descriptors (Circumstances::files) a sanitizer finds faults that are not there: its
// check of an object's type, for one, opens a pipe.
inline constexpr const char* kTooFewForASanitizer =
    "a sanitizer's checks need descriptors of their own";

struct Ended {
  int exit_code;  // -1 if a signal ended it
  std::string out;
  std::string err;
};

// Runs `perfring` with the arguments of a shell's line; what it says on stderr is part of `out`.
// `before`: what stands before the program in that line. PERFRING_RUN_UNDER: see
// harness/foreign/run.
inline Ended run_line(const std::string& arguments, const std::string& before = "") {
  const char* const binary = std::getenv("PERFRING_BINARY");
  if (binary == nullptr) return {-1, "PERFRING_BINARY is not set", ""};
  const std::string command =
      "{ " + before + " $PERFRING_RUN_UNDER " + binary + " " + arguments + "; } 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed", ""};
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, ""};
}

// A file for a test, with these contents, if any.
inline std::string temporary(const std::string& name, const std::string& contents = "") {
  const std::string path = ::testing::TempDir() + "/" + name;
  if (!contents.empty()) std::ofstream{path, std::ios::binary} << contents;
  return path;
}

struct Circumstances {
  uid_t user = 0;
  std::string out = {};  // where stdout goes, if not to be read
  rlim_t files = 0;      // that may be open; 0: as many as the test may open
};

inline std::string contents(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

class Perfring : public ::testing::Test {
 protected:
  // A folder that every user may read: the binary is copied there for runs as another user.
  void SetUp() override {
    std::string pattern = "/tmp/perfring_test.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::permissions(folder_, std::filesystem::perms{0755});
    const char* binary = std::getenv("PERFRING_BINARY");
    ASSERT_NE(binary, nullptr);
    std::filesystem::path program = folder_ / "perfring";
    // Another processor's (harness/foreign/run): what is called perfring is a script.
    if (const char* const emulator = std::getenv("PERFRING_RUN_UNDER")) {
      std::ofstream{program} << "#!/bin/sh\nexec " << emulator << " \"$0.program\" \"$@\"\n";
      std::filesystem::permissions(program, std::filesystem::perms{0755});
      program += ".program";
    }
    std::filesystem::copy_file(binary, program);
    std::filesystem::permissions(program, std::filesystem::perms{0755});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  pid_t start(std::vector<std::string> arguments, const Circumstances& in = {}) {
    arguments.insert(arguments.begin(), folder_ / "perfring");
    return start_program(std::move(arguments), in);
  }
  // A shell's line, in which "$PERFRING" is the program.
  Ended shell(const std::string& line) {
    ::setenv("PERFRING", (folder_ / "perfring").c_str(), 1);
    return wait(start_program({"/bin/sh", "-c", line}, {}));
  }

  pid_t start_program(std::vector<std::string> arguments, const Circumstances& in) {
    const std::string out = in.out.empty() ? (folder_ / "out").string() : in.out;
    const std::string err = folder_ / "err";
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::filesystem::remove(err);  // what an earlier run said
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::dup2(::open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), STDERR_FILENO);
    const uid_t user = in.user;
    const rlimit files{in.files, in.files};
    if (in.files != 0 && ::setrlimit(RLIMIT_NOFILE, &files) != 0) ::_exit(97);
    if (user != 0 && (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0)) {
      ::_exit(98);
    }
    ::execv(argv[0], argv.data());
    ::_exit(99);
  }

  Ended wait(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder_ / "out"),
            contents(folder_ / "err")};
  }

  // What a child that runs has said so far.
  std::string errors() const { return contents(folder_ / "err"); }

  Ended run(const std::vector<std::string>& arguments, const Circumstances& in = {}) {
    return wait(start(arguments, in));
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_TESTING_H_
