#ifndef HARNESS_BENCH_REPORT_H_
#define HARNESS_BENCH_REPORT_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "harness/bench/race.h"
#include "harness/program/verdict.h"

namespace perfring::bench {

// The ratio of two contenders' ns: the counter `a/b`, NaN if either is missing.
struct Ratio {
  const char* above;
  const char* below;
  std::string name() const { return std::string{above} + "/" + below; }
};
inline constexpr Ratio kRatios[] = {
    {"perfring", "LB-spec"},  {"perfring", "LB-ptr"},          {"PerfBuffer", "LB-spec live"},
    {"libbpf", "PerfBuffer"}, {"perfring -O2", "LB-spec -O2"}, {"PerfBuffer -O2", "LB-spec -O2"},
    {"overloads", "perfring"}};
inline constexpr const char* kContenders[] = {
    "perfring",    "overloads",  "LB-spec",        "LB-ptr",       "memcpy", "perfring -O2",
    "LB-spec -O2", "PerfBuffer", "PerfBuffer -O2", "LB-spec live", "libbpf"};

// Stores the race's medians and ratios in the benchmark's counters, which the table below and
// Google Benchmark's own JSON print. A contender that did not run has no counter.
void count(const Race& race, benchmark::UserCounters& counters);

// The error of a race that was skipped because the user interrupted the run. No reporter shows it.
inline constexpr const char* kLeftOut = "left out";

// Prints a line for each race to stdout, ns per event followed by ratios, if it prints at all. Also
// collects Google Benchmark's JSON of the races that were run.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  explicit TableReporter(bool prints) : prints_{prints} { json_.SetOutputStream(&json_text_); }

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override { json_.Finalize(); }

  // The errno of the first failed write to stdout, or 0.
  static int error();

  // Returns the JSON, with the conclusion in front.
  std::string json(const Conclusion& conclusion) const;

  // The number of races reported, and of those that went wrong.
  std::size_t races() const { return races_; }
  std::size_t wrong() const { return wrong_; }
  // The number of races skipped.
  std::size_t left_out() const { return left_out_; }

 private:
  static void print_line(const Run& run);

  const bool prints_;
  std::ostringstream json_text_;
  benchmark::JSONReporter json_;
  std::size_t races_ = 0;
  std::size_t wrong_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_REPORT_H_
