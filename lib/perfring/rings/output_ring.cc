#include "perfring/rings/output_ring.h"

#include <linux/perf_event.h>

#include <string>
#include <system_error>
#include <utility>

#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"

namespace perfring::internal {

std::expected<OutputRing, RingsError> OutputRing::open(std::uint32_t cpu,
                                                       const OutputOptions& options,
                                                       bool can_be_quiet) {
  auto event = OutputEvent::open(cpu, options);
  if (!event) return std::unexpected(RingsError{std::move(event).error()});
  OutputRing opened{cpu, options, *std::move(event)};
  if (can_be_quiet) {
    if (auto added = opened.add_quiet(); !added) return std::unexpected(std::move(added).error());
  }
  return opened;
}

OutputRing::OutputRing(std::uint32_t cpu, const OutputOptions& options, OutputEvent mapped) noexcept
    : cpu_{cpu},
      options_{options},
      page_size_{os::page_size()},
      mapped_{std::move(mapped)},
      ring_{*Ring<>::over(mapping(), page_size_)},
      timed_{*Ring<Timed<> >::over(mapping(), page_size_)},
      share_{*Cursor<>::over(mapping(), page_size_), mapping().size() - page_size_} {}

OutputRing::OutputRing(OutputRing&& other) noexcept = default;

OutputRing::~OutputRing() {
  if (!mapped_.is_own()) return;
  // The map entry keeps an event alive, so closing its descriptor would not disable it.
  for (const os::Fd* event : {&revived_, &quiet_}) {
    if (event->get() >= 0) static_cast<void>(os::perf_event_disable(event->get()));
  }
}

int OutputRing::event(Wakeups wakeups) const noexcept {
  if (wakeups == Wakeups::None && quiet_.get() >= 0) return quiet_.get();
  return revived_.get() >= 0 ? revived_.get() : mapped_.fd();
}

std::expected<os::Fd, RingsError> OutputRing::open_beside(const OutputOptions& options) const {
  using Kind = PerfBufferError::Kind;
  const auto error = [&](Kind kind, std::error_code io_error) {
    return std::unexpected(
        RingsError{PerfBufferError::at_failure(kind, io_error, cpu_, options.page_count)});
  };
  auto event = open_output_event(cpu_, options);
  if (!event) return error(Kind::OpenError, event.error());
  if (const auto set = os::perf_event_set_output(event->get(), mapped_.fd()); !set) {
    return failed("ioctl(PERF_EVENT_IOC_SET_OUTPUT)", "the event on CPU " + std::to_string(cpu_),
                  set.error());
  }
  if (const auto enabled = os::perf_event_enable(event->get()); !enabled) {
    return error(Kind::PerfEventEnableError, enabled.error());
  }
  return *std::move(event);
}

std::expected<void, RingsError> OutputRing::add_quiet() {
  // With a watermark, of any size, a record does not wake anyone by itself. The ring's own
  // watermark is that of the mapped event: half the ring (K30).
  OutputOptions quiet = options_;
  quiet.wakeup_watermark = 1;
  auto event = open_beside(quiet);
  if (!event) return std::unexpected(std::move(event).error());
  replace(quiet_, *std::move(event));
  return {};
}

std::optional<std::uint64_t> OutputRing::lost() const noexcept {
  std::optional<std::uint64_t> all = lost_before_;
  for (const int event : {mapped_.fd(), revived_.get(), quiet_.get()}) {
    if (event < 0 || !all) continue;
    const auto its = os::perf_event_lost(event);
    if (!its) return std::nullopt;
    *all += *its;
  }
  return all;
}

void OutputRing::replace(os::Fd& old, os::Fd event) noexcept {
  if (old.get() >= 0 && lost_before_) {
    const auto its = os::perf_event_lost(old.get());
    lost_before_ = its ? std::optional{*lost_before_ + *its} : std::nullopt;
  }
  old = std::move(event);
}

std::expected<void, RingsError> OutputRing::revive() {
  auto event = open_beside(options_);
  if (!event) return std::unexpected(std::move(event).error());
  if (quiet_.get() >= 0) {
    if (auto added = add_quiet(); !added) return added;
  }
  replace(revived_, *std::move(event));
  return {};
}

}  // namespace perfring::internal
