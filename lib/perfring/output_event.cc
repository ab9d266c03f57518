#include "perfring/output_event.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <bit>
#include <ctime>
#include <system_error>
#include <utility>

#include "perfring/os/syscalls.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

perf_event_attr output_event(const OutputOptions& options) noexcept {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_type = PERF_SAMPLE_RAW;
  attr.sample_period = 1;
  attr.disabled = 1;
  attr.write_backward = options.overwrites ? 1 : 0;
  if (options.timed) {
    attr.sample_type |= PERF_SAMPLE_TIME;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
  }
  if (options.wakeup_watermark == 0) {
    attr.wakeup_events = 1;
  } else {
    attr.watermark = 1;
    // 64-bit kernels limit it in the same way; 32-bit ones take 2^31 and more for a negative number
    // (kernel/events/ring_buffer.c: ring_buffer_init() at v6.18).
    attr.wakeup_watermark = static_cast<__u32>(
        smaller<std::size_t>(options.wakeup_watermark, options.page_count * os::page_size()));
  }
  if (options.counts_lost) attr.read_format = PERF_FORMAT_LOST;
  return attr;
}

os::Result<os::Fd> open_output_event(std::uint32_t cpu, const OutputOptions& options) noexcept {
  perf_event_attr attr = output_event(options);
  auto event = os::perf_event_open(attr, cpu);
  // An older kernel refuses an unknown read_format (kernel/events/core.c: perf_copy_attr() at
  // v5.19).
  if (event || !options.counts_lost || event.error() != std::errc::invalid_argument) return event;
  attr.read_format = 0;
  return os::perf_event_open(attr, cpu);
}

std::expected<OutputEvent, PerfBufferError> OutputEvent::open(std::uint32_t cpu,
                                                              const OutputOptions& options) {
  using Kind = PerfBufferError::Kind;
  const auto error = [&](Kind kind, std::error_code io_error = {}) {
    return std::unexpected(PerfBufferError::at_failure(kind, io_error, cpu, options.page_count));
  };
  const std::size_t page_size = os::page_size();
  if (!std::has_single_bit(options.page_count) || options.page_count > kRingSizeMax / page_size) {
    return error(Kind::InvalidPageCount);
  }
  auto event = open_output_event(cpu, options);
  if (!event) return error(Kind::OpenError, event.error());
  const std::size_t length = page_size * (1 + options.page_count);
  // With PROT_WRITE the kernel would stop at data_tail instead of overwriting (W32).
  auto mapping = options.overwrites ? os::Mapping::map_read_only(event->get(), length)
                                    : os::Mapping::map(event->get(), length);
  if (!mapping) return error(Kind::MMapError, mapping.error());
  if (const auto enabled = os::perf_event_enable(event->get()); !enabled) {
    return error(Kind::PerfEventEnableError, enabled.error());
  }
  return OutputEvent{*std::move(event), *std::move(mapping)};
}

OutputEvent::OutputEvent(os::Fd event, os::Mapping mapping) noexcept
    : event_{std::move(event)}, mapping_{std::move(mapping)}, opener_{::getpid()} {}

OutputEvent& OutputEvent::operator=(OutputEvent&& other) noexcept {
  OutputEvent taken{std::move(other)};
  std::swap(event_, taken.event_);
  std::swap(mapping_, taken.mapping_);
  std::swap(opener_, taken.opener_);
  return *this;  // `taken` destroys what this held before
}

bool OutputEvent::is_own() const noexcept {
  return event_.get() < 0 || ::getpid() == opener_;
}

OutputEvent::~OutputEvent() {
  if (event_.get() < 0) return;
  if (!is_own()) {
    // fork() copied the descriptor, but not the mapping (kernel/events/core.c: perf_mmap() sets
    // VM_DONTCOPY at v6.18): by now, other memory may be mapped there.
    mapping_.forget();
    return;
  }
  // The map entry keeps the event itself alive, so closing it would not disable it.
  static_cast<void>(os::perf_event_disable(event_.get()));
}

}  // namespace perfring::internal
