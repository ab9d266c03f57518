#include "perfring/sampler/sampler.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <limits>
#include <utility>
#include <variant>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"
#include "perfring/record/fields.h"
#include "perfring/record/layout.h"
#include "perfring/record/layouts.h"
#include "perfring/record/read_values.h"
#include "perfring/record/view.h"
#include "perfring/ring/cursor.h"
#include "perfring/sampler/opening.h"
#include "perfring/sampler/time_merge.h"

namespace perfring::event {
namespace {

using internal::Opening;
using internal::OpenStep;
using internal::TimeMerge;
using Step = EventError::Step;

EventError failed(Step step, int error, const OpenStep& at, const std::vector<Event>& events,
                  System& system, const OpenArgs* first = nullptr) {
  return EventError::at_failure(step, error, at.step.args, events[at.step.event].name(), system,
                                first);
}

// Returns the event of a record, identified by the layout that decoded the record.
std::size_t event_of(const record::Any& record, const std::vector<record::Layout>& layouts) {
  const record::Layout* const layout = std::visit(
      [](const auto& view) -> const record::Layout* {
        if constexpr (requires { view.layout(); }) return &view.layout();
        return nullptr;
      },
      record);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (layout == &layouts[i]) return i;
  }
  return Delivered::kNoEvent;
}

// PERF_FORMAT_LOST exists since Linux 6.0. (The uapi header may be older than the kernel.)
bool counts_lost(System& system) {
  OpenArgs args = internal::dummy();
  args.attr.read_format = PERF_FORMAT_LOST;
  const os::Fd fd{system.open(args)};
  return fd.get() >= 0;
}

}  // namespace

struct Sampler::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (is_own()) return;
    // fork() did not copy the mappings: other memory may be there by now (see OutputEvent).
    for (os::Mapping& each : mappings) each.forget();
  }
  // Returns true if this process opened it.
  bool is_own() const noexcept { return ::getpid() == opener; }

  const pid_t opener = ::getpid();
  Opening opening;
  std::vector<os::Mapping> mappings;
  std::vector<record::Layout> layouts;  // one for each event
  std::vector<record::Layouts::Entry> ids;
  std::vector<Opened> opened;
  TimeMerge merge;
  std::optional<Waiter> waiter;
  Counts counts;
  std::size_t page_count = 0;
  std::size_t ended = 0;         // opening.steps before this index have ended
  std::size_t last_watched = 0;  // the last step added to the waiter because of E7

  // E7. Polls events, which clears a ring's report: `took_report` is then set.
  bool has_ended(bool& took_report);
  std::expected<void, EventError> map(System& system);
  std::expected<void, EventError> finish(const OpenStep& each, System& system);
  std::expected<void, EventError> name_ids(System& system);
  const record::Layout* stray() const;
  std::optional<Delivered> delivered(const TimeMerge::Front& front);
  // The events of one ring have the same clock (perf_event_set_output()).
  bool is_monotonic() const noexcept {
    return attr().use_clockid != 0 && attr().clockid == CLOCK_MONOTONIC;
  }
  void look() { look(now()); }
  void look(std::uint64_t at) {
    merge.look(at, [this] { return now(); });
  }
  // Returns the clock's time. If the clock cannot be read, returns a time later than any record's.
  std::uint64_t now() const noexcept {
    return attr().use_clockid != 0 ? os::clock_ns(attr().clockid)
                                   : std::numeric_limits<std::uint64_t>::max();
  }
  const perf_event_attr& attr() const noexcept { return opening.steps.front().step.args.attr; }
  // Returns when the records that are held for their order may be released.
  Clock::time_point due() const {
    constexpr std::uint64_t kLatest = std::numeric_limits<std::int64_t>::max();
    // A wait until then would cause the next records, and so on. longest_wait is soon enough.
    auto at = opening.wakes_itself ? std::nullopt : merge.due();
    if (at && !is_monotonic()) {
      const std::uint64_t lag = *at - std::min(*at, now());
      at = os::monotonic_ns() + std::min(lag, kLatest);
    }
    if (!at) return Waiter::kNoDeadline;
    return Clock::time_point{
        std::chrono::nanoseconds{static_cast<std::int64_t>(std::min(*at, kLatest))}};
  }
};

