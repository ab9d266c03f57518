#ifndef PERFRING_OUTPUT_EVENT_H_
#define PERFRING_OUTPUT_EVENT_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23 and its std::expected: compile with -std=c++23 (ring/ alone: C++20)"
#else

// Internal to the owners of events.

#include <cstddef>

#include <linux/perf_event.h>

#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

// The attributes of S7: aya's perf_event_open for BPF output.
inline perf_event_attr output_event(const PerfBufferOptions& options) noexcept {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_type = PERF_SAMPLE_RAW;
  attr.sample_period = 1;
  attr.disabled = 1;
  if (options.wakeup_watermark == 0) {
    attr.wakeup_events = 1;
  } else {
    attr.watermark = 1;
    // As 64-bit kernels do themselves; 32-bit ones take 2^31 and more for a negative number
    // (kernel/events/ring_buffer.c: ring_buffer_init() at v6.18).
    attr.wakeup_watermark = static_cast<__u32>(
        smaller<std::size_t>(options.wakeup_watermark, options.page_count * os::page_size()));
  }
  return attr;
}

}  // namespace perfring::internal

#endif
#endif  // PERFRING_OUTPUT_EVENT_H_
