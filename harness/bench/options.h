#ifndef HARNESS_BENCH_OPTIONS_H_
#define HARNESS_BENCH_OPTIONS_H_

#include <string>
#include <variant>
#include <vector>

#include "harness/program/options.h"

namespace perfring::bench {

// The options of the command line.
struct Options {
  std::string json;                    // a file, - for stdout in place of the table
  std::string filter = ".";            // a POSIX extended regular expression
  bool list = false;                   // name the lines, and end
  std::vector<std::string> benchmark;  // Google Benchmark's own command line
};

// The options; or the answer to --help, or to what is not accepted. Precondition: argc > 0.
std::variant<Options, Answer> parse_command_line(int argc, const char* const* argv);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_OPTIONS_H_
