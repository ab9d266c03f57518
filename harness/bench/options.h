#ifndef HARNESS_BENCH_OPTIONS_H_
#define HARNESS_BENCH_OPTIONS_H_

#include <string>
#include <variant>
#include <vector>

namespace perfring::bench {

// What the command line asks for.
struct Options {
  std::vector<std::string> json;  // files; that each can be written to is not known yet
  std::vector<std::string>
      benchmark;  // Google Benchmark's argv: the rest, and what stands for ours
};

// What to print and the exit code, where there is nothing to run.
struct Answer {
  int exit_code;
  std::string text;
};

// The options; or the answer to --help, or to what is not accepted. Precondition: argc > 0.
std::variant<Options, Answer> parse(int argc, const char* const* argv);

// What is not accepted.
Answer usage_error(const std::string& what);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_OPTIONS_H_
