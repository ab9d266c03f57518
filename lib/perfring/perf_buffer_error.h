#ifndef PERFRING_PERF_BUFFER_ERROR_H_
#define PERFRING_PERF_BUFFER_ERROR_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

#include "perfring/export.h"

namespace perfring {

// Why a buffer could not be opened. A plain value: its texts do not change after the failure.
//
// Threads: those of a plain value. Errors: none except std::bad_alloc.
// Kinds and messages are those of aya's PerfBufferError.
struct PERFRING_EXPORT PerfBufferError {
  enum class Kind : std::uint8_t {
    InvalidPageCount,      // not a power of two, or a ring of more than 2 GiB
    OpenError,             // perf_event_open(2)
    MMapError,             // mmap(2)
    PerfEventEnableError,  // ioctl(2) PERF_EVENT_IOC_ENABLE
    IOError,  // bpf(2) BPF_MAP_UPDATE_ELEM, from PerfEventArray::open; aya's up to 0.14.0
  };

  Kind kind;
  std::error_code io_error;  // the system's error; empty for InvalidPageCount
  std::uint32_t cpu;         // the argument of open (for IOError: the index, too)
  std::size_t page_count;
  // The change that helps, with the machine's relevant limit (a sysctl, the online CPUs) as it was
  // when the call failed.
  std::string advice{};

  // Returns the error of a call that has just failed. Reads /proc and /sys for the advice.
  static PerfBufferError at_failure(Kind kind, std::error_code io_error, std::uint32_t cpu,
                                    std::size_t page_count);

  // Returns one line, aya's: "perf_event_open failed: Permission denied". "unknown error" for an
  // unknown kind.
  std::string message() const;

  // Returns three lines for a person: the request, the system's error, and the advice. Two lines if
  // there is no advice, as in an error that was built by hand.
  std::string explain() const;
};

}  // namespace perfring

#endif
#endif  // PERFRING_PERF_BUFFER_ERROR_H_
