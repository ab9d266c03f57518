#ifndef HARNESS_CLI_RECORD_CLOCKS_H_
#define HARNESS_CLI_RECORD_CLOCKS_H_

// The note in a verdict about records that have another clock than this process.

#include <cstdint>
#include <string>

namespace perfring::cli {

// Returns one line, without a newline: why the records were not in the order of time, and that none
// was delayed. Returns "" if no record was ahead and the clocks are the same. `ahead` is the number
// of records with a time later than the reader's clock.
std::string note_on_clock(std::uint64_t ahead, std::int64_t offset);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_RECORD_CLOCKS_H_
