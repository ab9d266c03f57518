#include "harness/program/time_namespace.h"

#include <sstream>
#include <string>

#include "harness/program/read_file.h"

namespace perfring {

std::int64_t monotonic_offset_of(std::string_view timens_offsets) {
  std::istringstream lines{std::string{timens_offsets}};
  std::string clock;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  while (lines >> clock >> seconds >> nanoseconds) {
    if (clock == "monotonic") return seconds * 1'000'000'000 + nanoseconds;
  }
  return 0;
}

std::int64_t monotonic_offset() {
  return monotonic_offset_of(read_file("/proc/self/timens_offsets").value_or(std::string{}));
}

}  // namespace perfring
