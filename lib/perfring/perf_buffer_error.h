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

// Why a buffer could not be opened. A plain value: nothing that its functions say changes later.
//
// Threads: as any value. Errors: none, but for std::bad_alloc.
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
  std::error_code io_error;  // what the system said; nothing for InvalidPageCount
  std::uint32_t cpu;         // what was asked for (for IOError: the index, too)
  std::size_t page_count;
  // The change that helps, with the limit of the machine that bears on it (a sysctl, the online
  // CPUs) as it was when the call failed.
  std::string advice{};

  // The error of a call that has just failed: reads /proc and /sys for the advice.
  static PerfBufferError at_failure(Kind kind, std::error_code io_error, std::uint32_t cpu,
                                    std::size_t page_count);

  // One line, aya's: "perf_event_open failed: Permission denied". "unknown error" for an unknown
  // kind.
  std::string message() const;

  // Three lines for a person: what was asked, what the system said, and the advice. Two, if there
  // is no advice, as in an error that was made by hand.
  std::string explain() const;
};

}  // namespace perfring

#endif
#endif  // PERFRING_PERF_BUFFER_ERROR_H_
