#ifndef HARNESS_CLI_CLOCKS_H_
#define HARNESS_CLI_CLOCKS_H_

// What a verdict says of records whose clock is not this process's.

#include <cstdint>
#include <string>
#include <string_view>

namespace perfring::cli {

// By how much CLOCK_MONOTONIC of this process is later than the kernel's own, which records have:
// the offset of its time namespace in ns (time_namespaces(7)); 0 where there is none.
std::int64_t monotonic_offset();
// The same of what /proc/self/timens_offsets holds.
std::int64_t monotonic_offset_of(std::string_view timens_offsets);

// One line, without a newline: why the records were in no order of time, and that they were not
// held up by it. Empty if none was ahead and the clocks are the same.
std::string note_on_clock(std::uint64_t ahead, std::int64_t offset);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CLOCKS_H_
