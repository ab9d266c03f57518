#ifndef HARNESS_CLI_RECORD_CLOCKS_H_
#define HARNESS_CLI_RECORD_CLOCKS_H_

// The note in a verdict about records that have another clock than this process.

#include <cstdint>
#include <string>
#include <string_view>

namespace perfring::cli {

// Returns this process's CLOCK_MONOTONIC minus the kernel's own, which records have, in ns: the
// offset of the time namespace (time_namespaces(7)), or 0 if there is no offset.
std::int64_t monotonic_offset();
// As above, parsed from the contents of /proc/self/timens_offsets.
std::int64_t monotonic_offset_of(std::string_view timens_offsets);

// Returns one line, without a newline: why the records were not in the order of time, and that none
// was delayed. Returns "" if no record was ahead and the clocks are the same. `ahead` is the number
// of records with a time later than the reader's clock.
std::string note_on_clock(std::uint64_t ahead, std::int64_t offset);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_RECORD_CLOCKS_H_
