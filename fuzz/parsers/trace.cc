// Traces of a real kernel: what is accepted is a real kernel's, is read back from what is printed
// of it, and can be replayed.

#include "harness/differential/trace.h"

#include "fuzz/parsers/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  using fuzz::expect;
  const auto parsed = differential::parse_trace(fuzz::Input{data, size}.text());
  if (!fuzz::accepted(parsed)) return 0;
  expect(parsed->steps.size() == parsed->script.steps.size(), "a step that shows nothing");
  expect(!why_impossible(parsed->script) && !nests(parsed->script), "a trace of no real kernel");
  const std::string printed = to_text(*parsed);
  const auto again = differential::parse_trace(printed);
  expect(again && to_text(*again) == printed, "a trace is not read back");
  differential::RecordedReference recorded{*parsed};
  for (const script::Step& step : parsed->script.steps) recorded.run(step);
  return 0;
}
