// The benchmark's command line: of its own options, none is passed on to Google Benchmark.

#include "harness/bench/options.h"

#include "fuzz/parsers/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  const fuzz::Arguments arguments{fuzz::Input{data, size}.text()};
  const auto parsed = bench::parse_command_line(arguments.count(), arguments.values());
  const bench::Options* const options = fuzz::options_of(parsed);
  if (options == nullptr) return 0;
  for (const std::string& argument : options->benchmark) {
    fuzz::expect(argument == "program" || argument.starts_with("--benchmark_"),
                 "an option of ours, passed on");
  }
  return 0;
}
