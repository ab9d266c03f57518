#ifndef HARNESS_LIVE_LIVE_KERNEL_H_
#define HARNESS_LIVE_LIVE_KERNEL_H_

#include <optional>
#include <string>

namespace perfring::live {

// Why this process cannot use the kernel it runs on as the producer: the privilege or the facility
// of the kernel that is missing, for a person to read. nullopt if all is there; any later error is
// a failure.
std::optional<std::string> why_no_live_kernel();

}  // namespace perfring::live

#endif  // HARNESS_LIVE_LIVE_KERNEL_H_
