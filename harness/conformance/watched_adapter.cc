#include "harness/conformance/watched_adapter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <span>

#include "harness/conformance/supervisor/ring_accesses.h"

namespace perfring::conformance {

WatchedAdapter::WatchedAdapter(const std::vector<std::string>& command, RingImage& image,
                               const std::vector<Early>& early, bool is_plain,
                               const ProcessLimits& limits, Cell& cell)
    : image_{image},
      early_{early},
      is_plain_{is_plain},
      cell_{cell},
      process_{command,
               limits,
               {.call = [](const Tracee&,
                           const seccomp_notif&) { return CallAnswer{.by_kernel = true}; },
                .maps_ring = [this](const Tracee& caller,
                                    const MapCall& call) { return maps_ring(caller, call); },
                .mapped = [this](std::uint64_t base) { bases_.push_back(base); },
                .faulted = [this](const Crash& fault) { on_fault(fault); },
                .accessed = [this](const PageAccess& each) { access(each); }}} {}

// A mapping that cannot be written to is the adapter's own affair.
MapAnswer WatchedAdapter::maps_ring(const Tracee& caller, const MapCall& call) const {
  const os::Fd file = caller.copy_of(call.fd);
  const bool is_image = are_one_file(file.get(), image_.fd());
  const bool is_whole = call.offset == 0 && call.length == 4096 + image_.data().size();
  constexpr std::uint64_t kBoth = PROT_READ | PROT_WRITE;
  return {.is_ring = is_image && is_whole && (call.flags & MAP_SHARED) != 0 &&
                     (call.protection & kBoth) == kBoth};
}

void WatchedAdapter::write(During::Place place) {
  if (written_ == early_.size() || early_[written_].place != place) return;
  if (image_.has_room_for(early_[written_])) image_.apply(early_[written_++]);
}

void WatchedAdapter::access(const PageAccess& access) {
  using Moment = PageAccess::Moment;
  using Place = During::Place;
  const perf_event_mmap_page& page = image_.page();
  const std::uint64_t word = access.offset / 8 * 8;
  const bool is_tail = word == offsetof(perf_event_mmap_page, data_tail);
  if (access.moment == Moment::ReadDone && word == offsetof(perf_event_mmap_page, data_head)) {
    heads_.push_back(page.data_head);
    write(Place::HeadRead);
  } else if (access.moment == Moment::StoreDue) {
    if (is_tail) write(Place::TailStore);
    due_ = {page.data_tail, page.data_head, page.data_tail};
  } else if (access.moment == Moment::StoreDone) {
    const Tails now{due_.before, due_.head, page.data_tail};
    if (page.data_head != now.head) {
      cell_.worsen(CaseOutcome::Garbage, stored_to_head(now.head, page.data_head));
    }
    if (now.after != now.before) tails_.push_back(now.after);
    if (is_plain_ && now.after != now.before) {
      judge_place(now, cell_);
      overwrite_released(image_.data(), now);
    }
    if (is_tail) write(Place::TailStored);
  }
}

void WatchedAdapter::on_fault(const Crash& fault) {
  const std::uint64_t length = 4096 + image_.data().size();
  for (const std::uint64_t base : bases_) {
    const std::string place = place_near(fault.address, base, length);
    if (!fault.has_address || place.empty()) continue;
    cell_.worsen(CaseOutcome::OutOfBounds, fmt::format("signal {} at {}", fault.signal, place));
  }
}

std::string WatchedAdapter::explain(std::span<const Event> delivered, bool died) const {
  if (!tails_.empty() && (died || std::ranges::any_of(delivered, is_of_released_bytes))) {
    return fmt::format("data_tail was moved to {} while its records were still being read",
                       tails_.front());
  }
  if (std::ranges::adjacent_find(heads_, std::not_equal_to{}) == heads_.end()) return {};
  return fmt::format("data_head was read as {}", fmt::join(heads_, ", "));
}

const Early* WatchedAdapter::consumed() const {
  const auto tail = static_cast<std::uint32_t>(image_.page().data_tail);
  for (const Early& each : std::span{early_}.first(written_)) {
    if (static_cast<std::uint32_t>(each.head) == tail) return &each;
  }
  return nullptr;
}

}  // namespace perfring::conformance
