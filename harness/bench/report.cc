#include "harness/bench/report.h"

#include <fmt/printf.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "harness/bench/google_benchmark.h"
#include "harness/program/console.h"
#include "harness/program/json.h"

namespace perfring::bench {
namespace {

constexpr int kNameWidth = 26;

#ifdef NDEBUG
constexpr const char* kOptimized = "--config=opt";
#else
constexpr const char* kOptimized = "not --config=opt";
#endif

// Prints to stdout, waiting as long as the reader takes. Keeps the first error.
int stdout_error = 0;
template <class... Arguments>
void print(const char* format, Arguments... arguments) {
  if (stdout_error == 0) {
    stdout_error = write_all(STDOUT_FILENO, fmt::sprintf(format, arguments...));
  }
}

void print_number(const benchmark::UserCounters& counters, const std::string& name, int width) {
  const auto found = counters.find(name);
  if (found == counters.end()) {
    print("%*s", width, "-");
  } else {
    print("%*.2f", width, found->second.value);
  }
}

int width_of(const std::string& name) {
  return std::max(9, static_cast<int>(name.size()) + 2);
}

bool is_left_out(const benchmark::BenchmarkReporter::Run& run) {
  return has_failed(run) && error_message(run) == kLeftOut;
}

}  // namespace

void count(const Race& race, benchmark::UserCounters& counters) {
  const auto put = [&counters](const std::string& name, double value) {
    if (!std::isnan(value)) counters[name] = value;
  };
  for (const char* const name : kContenders) put(name, race.ns(name));
  for (const Ratio& ratio : kRatios) {
    put(ratio.name(), race.ns(ratio.above) / race.ns(ratio.below));
  }
}

bool TableReporter::ReportContext(const Context& context) {
  json_.ReportContext(context);
  if (!prints_) return true;
  print("%d CPUs of %.0f MHz, compiled by %s, %s.\n", context.cpu_info.num_cpus,
        context.cpu_info.cycles_per_second / 1e6, __VERSION__, kOptimized);
  print("ns per event, medians; then ratios of them.\n");
  print("%-*s", kNameWidth, "ring/payload/callback");
  for (const char* const name : kContenders) print("%*s", width_of(name), name);
  for (const Ratio& ratio : kRatios) print("%*s", width_of(ratio.name()), ratio.name().c_str());
  print("\n");
  return true;
}

int TableReporter::error() {
  return stdout_error;
}

void TableReporter::print_line(const Run& run) {
  print("%-*s", kNameWidth, run.run_name.function_name.c_str());
  if (has_failed(run)) {
    print("  WRONG: %s\n", error_message(run).c_str());
    return;
  }
  for (const char* const name : kContenders) print_number(run.counters, name, width_of(name));
  for (const Ratio& ratio : kRatios) {
    print_number(run.counters, ratio.name(), width_of(ratio.name()));
  }
  print("\n");
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    if (is_left_out(run)) {
      ++left_out_;
      continue;
    }
    shown.push_back(run);
    if (run.run_type != Run::RT_Iteration) continue;  // an aggregate of --benchmark_repetitions
    ++races_;
    if (has_failed(run)) ++wrong_;
    if (prints_) print_line(run);
  }
  json_.ReportRuns(shown);
}

std::string TableReporter::json(const Conclusion& conclusion) const {
  Json json = to_json(conclusion);
  json.update(Json::parse(json_text_.str()));
  return dump(json);
}

}  // namespace perfring::bench
