#ifndef HARNESS_BENCH_GOOGLE_BENCHMARK_H_
#define HARNESS_BENCH_GOOGLE_BENCHMARK_H_

#include <benchmark/benchmark.h>

#include <string>

namespace perfring::bench {

// Google Benchmark 1.8 renamed the members that say that a run failed, and wants a unit after a
// time: it warns without one, while 1.7 refuses one.

template <class Run>
concept HasErrorOccurred = requires(const Run& run) { run.error_occurred; };

inline constexpr bool kTimesHaveUnits = !HasErrorOccurred<benchmark::BenchmarkReporter::Run>;

template <class Run>
bool has_failed(const Run& run) {
  if constexpr (HasErrorOccurred<Run>) {
    return run.error_occurred;
  } else {
    return run.skipped != decltype(run.skipped){};
  }
}

template <class Run>
const std::string& error_message(const Run& run) {
  if constexpr (HasErrorOccurred<Run>) {
    return run.error_message;
  } else {
    return run.skip_message;
  }
}

inline std::string min_time(const std::string& seconds) {
  return seconds + (kTimesHaveUnits ? "s" : "");
}

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_GOOGLE_BENCHMARK_H_
