#ifndef HARNESS_LIVE_LIVE_KERNEL_H_
#define HARNESS_LIVE_LIVE_KERNEL_H_

#include <optional>
#include <string>

namespace perfring::live {

// Returns why this process cannot use its kernel as the producer: the missing privilege or kernel
// feature, in a text for people. Returns nullopt if nothing is missing: any later error is a
// failure.
std::optional<std::string> why_no_live_kernel();

// Names the capabilities that BPF output needs and this process lacks, and a remedy, in one
// sentence ("This process lacks CAP_BPF: run as root, or grant it"). Returns "" if it lacks none.
std::string advice_on_capabilities();

// The same for a process that has these.
std::string advice_on_capabilities(bool has_bpf, bool has_perfmon);

}  // namespace perfring::live

#endif  // HARNESS_LIVE_LIVE_KERNEL_H_
