// Traces of a real kernel: what is accepted is a real kernel's, is read back from what is printed
// of it, and can be replayed.

#include "harness/differential/trace.h"

#include "fuzz/parsers/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  using fuzz::expect;
  const auto parsed = differential::parse_traces(fuzz::Input{data, size}.text());
  if (!fuzz::accepted(parsed)) return 0;
  std::string printed;
  for (const differential::Trace& trace : *parsed) {
    expect(trace.steps.size() == trace.script.steps.size(), "a step that shows nothing");
    expect(!why_impossible(trace.script) && !nests(trace.script), "a trace of no real kernel");
    differential::RecordedReference recorded{trace};
    for (const script::Step& step : trace.script.steps) recorded.run(step);
    printed += to_text(trace);
  }
  const auto again = differential::parse_traces(printed);
  expect(again.has_value(), "a trace is not read");
  std::string printed_again;
  for (const differential::Trace& trace : *again) printed_again += to_text(trace);
  expect(printed_again == printed, "a trace is not read back");
  return 0;
}
