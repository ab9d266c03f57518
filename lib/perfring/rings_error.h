#ifndef PERFRING_RINGS_ERROR_H_
#define PERFRING_RINGS_ERROR_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <expected>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "perfring/export.h"
#include "perfring/os/cpus.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event_array_error.h"

namespace perfring {

// Why an operation on several rings failed. A plain value: its functions always return the same
// results. A SyscallError is about a call that concerns no single ring, and its object names what
// the call was made on ("CPU 3", "fd 7").
//
// Threads: as for any value.
// Errors: only std::bad_alloc.
struct PERFRING_EXPORT RingsError {
  std::variant<PerfBufferError, os::OnlineCpusError, SyscallError> cause;

  // One line, and three lines for a person, as for PerfBufferError.
  std::string message() const;
  std::string explain() const;
  // The error code from the system.
  std::error_code io_error() const;
};

namespace internal {

inline std::unexpected<RingsError> failed(const char* call, std::string object,
                                          std::error_code error) {
  return std::unexpected(RingsError{SyscallError{call, std::move(object), error}});
}
inline std::unexpected<RingsError> failed(const char* call, std::string object, int error) {
  return failed(call, std::move(object), std::error_code(error, std::generic_category()));
}

}  // namespace internal
}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_ERROR_H_