// Maps the first event of each ring, and lets the other events output to that ring.
std::expected<void, EventError> Sampler::State::map(System& system) {
  // 0, which mmap() refuses, if the number of bytes would overflow.
  const bool fits = page_count < std::numeric_limits<std::size_t>::max() / os::page_size();
  const std::size_t length = fits ? os::page_size() * (1 + page_count) : 0;
  std::vector<int> mapped(opening.rings, -1);
  for (const OpenStep& each : opening.steps) {
    if (each.step.args.attr.write_backward != 0) {
      return std::unexpected(EventError::of(
          {.field = "write_backward",
           .says = "the ring would be written backwards, and a Sampler reads forwards",
           .advice = "leave it out, or use an OverwritableRing"},
          opening.events[each.step.event].name()));
    }
    int& ring = mapped[each.step.ring];
    if (ring >= 0) {
      if (const auto set = os::perf_event_set_output(each.fd.get(), ring); !set) {
        return std::unexpected(failed(Step::Output, set.error().value(), each, opening.events,
                                      system, &opening.steps.front().step.args));
      }
      continue;
    }
    auto mapping = os::Mapping::map(each.fd.get(), length);
    if (!mapping) {
      return std::unexpected(
          failed(Step::Map, mapping.error().value(), each, opening.events, system));
    }
    const auto cursor = Cursor<>::over(mapping->bytes(), os::page_size());
    if (!cursor) {
      return std::unexpected(failed(Step::Map, EINVAL, each, opening.events, system));
    }
    ring = each.fd.get();
    merge.add(*cursor);
    mappings.push_back(*std::move(mapping));
    if (auto watched = waiter->add(ring); !watched) {
      return std::unexpected(
          failed(Step::Wait, watched.error().io_error().value(), each, opening.events, system));
    }
  }
  return {};
}

std::expected<void, EventError> Sampler::State::finish(const OpenStep& each, System& system) {
  if (auto set = internal::set_filter(each, opening.events[each.step.event], system); !set) {
    return set;
  }
  std::uint64_t id = 0;
  if (::ioctl(each.fd.get(), PERF_EVENT_IOC_ID, &id) != 0) {
    return std::unexpected(failed(Step::Name, errno, each, opening.events, system));
  }
  opened[each.step.event].attr = each.step.args.attr;
  opened[each.step.event].ids.push_back(id);
  ids.push_back({id, &layouts[each.step.event]});
  return {};
}

// Returns the layout for samples with the id of somebody else's event: that of the only event to
// which they can belong; null if there are several or none.
const record::Layout* Sampler::State::stray() const {
  const auto may_be = [](const Opened& each) { return internal::may_get_foreign_id(each.attr); };
  if (std::ranges::count_if(opened, may_be) != 1) return nullptr;
  return &layouts[static_cast<std::size_t>(std::ranges::find_if(opened, may_be) - opened.begin())];
}

std::expected<void, EventError> Sampler::State::name_ids(System& system) {
  layouts.resize(opening.events.size());
  for (const Event& each : opening.events) opened.push_back({each.name(), {}, {}});
  for (const OpenStep& each : opening.steps) {
    layouts[each.step.event] = record::Layout{each.step.args.attr};
    if (auto done = finish(each, system); !done) return done;
  }
  if (layouts.size() == 1) {
    merge.decode_by(layouts.front());
    return {};
  }
  std::ranges::sort(ids, {}, &record::Layouts::Entry::id);
  const auto found = record::Layouts::over(ids, stray());
  if (!found) {
    return std::unexpected(
        EventError::of(internal::unknown_events_finding(), opening.events.front().name()));
  }
  merge.decode_by(*found);
  return {};
}

// kernel/events/core.c: perf_poll(), is_event_hup() at v6.18: an event hangs up for good when its
// task and all tasks that inherited it have ended. Their last records are written by then.
bool Sampler::State::has_ended(bool& took_report) {
  for (; ended < opening.steps.size(); ++ended) {
    const OpenStep& each = opening.steps[ended];
    const OpenArgs& args = each.step.args;
    if (args.pid == -1 || (args.flags & PERF_FLAG_PID_CGROUP) != 0) return false;
    pollfd event{.fd = each.fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&event, 1, 0) < 0) return false;
    took_report = took_report || (event.revents & POLLIN) != 0;
    if ((event.revents & POLLHUP) != 0) continue;
    // The waiter must report its end. (If it cannot be added, longest_wait ends the wait.)
    if (std::exchange(last_watched, ended) != ended) static_cast<void>(waiter->add(each.fd.get()));
    return false;
  }
  return true;
}

// Returns nullopt if the record was not requested.
std::optional<Delivered> Sampler::State::delivered(const TimeMerge::Front& front) {
  const std::size_t event = event_of(*front.record, layouts);
  if (event < opening.events.size() &&
      opening.events[event].leaves_out(record::header_of(*front.record).type)) {
    return std::nullopt;
  }
  ++counts.delivered;
  if (front.late) ++counts.late;
  if (front.ahead) ++counts.ahead;
  if (std::holds_alternative<record::Malformed>(*front.record)) ++counts.malformed;
  return Delivered{*front.record, front.bytes, event, front.time, front.late};
}

std::expected<Sampler, EventError> Sampler::open(const Request& request, bool starts,
                                                 System& system) {
  const auto with_lost = [](Planned& step) { step.args.attr.read_format |= PERF_FORMAT_LOST; };
  auto opening =
      internal::open_all(request, system, /*grouped=*/false,
                         counts_lost(system) ? static_cast<internal::Prepare>(with_lost) : nullptr);
  if (!opening) return std::unexpected(std::move(opening).error());
  auto state = std::make_unique<State>();
  state->opening = *std::move(opening);
  state->page_count = request.page_count;
  auto waiter = Waiter::create(request.longest_wait);
  if (!waiter) {
    return std::unexpected(failed(Step::Wait, waiter.error().io_error().value(),
                                  state->opening.steps.front(), state->opening.events, system));
  }
  state->waiter = *std::move(waiter);
  if (auto mapped = state->map(system); !mapped) return std::unexpected(std::move(mapped).error());
  if (auto named = state->name_ids(system); !named) {
    return std::unexpected(std::move(named).error());
  }
  Sampler sampler{std::move(state)};
  if (starts) {
    if (auto started = sampler.start(); !started)
      return std::unexpected(std::move(started).error());
  }
  return sampler;
}

