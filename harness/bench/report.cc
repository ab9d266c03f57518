#include "harness/bench/report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace perfring::bench {
namespace {

constexpr int kNameWidth = 26;
constexpr int kContenderWidth = 11;

void print_number(const benchmark::UserCounters& counters, const std::string& name, int width) {
  const auto found = counters.find(name);
  if (found == counters.end()) {
    std::printf("%*s", width, "-");
  } else {
    std::printf("%*.2f", width, found->second.value);
  }
}

int width_of(const Ratio& ratio) {
  return static_cast<int>(ratio.name().size()) + 2;
}

bool is_left_out(const benchmark::BenchmarkReporter::Run& run) {
  return run.error_occurred && run.error_message == kLeftOut;
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
  std::printf("%d CPUs of %.0f MHz, compiled by %s. ns per event, medians; then ratios of them.\n",
              context.cpu_info.num_cpus, context.cpu_info.cycles_per_second / 1e6, __VERSION__);
  std::printf("%-*s", kNameWidth, "ring/payload/callback");
  for (const char* const name : kContenders) std::printf("%*s", kContenderWidth, name);
  for (const Ratio& ratio : kRatios) std::printf("%*s", width_of(ratio), ratio.name().c_str());
  std::printf("\n");
  return true;
}

void TableReporter::print(const Run& run) const {
  std::printf("%-*s", kNameWidth, run.run_name.function_name.c_str());
  if (run.error_occurred) {
    std::printf("  WRONG: %s\n", run.error_message.c_str());
    return;
  }
  for (const char* const name : kContenders) print_number(run.counters, name, kContenderWidth);
  for (const Ratio& ratio : kRatios) print_number(run.counters, ratio.name(), width_of(ratio));
  std::printf("\n");
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    if (is_left_out(run)) {
      ++left_out_;
      continue;
    }
    shown.push_back(run);
    if (run.run_type != Run::RT_Iteration) continue;  // of --benchmark_repetitions
    ++races_;
    if (run.error_occurred) ++wrong_;
    if (prints_) print(run);
  }
  json_.ReportRuns(shown);
  std::fflush(stdout);
}

std::string TableReporter::json(const Conclusion& conclusion) const {
  nlohmann::ordered_json json = to_json(conclusion);
  json.update(nlohmann::ordered_json::parse(json_text_.str()));
  return dump(json);
}

}  // namespace perfring::bench
