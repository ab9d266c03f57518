#include "perfring/rings/output_ring.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "perfring/os/syscalls.h"
#include "perfring/output_event.h"

namespace perfring::internal {

std::expected<OutputRing, RingsError> OutputRing::open(std::uint32_t cpu,
                                                       const PerfBufferOptions& options,
                                                       bool can_be_quiet) {
  using Kind = PerfBufferError::Kind;
  const auto error = [&](Kind kind, std::error_code io_error = {}) {
    return std::unexpected(
        RingsError{PerfBufferError::at_failure(kind, io_error, cpu, options.page_count)});
  };
  const std::size_t page_size = os::page_size();
  if (!std::has_single_bit(options.page_count) ||
      options.page_count > Ring<>::kSizeMax / page_size) {
    return error(Kind::InvalidPageCount);
  }
  perf_event_attr attr = output_event(options);
  auto event = os::perf_event_open(attr, cpu);
  if (!event) return error(Kind::OpenError, event.error());
  auto mapping = os::Mapping::map(event->get(), page_size * (1 + options.page_count));
  if (!mapping) return error(Kind::MMapError, mapping.error());
  const std::optional ring = Ring<>::over(mapping->bytes(), page_size);
  const std::optional cursor = Cursor<>::over(mapping->bytes(), page_size);
  if (!ring || !cursor) return error(Kind::InvalidPageCount);
  if (const auto enabled = os::perf_event_enable(event->get()); !enabled) {
    return error(Kind::PerfEventEnableError, enabled.error());
  }
  OutputRing opened{cpu, options, *std::move(event), *std::move(mapping), *ring, *cursor};
  if (can_be_quiet) {
    if (auto added = opened.add_quiet(); !added) return std::unexpected(std::move(added).error());
  }
  return opened;
}

OutputRing::OutputRing(std::uint32_t cpu, const PerfBufferOptions& options, os::Fd mapped,
                       os::Mapping mapping, const Ring<>& ring, const Cursor<>& cursor) noexcept
    : cpu_{cpu},
      options_{options},
      page_size_{os::page_size()},
      opener_{::getpid()},
      mapped_{std::move(mapped)},
      mapping_{std::move(mapping)},
      ring_{ring},
      cursor_{cursor} {}

OutputRing::OutputRing(OutputRing&& other) noexcept = default;

OutputRing::~OutputRing() {
  if (mapped_.get() < 0) return;
  if (::getpid() != opener_) {
    mapping_.forget();  // as ~PerfBuffer()
    return;
  }
  // The map entry keeps an event alive, so closing it would not disable it.
  for (const os::Fd* event : {&mapped_, &revived_, &quiet_}) {
    if (event->get() >= 0) static_cast<void>(os::perf_event_disable(event->get()));
  }
}

int OutputRing::event(Wakeups wakeups) const noexcept {
  if (wakeups == Wakeups::None && quiet_.get() >= 0) return quiet_.get();
  return revived_.get() >= 0 ? revived_.get() : mapped_.get();
}

std::expected<os::Fd, RingsError> OutputRing::open_beside(const PerfBufferOptions& options) const {
  using Kind = PerfBufferError::Kind;
  const auto error = [&](Kind kind, std::error_code io_error) {
    return std::unexpected(
        RingsError{PerfBufferError::at_failure(kind, io_error, cpu_, options.page_count)});
  };
  perf_event_attr attr = output_event(options);
  auto event = os::perf_event_open(attr, cpu_);
  if (!event) return error(Kind::OpenError, event.error());
  if (const auto set = os::perf_event_set_output(event->get(), mapped_.get()); !set) {
    return failed("ioctl(PERF_EVENT_IOC_SET_OUTPUT)", "the event on CPU " + std::to_string(cpu_),
                  set.error());
  }
  if (const auto enabled = os::perf_event_enable(event->get()); !enabled) {
    return error(Kind::PerfEventEnableError, enabled.error());
  }
  return *std::move(event);
}

std::expected<void, RingsError> OutputRing::add_quiet() {
  // With a watermark, of whatever size, no record wakes by itself; the ring's own watermark is that
  // of the mapped event, half the ring (K30).
  PerfBufferOptions quiet = options_;
  quiet.wakeup_watermark = 1;
  auto event = open_beside(quiet);
  if (!event) return std::unexpected(std::move(event).error());
  quiet_ = *std::move(event);
  return {};
}

std::expected<void, RingsError> OutputRing::revive() {
  auto event = open_beside(options_);
  if (!event) return std::unexpected(std::move(event).error());
  if (quiet_.get() >= 0) {
    if (auto added = add_quiet(); !added) return added;
  }
  revived_ = *std::move(event);
  is_online = true;
  return {};
}

}  // namespace perfring::internal
