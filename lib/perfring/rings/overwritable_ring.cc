#include "perfring/rings/overwritable_ring.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <limits>
#include <string>

#include "perfring/os/syscalls.h"
#include "perfring/output_event.h"
#include "perfring/ring/ring.h"

namespace perfring {
namespace {

using internal::failed;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kStands{20};
// A writer that never ends is not waited for: Snapshot::moved says so.
constexpr std::chrono::milliseconds kSettlesMost{10};

}  // namespace

std::expected<OverwritableRing, RingsError> OverwritableRing::open(const PerfEventArray& array,
                                                                   std::uint32_t cpu,
                                                                   std::size_t page_count) {
  using Kind = PerfBufferError::Kind;
  const auto error = [&](Kind kind, std::error_code io_error = {}) {
    return std::unexpected(
        RingsError{PerfBufferError::at_failure(kind, io_error, cpu, page_count)});
  };
  const std::size_t page_size = os::page_size();
  if (!std::has_single_bit(page_count) || page_count > Ring<>::kSizeMax / page_size) {
    return error(Kind::InvalidPageCount);
  }
  auto map = os::duplicate(array.fd());
  if (!map) return failed("fcntl(F_DUPFD_CLOEXEC)", "the array's map", map.error());
  // A watermark of the ring's size: nobody is woken for each record.
  perf_event_attr attr = internal::output_event(
      {.page_count = page_count, .wakeup_watermark = std::numeric_limits<std::uint32_t>::max()});
  attr.write_backward = 1;
  auto event = os::perf_event_open(attr, cpu);
  if (!event) return error(Kind::OpenError, event.error());
  // With PROT_WRITE the kernel would stop at data_tail (W32).
  auto mapping = os::Mapping::map_read_only(event->get(), page_size * (1 + page_count));
  if (!mapping) return error(Kind::MMapError, mapping.error());
  const std::optional snapshots = Snapshots<>::over(mapping->bytes(), page_size);
  if (!snapshots) return error(Kind::InvalidPageCount);
  if (const auto enabled = os::perf_event_enable(event->get()); !enabled) {
    return error(Kind::PerfEventEnableError, enabled.error());
  }
  OverwritableRing ring{*std::move(map), *std::move(event), *std::move(mapping), *snapshots};
  const auto updated =
      os::bpf_map_update(ring.map_.get(), cpu, static_cast<std::uint32_t>(ring.event_.get()));
  if (!updated) return error(Kind::IOError, updated.error());
  return ring;
}

OverwritableRing::OverwritableRing(os::Fd map, os::Fd event, os::Mapping mapping,
                                   const Snapshots<>& snapshots) noexcept
    : map_{std::move(map)},
      event_{std::move(event)},
      mapping_{std::move(mapping)},
      snapshots_{snapshots},
      opener_{::getpid()} {}

OverwritableRing::~OverwritableRing() {
  if (event_.get() < 0) return;
  if (::getpid() != opener_) {
    mapping_.forget();  // as ~PerfBuffer()
    return;
  }
  static_cast<void>(os::perf_event_disable(event_.get()));
}

std::expected<void, RingsError> OverwritableRing::settle(Settle how) {
  if (const auto paused = os::perf_event_pause_output(event_.get(), true); !paused) {
    return failed("ioctl(PERF_EVENT_IOC_PAUSE_OUTPUT)", "the ring", paused.error());
  }
  if (how == Settle::Completely) {
    if (!barrier_) barrier_ = WriterBarrier::create();
    return barrier_->wait();
  }
  const auto begin = Clock::now();
  auto since = begin;
  Position head = snapshots_.data_head();
  for (auto now = begin; now - since < kStands && now - begin < kSettlesMost; now = Clock::now()) {
    const Position next = snapshots_.data_head();
    if (next != head) since = now;
    head = next;
  }
  return {};
}

void OverwritableRing::resume() noexcept {
  static_cast<void>(os::perf_event_pause_output(event_.get(), false));
}

}  // namespace perfring
