#include "harness/bench/options.h"

#include <cstring>

namespace perfring::bench {
namespace {

constexpr const char* kUsage =
    R"(usage: bazel run --config=opt //harness/bench:drain -- [options]

Drains full rings and prints ns per event: medians of turns taken in rotation.
  --json FILE                  also writes the figures to FILE (Google Benchmark's JSON, where
                               each contender and each ratio is a counter)
  --benchmark_filter=REGEX     only the matching lines, such as '^64K/8/count$'
  --benchmark_min_time=SECONDS the time for each line (default 0.3)
  --benchmark_list_tests=true  names the lines
  --help                       this text
and Google Benchmark's other --benchmark_ options.
Ctrl-C ends it after the line at hand.
Exit code: 0, or 1 if a contender delivered something else than was written, or 2 for wrong usage.
)";

}  // namespace

std::variant<Options, Answer> parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return Answer{0, kUsage};
  }
  Options options{.json = {}, .benchmark = {argv[0], "--benchmark_min_time=0.3"}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument != "--json") {
      options.benchmark.push_back(argument);
      continue;
    }
    if (++i == argc) return usage_error("--json wants a file");
    const std::string& file = options.json.emplace_back(argv[i]);
    options.benchmark.push_back("--benchmark_out=" + file);
    options.benchmark.emplace_back("--benchmark_out_format=json");
  }
  return options;
}

Answer usage_error(const std::string& what) {
  return {2, "drain: " + what + "\n" + kUsage};
}

}  // namespace perfring::bench
