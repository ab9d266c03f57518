#include "perfring/perf_buffer.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <bit>
#include <optional>

#include "perfring/os/syscalls.h"
#include "perfring/output_event.h"

namespace perfring {

std::expected<PerfBuffer, PerfBufferError> PerfBuffer::open(std::uint32_t cpu,
                                                            const PerfBufferOptions& options) {
  using Kind = PerfBufferError::Kind;
  const std::size_t page_count = options.page_count;
  const auto error = [&](Kind kind, std::error_code io_error = {}) {
    return std::unexpected(PerfBufferError::at_failure(kind, io_error, cpu, page_count));
  };

  const std::size_t page_size = os::page_size();
  if (!std::has_single_bit(page_count) || page_count > Ring<>::kSizeMax / page_size) {
    return error(Kind::InvalidPageCount);
  }
  perf_event_attr attr = internal::output_event(options);
  auto event = os::perf_event_open(attr, cpu);
  if (!event) return error(Kind::OpenError, event.error());

  auto mapping = os::Mapping::map(event->get(), page_size * (1 + page_count));
  if (!mapping) return error(Kind::MMapError, mapping.error());

  const std::optional ring = Ring<>::over(mapping->bytes(), page_size);
  if (!ring) return error(Kind::InvalidPageCount);

  if (const auto enabled = os::perf_event_enable(event->get()); !enabled) {
    return error(Kind::PerfEventEnableError, enabled.error());
  }
  return PerfBuffer{*std::move(event), *std::move(mapping), *ring};
}

PerfBuffer::PerfBuffer(os::Fd event, os::Mapping mapping, Ring<> ring) noexcept
    : event_{std::move(event)}, mapping_{std::move(mapping)}, ring_{ring}, opener_{::getpid()} {}

PerfBuffer::PerfBuffer(PerfBuffer&& other) noexcept
    : event_{std::move(other.event_)},
      mapping_{std::move(other.mapping_)},
      ring_{std::exchange(other.ring_, Ring<>::empty())},
      opener_{other.opener_} {}

PerfBuffer& PerfBuffer::operator=(PerfBuffer&& other) noexcept {
  PerfBuffer taken{std::move(other)};
  std::swap(event_, taken.event_);
  std::swap(mapping_, taken.mapping_);
  std::swap(ring_, taken.ring_);
  std::swap(opener_, taken.opener_);
  return *this;  // what this held before is destroyed with `taken`
}

bool PerfBuffer::is_usable() const noexcept {
  return event_.get() < 0 || ::getpid() == opener_;
}

PerfBuffer::~PerfBuffer() {
  if (event_.get() < 0) return;
  if (::getpid() != opener_) {
    // fork() copied the descriptor, but not the mapping (kernel/events/core.c: perf_mmap() sets
    // VM_DONTCOPY at v6.18): by now, other memory may lie there.
    mapping_.forget();
    return;
  }
  // The map entry keeps the event itself alive, so closing it would not disable it.
  static_cast<void>(os::perf_event_disable(event_.get()));
}

}  // namespace perfring
