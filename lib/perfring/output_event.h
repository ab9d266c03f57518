#ifndef PERFRING_OUTPUT_EVENT_H_
#define PERFRING_OUTPUT_EVENT_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The event, mapping and descriptor that PerfBuffer, RingSet and OverwritableRing own of each CPU:
// internal to them.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"

struct perf_event_attr;  // linux/perf_event.h

namespace perfring::internal {

// The way in which an event outputs to its ring.
struct OutputOptions {
  std::size_t page_count = 0;
  std::uint32_t wakeup_watermark = 0;  // as PerfBufferOptions
  bool timed = false;                  // PERF_SAMPLE_TIME, of CLOCK_MONOTONIC, in each record
  bool overwrites = false;             // backward, over the oldest records; mapped to be read only
  bool counts_lost = false;            // for os::perf_event_lost(), where the kernel has it
};

// The attributes of S7: aya's perf_event_open for BPF output; and the time, and the direction.
PERFRING_EXPORT perf_event_attr output_event(const OutputOptions& options) noexcept;

// Opens it on `cpu`. Errors: perf_event_open(2)'s.
os::Result<os::Fd> open_output_event(std::uint32_t cpu, const OutputOptions& options) noexcept;

// One CPU's event and the mapping of its ring.
//
// Lifetime: move-only. Destroying it disables the event, unmaps the ring and closes the event; in a
// forked child, it only closes the descriptor (see PerfBuffer).
class PERFRING_EXPORT OutputEvent {
 public:
  // Opens the event on `cpu`, maps its ring and enables it. Errors: PerfBuffer::open's.
  static std::expected<OutputEvent, PerfBufferError> open(std::uint32_t cpu,
                                                          const OutputOptions& options);

  OutputEvent(OutputEvent&&) noexcept = default;
  OutputEvent& operator=(OutputEvent&& other) noexcept;
  ~OutputEvent();

  int fd() const noexcept { return event_.get(); }  // -1 if moved from
  std::span<std::byte> mapping() const noexcept { return mapping_.bytes(); }
  // Whether this process opened it, or it is moved from.
  bool is_own() const noexcept;

 private:
  PERFRING_HIDDEN OutputEvent(os::Fd event, os::Mapping mapping) noexcept;

  os::Fd event_;  // destroyed last: closed after the unmapping
  os::Mapping mapping_;
  pid_t opener_;  // in any other process, the event is that one's to stop
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_OUTPUT_EVENT_H_
