#include "harness/bench/bench_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>

namespace perfring::bench {
namespace {

constexpr std::size_t kFilterMax = 200;  // regcomp() uses stack for each parenthesis

}  // namespace

std::variant<DrainOptions, Answer> parse_drain(int argc, const char* const* argv) {
  CLI::App app{
      "Drains full rings and prints ns per event: medians of turns taken in rotation.\n"
      "Ctrl-C stops after the current line.",
      "drain"};
  DrainOptions options;
  app.add_option("--json", options.json,
                 "Also write the figures to FILE: Google Benchmark's JSON, in which each\n"
                 "contender and each ratio is a counter; - for stdout, instead of the table")
      ->type_name("FILE");
  app.add_option("--benchmark_filter", options.filter,
                 "Only the lines that match, such as '^64K/8/count$' [all]")
      ->type_name("REGEX")
      ->check(no_longer_than(kFilterMax));
  app.add_option("--benchmark_min_time", options.min_time, "The time to measure each line [0.3]")
      ->type_name("SECONDS")
      ->check(seconds());
  app.add_option("--benchmark_repetitions", options.repetitions,
                 "How often to measure each line [1]")
      ->type_name("N")
      ->check(number_from(1, 1000));
  app.add_flag("--benchmark_list_tests", options.list, "List the lines, and exit");
  refuse_other_options(
      app, {{app.get_option("--benchmark_list_tests"), {app.get_option("--benchmark_filter")}}});
  if (auto answer = parse(app, argc, argv)) return *std::move(answer);
  return options;
}

std::variant<MergeOptions, Answer> parse_merge(int argc, const char* const* argv) {
  CLI::App app{
      "Delivers the events of K full rings in the order of their keys, and prints ns per event:\n"
      "medians of turns taken in rotation. A merge's ratios are to the unmerged drain, a queue's\n"
      "to a merge with a window of 1 and of 8.",
      "merge"};
  MergeOptions options;
  app.add_option("--rounds", options.rounds, "Turns of each contender [21]")
      ->type_name("N")
      ->check(number_from(1, 100'000));
  app.add_option("--kib", options.kib, "KiB of records in all rings together [1024]")
      ->type_name("N")
      ->check(number_from(64, 1 << 20));
  app.add_option("--rings", options.rings, "The numbers of rings to merge [2 8 64 256]")
      ->type_name("K")
      ->check(number_from(1, 1024));
  app.add_option("--json", options.json, "Write the figures to FILE as JSON; - for stdout")
      ->type_name("FILE");
  if (auto answer = parse(app, argc, argv)) return *std::move(answer);
  return options;
}

std::variant<WaitOptions, Answer> parse_wait(int argc, const char* const* argv) {
  CLI::App app{
      "On this machine's kernel, a writer on one CPU outputs records at a constant rate, and a\n"
      "consumer on another waits for them: RingSet with a latency, and libbpf's perf_buffer__poll\n"
      "with its defaults, in turn. Also measures the ns to find many rings empty.",
      "wait"};
  WaitOptions options;
  app.add_option("--rates", options.rates, "Records per second [1000 100000 1000000 3000000]")
      ->type_name("N")
      ->check(number_from(1000, 100'000'000));
  app.add_option("--latency", options.latency_us, "RingSet's latency, in us [1000]")
      ->type_name("US")
      ->check(number_from(1, 1'000'000));
  app.add_option("--seconds", options.seconds, "The length of each turn [0.5]")
      ->type_name("S")
      ->check(seconds());
  app.add_option("--rounds", options.rounds, "Turns of each consumer [3]")
      ->type_name("N")
      ->check(number_from(1, 1000));
  app.add_option("--pages", options.pages, "Data pages of each ring, a power of two [1024]")
      ->type_name("N")
      ->check(power_of_two_up_to(std::uint64_t{1} << 16));
  app.add_option("--idle", options.idle, "Idle rings to find empty [256]")
      ->type_name("N")
      ->check(number_from(1, 4096));
  app.add_option("--json", options.json, "Write the figures to FILE as JSON; - for stdout")
      ->type_name("FILE");
  if (auto answer = parse(app, argc, argv)) return *std::move(answer);
  return options;
}

}  // namespace perfring::bench
