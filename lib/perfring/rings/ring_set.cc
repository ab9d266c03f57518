#include "perfring/rings/ring_set.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <variant>

#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/rings_error.h"
#include "perfring/wait/wakeups.h"

namespace perfring {
namespace {

using internal::CpuChange;
using internal::failed;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds kListPeriod{1};

std::string name_of(std::uint32_t cpu) {
  return "a ring on CPU " + std::to_string(cpu);
}

// Returns true if the CPU is not online (any more). ENODEV means that only from perf_event_open(2),
// not from mmap(2).
bool is_offline(const RingsError& error) {
  const auto* const cause = std::get_if<PerfBufferError>(&error.cause);
  return cause != nullptr && cause->kind == PerfBufferError::Kind::OpenError &&
         cause->io_error == std::errc::no_such_device;
}

}  // namespace

RingSet::RingSet(os::Fd map, const RingSetOptions& options, Waiter waiter)
    : map_{std::move(map)},
      options_{options},
      waiter_{std::move(waiter)},
      choice_{options.latency} {
  if (options.timed) {
    timed_merge_ = std::make_unique<Merge<Timed<> > >(options.merge);
  } else {
    merge_ = std::make_unique<Merge<> >(options.merge);
  }
}

// Not inline: OutputRing's are not inline either, and are internal to the library.
RingSet::RingSet(RingSet&&) noexcept = default;
RingSet& RingSet::operator=(RingSet&& other) noexcept {
  // A memberwise self-assignment would lose the vectors, and with them the rings.
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}
RingSet::~RingSet() = default;

std::expected<RingSet, RingsError> RingSet::open(const PerfEventArray& array,
                                                 const RingSetOptions& options) {
  auto map = os::duplicate(array.fd());
  if (!map) {
    return failed("fcntl(F_DUPFD_CLOEXEC)", "the array's map", map.error());
  }
  auto waiter = Waiter::create(options.longest_wait);
  if (!waiter) return std::unexpected(std::move(waiter).error());
  RingSet set{*std::move(map), options, *std::move(waiter)};
  if (options.follows_cpus) {
    // Before the list is read, so that no change in between is missed.
    if (auto uevents = internal::Uevents::open()) {
      set.uevents_ = *std::move(uevents);
      if (auto watched = set.waiter_.add_other(set.uevents_->fd()); !watched) {
        return std::unexpected(std::move(watched).error());
      }
    }
  }
  std::vector<std::uint32_t> cpus = options.cpus;
  if (cpus.empty()) {
    auto online = os::online_cpus();
    if (!online) return std::unexpected(RingsError{std::move(online).error()});
    cpus = *std::move(online);
  }
  // A map entry keeps its event alive as long as the map exists.
  struct EntriesCleanup {
    const RingSet* of;
    ~EntriesCleanup() {
      if (of == nullptr) return;
      for (const OutputRing& each : of->rings_) {
        static_cast<void>(os::bpf_map_delete(of->map_.get(), each.cpu()));
      }
    }
  } cleanup{&set};
  for (const std::uint32_t cpu : cpus) {
    auto added = set.add(cpu);
    // A CPU that has just gone offline is not an error.
    const bool has_gone = !added && options.cpus.empty() && is_offline(added.error());
    if (!added && !has_gone) return std::unexpected(std::move(added).error());
  }
  cleanup.of = nullptr;
  set.list_due_ = Clock::now() + kListPeriod;
  return set;
}

std::expected<void, RingsError> RingSet::add(std::uint32_t cpu) {
  if (running_) return failed("add", name_of(cpu), EBUSY);
  if (ring_of(cpu) != nullptr) return failed("add", name_of(cpu), EEXIST);
  if (map_.get() < 0) return failed("add", name_of(cpu), EBADF);
  const bool can_be_quiet = choice_.latency() > nanoseconds{0};
  auto ring = OutputRing::open(cpu,
                               {.page_count = options_.page_count,
                                .wakeup_watermark = can_be_quiet ? 0 : options_.wakeup_watermark,
                                .timed = options_.timed,
                                .counts_lost = true},
                               can_be_quiet);
  if (!ring) return std::unexpected(std::move(ring).error());
  // All calls that can throw come before the map entry is filled.
  rings_.reserve(rings_.size() + 1);
  if (merge_) merge_->reserve_one();
  if (timed_merge_) timed_merge_->reserve_one();
  if (auto watched = waiter_.add(ring->fd()); !watched) return watched;  // C2
  const auto updated =
      os::bpf_map_update(map_.get(), cpu, static_cast<std::uint32_t>(ring->event(entries_)));
  if (!updated) {
    waiter_.remove(ring->fd());
    return std::unexpected(RingsError{PerfBufferError::at_failure(
        PerfBufferError::Kind::IOError, updated.error(), cpu, options_.page_count)});
  }
  const auto add_to = [&](auto& merge) { merge.add(ring->mapping(), os::page_size()); };
  if (merge_) add_to(*merge_);
  if (timed_merge_) add_to(*timed_merge_);
  rings_.push_back(*std::move(ring));
  return {};
}

internal::OutputRing* RingSet::ring_of(std::uint32_t cpu) noexcept {
  const auto found =
      std::ranges::find_if(rings_, [&](const OutputRing& each) { return each.cpu() == cpu; });
  return found == rings_.end() ? nullptr : &*found;
}

bool RingSet::is_wanted(std::uint32_t cpu) const noexcept {
  return options_.cpus.empty() || std::ranges::find(options_.cpus, cpu) != options_.cpus.end();
}

std::uint64_t RingSet::monotonic_ns() noexcept {
  return os::monotonic_ns();
}

std::optional<std::uint64_t> RingSet::lost() const noexcept {
  std::uint64_t all = 0;
  for (const OutputRing& each : rings_) {
    const auto its = each.lost();
    if (!its) return std::nullopt;
    all += *its;
  }
  return all;
}

std::optional<std::uint64_t> RingSet::lost(std::size_t ring) const noexcept {
  if (ring >= rings_.size()) __builtin_trap();
  return rings_[ring].lost();
}

bool RingSet::has_unread() const {
  return std::ranges::any_of(rings_,
                             [](const OutputRing& each) { return each.share().unread() != 0; });
}

void RingSet::end_round(const RoundScope& round) noexcept {
  running_ = false;
  if (round.has_remaining) waiter_.look_again();
  due_ = Waiter::kNoDeadline;
  if (choice_.latency() > nanoseconds{0}) {
    const Wakeups wakeups = choice_.looked(round.delivered, round.began);
    if (wakeups != entries_) fill_entries(wakeups);
    due_ = choice_.due();
  }
  if (round.unreleased) {
    const std::uint64_t hour = 3'600'000'000'000;
    const std::uint64_t in_force = timed_merge_ ? timed_merge_->slack() : merge_->slack();
    const nanoseconds slack{std::min(in_force, hour)};
    due_ = std::min(due_, round.began + slack);
  }
}

void RingSet::fill_entries(Wakeups wakeups) noexcept {
  entries_ = wakeups;
  for (const OutputRing& each : rings_) {
    if (!each.is_online) continue;
    // On failure the ring keeps its old event: it wakes too often, or only after longest_wait.
    static_cast<void>(os::bpf_map_update(map_.get(), each.cpu(),
                                         static_cast<std::uint32_t>(each.event(wakeups))));
  }
}

std::expected<void, RingsError> RingSet::before_flush(Flush what) {
  if (what != Flush::Complete || running_) return {};
  if (!barrier_) barrier_ = WriterBarrier::create();
  return barrier_->wait();
}

Woken RingSet::wait(Clock::time_point deadline) {
  if (running_) return Woken::Timeout;
  if (is_empty()) return Woken::Stop;
  const Woken woken = waiter_.wait(std::min({deadline, due_, list_due()}));
  follow();
  return woken;
}

RingSet::Clock::time_point RingSet::next_deadline() const noexcept {
  return std::min({waiter_.next_deadline(), due_, list_due()});
}

RingSet::Clock::time_point RingSet::list_due() const noexcept {
  constexpr Clock::time_point kNever = Waiter::kNoDeadline;  // a copy, or its address is exported
  return options_.follows_cpus ? list_due_ : kNever;
}

std::expected<void, RingsError> RingSet::cpu_changed(std::uint32_t cpu, bool online) {
  if (running_) return failed("cpu_changed", name_of(cpu), EBUSY);
  return change({cpu, online});
}

std::expected<void, RingsError> RingSet::change(CpuChange change) {
  OutputRing* const ring = ring_of(change.cpu);
  waiter_.look_again();
  if (!change.online) {
    if (ring != nullptr) ring->is_online = false;
    return {};
  }
  if (ring == nullptr)
    return is_wanted(change.cpu) ? add(change.cpu) : std::expected<void, RingsError>{};
  if (auto revived = ring->revive(); !revived) return revived;
  const auto updated =
      os::bpf_map_update(map_.get(), change.cpu, static_cast<std::uint32_t>(ring->event(entries_)));
  if (updated) {
    ring->is_online = true;  // not before: a CPU with a dead event in its entry is tried again
    return {};
  }
  return std::unexpected(RingsError{PerfBufferError::at_failure(
      PerfBufferError::Kind::IOError, updated.error(), change.cpu, options_.page_count)});
}

void RingSet::follow() {
  if (!options_.follows_cpus) return;
  const auto follows = [this](CpuChange each) {
    auto changed = change(each);
    if (!changed && !is_offline(changed.error())) {
      hotplug_error_ = std::move(changed).error();
    }
  };
  bool missed = false;
  if (waiter_.take_other() && uevents_) missed = !uevents_->read(follows);
  const Clock::time_point now = Clock::now();
  if (!missed && now < list_due_) return;
  list_due_ = now + kListPeriod;
  const auto online = os::online_cpus();
  if (!online) return;
  for (const OutputRing& each : rings_) {
    const bool is_there = std::ranges::find(*online, each.cpu()) != online->end();
    if (each.is_online && !is_there) follows({each.cpu(), false});
  }
  for (const std::uint32_t cpu : *online) {
    const OutputRing* const ring = ring_of(cpu);
    const bool is_known = ring != nullptr ? ring->is_online && !missed : !is_wanted(cpu);
    if (!is_known) follows({cpu, true});
  }
}

}  // namespace perfring
