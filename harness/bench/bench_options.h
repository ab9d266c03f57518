#ifndef HARNESS_BENCH_BENCH_OPTIONS_H_
#define HARNESS_BENCH_BENCH_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "harness/program/options.h"

namespace perfring::bench {

// The options of `drain`.
struct DrainOptions {
  std::string json;              // a file, or - for stdout instead of the table
  std::string filter = ".";      // a POSIX extended regular expression
  bool list = false;             // list the lines and exit
  std::string min_time = "0.3";  // seconds for each line
  std::uint64_t repetitions = 1;
};

// The options of `merge`.
struct MergeOptions {
  std::uint64_t rounds = 21;
  std::size_t kib = 1024;
  std::vector<std::size_t> rings{2, 8, 64, 256};
  std::string json;
};

// The options of `wait`.
struct WaitOptions {
  std::vector<std::uint64_t> rates{1'000, 100'000, 1'000'000, 3'000'000};
  double latency_us = 1000;
  double seconds = 0.5;
  std::uint64_t rounds = 3;
  std::size_t pages = 1024;
  std::size_t idle = 256;
  std::string json;
};

// Returns the options, or the answer to --help or to bad arguments. Precondition: argc > 0.
std::variant<DrainOptions, Answer> parse_drain(int argc, const char* const* argv);
std::variant<MergeOptions, Answer> parse_merge(int argc, const char* const* argv);
std::variant<WaitOptions, Answer> parse_wait(int argc, const char* const* argv);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_BENCH_OPTIONS_H_
