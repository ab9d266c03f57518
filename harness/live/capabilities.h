#ifndef PERFRING_HARNESS_LIVE_CAPABILITIES_H_
#define PERFRING_HARNESS_LIVE_CAPABILITIES_H_

#include <string>

namespace perfring::live {

// The capabilities that BPF output needs and this process lacks ("CAP_BPF and CAP_PERFMON"), or
// nothing.
std::string missing_capabilities();

}  // namespace perfring::live

#endif  // PERFRING_HARNESS_LIVE_CAPABILITIES_H_
