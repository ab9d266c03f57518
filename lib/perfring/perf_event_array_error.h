#ifndef PERFRING_PERF_EVENT_ARRAY_ERROR_H_
#define PERFRING_PERF_EVENT_ARRAY_ERROR_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <cstdint>
#include <string>
#include <system_error>
#include <variant>

#include "perfring/export.h"
#include "perfring/perf_buffer_error.h"

namespace perfring {

// The map is not a BPF_MAP_TYPE_PERF_EVENT_ARRAY (aya's MapError::InvalidMapType).
struct InvalidMapType {
  std::uint32_t map_type;  // enum bpf_map_type of linux/bpf.h
};

// A bpf(2) or fcntl(2) call on the map failed (aya's SyscallError).
struct SyscallError {
  const char* call;    // "bpf_obj_pin", ...; static storage
  std::string object;  // its argument: a path, "map fd 7", or "index 3 with fd 9"
  std::error_code io_error;
};

// The map has no such entry (aya's MapError::OutOfBounds). From PerfEventArray::set and unset;
// PerfEventArray::open reports a PerfBufferError of kind IOError instead.
struct OutOfBounds {
  std::uint32_t index;
  std::uint32_t max_entries;
};

// Why opening an array, or one of its buffers, or changing one of its entries failed. A plain
// value: its texts do not change after the failure.
//
// Threads: those of a plain value. Errors: none except std::bad_alloc.
// Mirrors aya's MapError.
struct PERFRING_EXPORT PerfEventArrayError {
  std::variant<PerfBufferError, InvalidMapType, SyscallError, OutOfBounds> cause;

  // One line in aya's words, and three lines for a person, like PerfBufferError's.
  std::string message() const;
  std::string explain() const;
};

namespace internal {

// The call's name. An error that was built by hand may name none.
inline std::string call_of(const SyscallError& error) {
  return error.call == nullptr ? "a system call" : error.call;
}

inline std::string explain(const SyscallError& error, const std::string& advice) {
  return std::string{"asked for: "} + call_of(error) + " of " + error.object +
         "\nthe system said: " + error.io_error.message() + "\nto change: " + advice;
}

}  // namespace internal
}  // namespace perfring

#endif
#endif  // PERFRING_PERF_EVENT_ARRAY_ERROR_H_
