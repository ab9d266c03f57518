#ifndef PERFRING_OUTPUT_EVENT_H_
#define PERFRING_OUTPUT_EVENT_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The event, mapping and descriptor that PerfBuffer, RingSet and OverwritableRing own for each CPU.
// Internal to them.

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

// How an event outputs to its ring.
struct OutputOptions {
  std::size_t page_count = 0;
  std::uint32_t wakeup_watermark = 0;  // as in PerfBufferOptions
  bool timed = false;                  // PERF_SAMPLE_TIME, of CLOCK_MONOTONIC, in each record
  bool overwrites = false;             // backward, over the oldest records; mapped read-only
  bool counts_lost = false;            // for os::perf_event_lost(), if the kernel supports it
};

// Returns the attributes of S7, those of aya's perf_event_open for BPF output, plus the time and
// the direction that the options ask for.
PERFRING_EXPORT perf_event_attr output_event(const OutputOptions& options) noexcept;

// Opens such an event on `cpu`. Errors: perf_event_open(2)'s.
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
  // Whether this process opened the event, or this object is moved from.
  bool is_own() const noexcept;

 private:
  PERFRING_HIDDEN OutputEvent(os::Fd event, os::Mapping mapping) noexcept;

  os::Fd event_;  // destroyed last: closed after the unmapping
  os::Mapping mapping_;
  pid_t opener_;  // only this process disables the event and unmaps the ring
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_OUTPUT_EVENT_H_
