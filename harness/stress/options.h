#ifndef HARNESS_STRESS_OPTIONS_H_
#define HARNESS_STRESS_OPTIONS_H_

#include <string>
#include <variant>

#include "harness/stress/run.h"

namespace perfring::stress {

// What the command line asks for. With no part named, all share the time.
struct Options {
  Run run;
  bool threads = false;
  bool sleepers = false;
  bool processes = false;
  bool json = false;
  bool list = false;
  std::string mutant;  // in place of the parts
};

// What to print and the exit code, where there is nothing to run.
struct Answer {
  int exit_code;
  std::string text;
};

// The options; or the answer to --help, or to what is not accepted.
std::variant<Options, Answer> parse(int argc, const char* const* argv);

// --list: the mutants, and what finds each.
std::string mutant_list();

// What to type to have the same settings and the same writers again.
std::string replay_line(const Options& options);

// Exit codes.
inline constexpr int kHolds = 0;
inline constexpr int kViolated = 1;
inline constexpr int kUsageOrEnvironment = 2;

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_OPTIONS_H_
