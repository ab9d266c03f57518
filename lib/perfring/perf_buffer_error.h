#ifndef PERFRING_PERF_BUFFER_ERROR_H_
#define PERFRING_PERF_BUFFER_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

#include "perfring/export.h"

namespace perfring {

// Why a buffer could not be opened. Kinds and messages are those of aya's PerfBufferError.
struct PERFRING_EXPORT PerfBufferError {
  enum class Kind : std::uint8_t {
    InvalidPageCount,      // not a power of two, or a ring of more than 2 GiB
    OpenError,             // perf_event_open(2)
    MMapError,             // mmap(2)
    PerfEventEnableError,  // ioctl(2) PERF_EVENT_IOC_ENABLE
    IOError,               // bpf(2) BPF_MAP_UPDATE_ELEM, from PerfEventArray::open
  };

  Kind kind;
  std::error_code io_error;  // what the system said; nothing for InvalidPageCount
  std::uint32_t cpu;         // what was asked for (for IOError: the index, too)
  std::size_t page_count;

  // One line, aya's: "perf_event_open failed: Permission denied".
  std::string message() const;

  // Three lines for a person: what was asked, what the system said, and what to change. Reads
  // /proc and /sys when called, so call it where the error happened.
  std::string explain() const;
};

}  // namespace perfring

#endif  // PERFRING_PERF_BUFFER_ERROR_H_
