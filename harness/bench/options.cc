#include "harness/bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>

namespace perfring::bench {
namespace {

constexpr std::size_t kFilterMax = 200;  // regcomp() takes stack for each parenthesis

}  // namespace

std::variant<Options, Answer> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{
      "Drains full rings and prints ns per event: medians of turns taken in rotation.\n"
      "Ctrl-C stops after the current line.",
      "drain"};
  Options options;
  std::string min_time = "0.3";
  std::uint64_t repetitions = 1;
  app.add_option("--json", options.json,
                 "Write the figures to FILE as well: Google Benchmark's JSON, in which each\n"
                 "contender and each ratio is a counter; - for stdout, in place of the table")
      ->type_name("FILE");
  app.add_option("--benchmark_filter", options.filter,
                 "Only the lines that match, such as '^64K/8/count$' [all]")
      ->type_name("REGEX")
      ->check(no_longer_than(kFilterMax));
  app.add_option("--benchmark_min_time", min_time, "The time for each line [0.3]")
      ->type_name("SECONDS")
      ->check(seconds());
  app.add_option("--benchmark_repetitions", repetitions, "How often each line is measured [1]")
      ->type_name("N")
      ->check(number_from(1, 1000));
  app.add_flag("--benchmark_list_tests", options.list, "Name the lines, and end");
  refuse_more(app,
              {{app.get_option("--benchmark_list_tests"), {app.get_option("--benchmark_filter")}}});
  if (auto answer = parse(app, argc, argv)) return *std::move(answer);
  options.benchmark = {argv[0], "--benchmark_min_time=" + min_time,
                       fmt::format("--benchmark_repetitions={}", repetitions)};
  return options;
}

}  // namespace perfring::bench
