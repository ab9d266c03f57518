#ifndef HARNESS_CONFORMANCE_SUBJECTS_H_
#define HARNESS_CONFORMANCE_SUBJECTS_H_

// Holds consumers to a vector: perfring and the faulty ones of harness/faults, in this process; and
// adapters, which are programs in any language.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/judge.h"
#include "harness/conformance/vector.h"

namespace perfring::conformance {

// perfring itself: Ring where samples are RAW alone, and Cursor with lib/perfring/record elsewhere.
Cell run_perfring(const Vector& vector);

// The faults of a memory and of a consumer, each planted. Their consumers take samples of RAW
// alone.
std::span<const std::string_view> planted_faults();
// Precondition: a fault has this name.
Cell run_fault(std::string_view name, const Vector& vector);

// Runs `command FILE PAGES SAMPLE_TYPE` once for each turn, by the shell, in a process group of its
// own, and judges what it prints (README.md has the protocol). Throws CannotRun.
Cell run_adapter(const std::string& command, const Vector& vector, const Limits& limits = {});

// The events that a program printed, and the tail. An error is the first line that is neither.
struct Printed {
  std::vector<Event> events;
  std::optional<std::uint64_t> tail;
};
std::expected<Printed, std::string> parse_printed(std::string_view out);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUBJECTS_H_
