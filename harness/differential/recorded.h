#ifndef HARNESS_DIFFERENTIAL_RECORDED_H_
#define HARNESS_DIFFERENTIAL_RECORDED_H_

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/differential/trace.h"

namespace perfring::differential {

// The checked-in traces. For tests whose environment has TRACES, the paths of their files.
inline std::vector<KernelTrace> recorded() {
  std::vector<KernelTrace> traces;
  const char* const named = std::getenv("TRACES");
  if (named == nullptr) throw std::runtime_error("TRACES is not set");
  std::istringstream paths{named};
  for (std::string path; paths >> path;) {
    std::ifstream in{path};
    std::ostringstream text;
    text << in.rdbuf();
    auto of_file = parse_traces(text.str());
    if (!of_file) throw std::runtime_error(path + ": " + of_file.error());
    std::ranges::move(*of_file, std::back_inserter(traces));
  }
  return traces;
}

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_RECORDED_H_
