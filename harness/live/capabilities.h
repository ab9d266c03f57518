#ifndef HARNESS_LIVE_CAPABILITIES_H_
#define HARNESS_LIVE_CAPABILITIES_H_

#include <string>

namespace perfring::live {

// Names the capabilities that BPF output needs and this process lacks, and what to do about it,
// in one sentence ("This process lacks CAP_BPF: run as root, or grant it"). Empty if it lacks none.
std::string advice_on_capabilities();

// The same of a process that has these.
std::string advice_on_capabilities(bool has_bpf, bool has_perfmon);

}  // namespace perfring::live

#endif  // HARNESS_LIVE_CAPABILITIES_H_
