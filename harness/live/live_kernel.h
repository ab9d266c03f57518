#ifndef HARNESS_LIVE_LIVE_KERNEL_H_
#define HARNESS_LIVE_LIVE_KERNEL_H_

#include <optional>
#include <string>

namespace perfring::live {

// Why this process cannot use the kernel it runs on as the producer: the privilege or the facility
// of the kernel that is missing, for a person to read. nullopt if all is there; any later error is
// a failure.
std::optional<std::string> why_no_live_kernel();

// Names the capabilities that BPF output needs and this process lacks, and what to do about it,
// in one sentence ("This process lacks CAP_BPF: run as root, or grant it"). Empty if it lacks none.
std::string advice_on_capabilities();

// The same of a process that has these.
std::string advice_on_capabilities(bool has_bpf, bool has_perfmon);

}  // namespace perfring::live

#endif  // HARNESS_LIVE_LIVE_KERNEL_H_
