#include "perfring/perf_buffer.h"

#include <utility>

#include "perfring/os/syscalls.h"

namespace perfring {

std::expected<PerfBuffer, PerfBufferError> PerfBuffer::open(std::uint32_t cpu,
                                                            const PerfBufferOptions& options) {
  auto event = internal::OutputEvent::open(
      cpu, {.page_count = options.page_count, .wakeup_watermark = options.wakeup_watermark});
  if (!event) return std::unexpected(std::move(event).error());
  const Ring<> ring = *Ring<>::over(event->mapping(), os::page_size());
  return PerfBuffer{*std::move(event), ring};
}

PerfBuffer::PerfBuffer(internal::OutputEvent event, const Ring<>& ring) noexcept
    : event_{std::move(event)}, ring_{ring} {}

PerfBuffer::PerfBuffer(PerfBuffer&& other) noexcept
    : event_{std::move(other.event_)}, ring_{std::exchange(other.ring_, Ring<>::empty())} {}

PerfBuffer& PerfBuffer::operator=(PerfBuffer&& other) noexcept {
  event_ = std::move(other.event_);
  ring_ = std::exchange(other.ring_, Ring<>::empty());
  return *this;
}

bool PerfBuffer::is_usable() const noexcept {
  return event_.is_own();
}

PerfBuffer::~PerfBuffer() = default;

}  // namespace perfring
