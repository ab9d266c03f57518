#include "harness/cli/record/clocks.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "harness/program/numbers.h"

namespace perfring::cli {

std::string note_on_clock(std::uint64_t ahead, std::int64_t offset) {
  if (ahead == 0 && offset == 0) return {};
  std::string note = "note: ";
  if (ahead != 0) {
    note +=
        fmt::format("{} later than this process's clock: the records use another clock",
                    ahead == 1 ? "1 record has a time" : counted(ahead, "record") + " have times");
  } else {
    note += "the records use another clock than this process";
  }
  if (offset != 0) {
    note += fmt::format(
        " (this process is in a time namespace, where CLOCK_MONOTONIC is {} s {} the kernel's)",
        std::abs(static_cast<double>(offset) / 1e9), offset < 0 ? "behind" : "ahead of");
  } else {
    note += " (as in a time namespace)";
  }
  return note +
         ". perfring did not hold them back, so records from different CPUs may be out of order";
}

}  // namespace perfring::cli
