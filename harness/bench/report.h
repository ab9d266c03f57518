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

// One contender's ns by another's: the counter `a/b`, NaN where either is missing.
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

// The race's medians and ratios as the benchmark's counters, which the table below and Google
// Benchmark's own JSON print. A contender that did not run has none.
void count(const Race& race, benchmark::UserCounters& counters);

// The error of a race that was not run because the user had enough. No reporter shows it.
inline constexpr const char* kLeftOut = "left out";

// A line on stdout for each race, ns per event and then ratios, unless there is to be no table.
// And Google Benchmark's JSON of the races that were run.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  explicit TableReporter(bool prints) : prints_{prints} { json_.SetOutputStream(&json_text_); }

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override { json_.Finalize(); }

  // Why a line could not be written to stdout, as an errno; 0 if all were.
  static int error();

  // The JSON, with what the run has shown in front.
  std::string json(const Conclusion& conclusion) const;

  // Races that were reported, and those of them that went wrong.
  std::size_t races() const { return races_; }
  std::size_t wrong() const { return wrong_; }
  // Races that were left out.
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
