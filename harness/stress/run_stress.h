#ifndef HARNESS_STRESS_RUN_STRESS_H_
#define HARNESS_STRESS_RUN_STRESS_H_

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace perfring::stress {

struct Ended {
  int exit_code;  // -1 if a signal ended it
  std::string output;
};

// Runs the program named by the environment variable STRESS. Under ThreadSanitizer the first race
// ends it, with exit code 66. `before`: of the shell's command line. PERFRING_RUN_UNDER: see
// harness/foreign/run.
inline Ended run_stress(const std::string& arguments, const std::string& before = "") {
  const char* binary = std::getenv("STRESS");
  if (binary == nullptr) return {-1, "STRESS is not set"};
  const std::string command =
      "export TSAN_OPTIONS=\"$TSAN_OPTIONS halt_on_error=1 exitcode=66\"; " + before +
      " $PERFRING_RUN_UNDER " + binary + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_RUN_STRESS_H_
