#ifndef HARNESS_PROGRAM_TIME_NAMESPACE_H_
#define HARNESS_PROGRAM_TIME_NAMESPACE_H_

#include <cstdint>
#include <string_view>

namespace perfring {

// Returns this process's CLOCK_MONOTONIC minus the kernel's own, which records and BPF programs
// have, in ns: the offset of the time namespace (time_namespaces(7)), or 0 if there is no offset.
std::int64_t monotonic_offset();
// As above, parsed from the contents of /proc/self/timens_offsets.
std::int64_t monotonic_offset_of(std::string_view timens_offsets);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_TIME_NAMESPACE_H_
