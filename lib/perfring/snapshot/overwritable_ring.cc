#include "perfring/snapshot/overwritable_ring.h"

#include <chrono>
#include <limits>
#include <string>

#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"

namespace perfring {
namespace {

using internal::failed;

}  // namespace

std::expected<OverwritableRing, RingsError> OverwritableRing::open_pages(
    const PerfEventArray& array, std::uint32_t cpu, std::size_t page_count) {
  auto map = os::duplicate(array.fd());
  if (!map) return failed("fcntl(F_DUPFD_CLOEXEC)", "the array's map", map.error());
  // With a watermark of the ring's size, single records wake nobody.
  auto event = internal::OutputEvent::open(
      cpu, {.page_count = page_count,
            .wakeup_watermark = std::numeric_limits<std::uint32_t>::max(),
            .overwrites = true,
            .counts_lost = true});
  if (!event) return std::unexpected(RingsError{std::move(event).error()});
  const Snapshots<> snapshots = *Snapshots<>::over(event->mapping(), os::page_size());
  OverwritableRing ring{*std::move(map), *std::move(event), snapshots};
  const auto updated =
      os::bpf_map_update(ring.map_.get(), cpu, static_cast<std::uint32_t>(ring.fd()));
  if (updated) return ring;
  return std::unexpected(RingsError{PerfBufferError::at_failure(PerfBufferError::Kind::IOError,
                                                                updated.error(), cpu, page_count)});
}

OverwritableRing::OverwritableRing(os::Fd map, internal::OutputEvent event,
                                   const Snapshots<>& snapshots) noexcept
    : map_{std::move(map)}, event_{std::move(event)}, snapshots_{snapshots} {}

std::optional<std::uint64_t> OverwritableRing::lost() const noexcept {
  const auto lost = os::perf_event_lost(event_.fd());
  return lost ? std::optional{*lost} : std::nullopt;
}

std::expected<void, RingsError> OverwritableRing::settle(Settle how) {
  if (const auto paused = os::perf_event_pause_output(event_.fd(), true); !paused) {
    return failed("ioctl(PERF_EVENT_IOC_PAUSE_OUTPUT)", "the ring", paused.error());
  }
  if (how == Settle::Completely) {
    if (!barrier_) barrier_ = WriterBarrier::create();
    return barrier_->wait();
  }
  internal::wait_until_head_stands([this] { return snapshots_.data_head(); },
                                   std::chrono::steady_clock::now);
  return {};
}

std::expected<void, RingsError> OverwritableRing::resume() {
  if (const auto resumed = os::perf_event_pause_output(event_.fd(), false); !resumed) {
    return failed("ioctl(PERF_EVENT_IOC_PAUSE_OUTPUT)", "the ring, which stays paused,",
                  resumed.error());
  }
  return {};
}

}  // namespace perfring
