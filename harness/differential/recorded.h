#ifndef HARNESS_DIFFERENTIAL_RECORDED_H_
#define HARNESS_DIFFERENTIAL_RECORDED_H_

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/differential/trace.h"

namespace perfring::differential {

// The checked-in traces: their names, and themselves. For tests whose environment has
// TRACES, their paths.
inline std::vector<std::pair<std::string, Trace>> recorded() {
  std::vector<std::pair<std::string, Trace>> traces;
  const char* const named = std::getenv("TRACES");
  if (named == nullptr) throw std::runtime_error("TRACES is not set");
  std::istringstream paths{named};
  for (std::string path; paths >> path;) {
    std::ifstream in{path};
    std::ostringstream text;
    text << in.rdbuf();
    auto trace = parse_trace(text.str());
    if (!trace) throw std::runtime_error(path + ": " + trace.error());
    traces.emplace_back(path, *std::move(trace));
  }
  return traces;
}

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_RECORDED_H_