bool Sampler::is_empty() const noexcept {
  return !state_ || !state_->is_own();
}

std::expected<void, EventError> Sampler::start() {
  if (is_empty()) return std::unexpected(internal::moved_from(Step::Start));
  if (state_->opening.child.is_waiting()) return state_->opening.child.start();
  for (const OpenStep& each : state_->opening.steps) {
    if (const auto enabled = os::perf_event_enable(each.fd.get()); !enabled) {
      return std::unexpected(failed(Step::Start, enabled.error().value(), each,
                                    state_->opening.events, real_system()));
    }
  }
  return {};
}

Sampler::Sampler(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}
Sampler::Sampler(Sampler&& other) noexcept = default;
Sampler& Sampler::operator=(Sampler&& other) noexcept = default;
Sampler::~Sampler() = default;

Woken Sampler::wait(Clock::time_point deadline) {
  if (is_empty()) return Woken::Stop;
  state_->merge.release();
  return state_->waiter->wait(std::min(deadline, state_->due()));
}

void Sampler::stop() noexcept {
  if (!is_empty()) state_->waiter->stop();
}
int Sampler::fd() const noexcept {
  return is_empty() ? -1 : state_->waiter->fd();
}
Sampler::Clock::time_point Sampler::next_deadline() const noexcept {
  return is_empty() ? Clock::time_point::min()
                    : std::min(state_->waiter->next_deadline(), state_->due());
}

bool Sampler::begin_round() {
  if (is_empty()) return false;
  state_->look();
  return true;
}

std::optional<Delivered> Sampler::next_in_round(bool all) {
  while (const auto front = state_->merge.next(all)) {
    if (auto one = state_->delivered(*front)) return one;
  }
  return std::nullopt;
}

void Sampler::end_round() noexcept {
  state_->merge.release();
}

std::optional<Delivered> Sampler::next(Clock::time_point deadline) {
  if (is_empty()) return std::nullopt;
  TimeMerge& merge = state_->merge;
  while (true) {
    if (auto one = next_in_round(false)) return one;
    merge.release();
    // Before the look, or else records that come between the two would be missed at the end. (If
    // has_ended() clears a report, the look finds its records.)
    bool took_report = false;
    const std::uint64_t now = os::monotonic_ns();
    const std::uint64_t looked_at = state_->is_monotonic() ? now : state_->now();
    const bool is_over = Clock::time_point{std::chrono::nanoseconds{now}} >= deadline ||
                         state_->waiter->is_stopped() || state_->has_ended(took_report);
    state_->look(looked_at);
    if (auto one = next_in_round(false)) return one;
    // At the deadline, no record is held for its order any longer (E1).
    if (is_over) return next_in_round(true);
    wait(deadline);
  }
}

bool Sampler::ended() {
  if (is_empty()) return true;
  bool took_report = false;
  const bool all = state_->has_ended(took_report);
  if (took_report) state_->waiter->look_again();
  return all;
}

std::span<const Opened> Sampler::events() const noexcept {
  if (is_empty()) return {};
  return state_->opened;
}
std::span<const std::string> Sampler::notes() const noexcept {
  if (is_empty()) return {};
  return state_->opening.notes;
}
const Counts& Sampler::counts() const noexcept {
  static const Counts kNone;
  return is_empty() ? kNone : state_->counts;
}
std::size_t Sampler::rings() const noexcept {
  return is_empty() ? 0 : state_->mappings.size();
}

std::uint64_t Sampler::lost() const {
  std::uint64_t lost = 0;
  if (is_empty()) return lost;
  for (const OpenStep& each : state_->opening.steps) {
    const std::uint64_t format = each.step.args.attr.read_format;
    std::array<std::byte, 64> room;
    const ssize_t length = ::read(each.fd.get(), room.data(), room.size());
    if (length <= 0 || (format & PERF_FORMAT_LOST) == 0) continue;
    const auto values =
        record::ReadValues::over(Bytes{room.data(), static_cast<std::size_t>(length)}, format);
    if (values) lost += (*values)[0].lost.value_or(0);
  }
  return lost;
}

pid_t Sampler::child() const noexcept {
  return is_empty() ? 0 : state_->opening.child.pid();
}
std::optional<std::expected<int, std::error_code> > Sampler::child_status() noexcept {
  return is_empty() ? std::nullopt : state_->opening.child.status();
}
std::expected<void, std::error_code> Sampler::signal_child(int number) const noexcept {
  return is_empty() ? internal::Child{}.signal(number) : state_->opening.child.signal(number);
}

}  // namespace perfring::event
