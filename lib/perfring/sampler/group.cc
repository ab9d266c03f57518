#include "perfring/sampler/group.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "perfring/os/fd.h"
#include "perfring/perf_event.h"
#include "perfring/record/read_values.h"
#include "perfring/sampler/opening.h"

namespace perfring::event {
namespace {

using internal::OpenStep;

// Reads an event's values with read(2) into `room`. The error is an errno.
std::expected<record::ReadValues, int> read_values(const os::Fd& fd, std::uint64_t format,
                                                   std::span<std::byte> room) {
  const ssize_t length = ::read(fd.get(), room.data(), room.size());
  if (length < 0) return std::unexpected(errno);
  const auto values =
      record::ReadValues::over(Bytes{room.data(), static_cast<std::size_t>(length)}, format);
  // 0 bytes: the kernel could not schedule a pinned event (perf_read() at v6.18).
  if (!values) return std::unexpected(ENODATA);
  return *values;
}

// Returns an event that runs whenever the leader's task is on the leader's CPU. The leader's own
// enabled time does not tell how long that is (R31).
OpenArgs clock_of(const OpenArgs& leader) {
  OpenArgs clock = internal::dummy();
  clock.pid = leader.pid;
  clock.cpu = leader.cpu;
  clock.attr.disabled = 1;
  clock.attr.inherit = leader.attr.inherit;
  clock.attr.enable_on_exec = leader.attr.enable_on_exec;
  clock.attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
  return clock;
}

}  // namespace

struct Group::State {
  internal::Opening opening;
  std::vector<os::Fd> clocks;  // for the opening.steps that need one

  // A clock runs no longer than its leader: it is enabled after the leader, and read and disabled
  // before it. Otherwise counts of events that never took turns would be scaled up a little.
  std::expected<void, EventError> open_clocks(System& system);
  // Returns how long the leader was enabled on its CPU; nullopt if the leader itself tells.
  std::expected<std::optional<std::uint64_t>, EventError> read_clock(std::size_t step) const;
  std::expected<void, EventError> for_clocks(unsigned long call, EventError::Step step) const {
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      if (clocks[i].get() < 0) continue;
      if (::ioctl(clocks[i].get(), call, 0) != 0) {
        return std::unexpected(failed(step, errno, opening.steps[i]));
      }
    }
    return {};
  }

  EventError failed(EventError::Step step, int error, const OpenStep& at) const {
    return EventError::at_failure(step, error, at.step.args, opening.events[at.step.event].name(),
                                  real_system());
  }
  std::expected<void, EventError> for_leaders(unsigned long call, EventError::Step step) const {
    for (const OpenStep& each : opening.steps) {
      if (each.step.event != 0) continue;
      if (::ioctl(each.fd.get(), call, PERF_IOC_FLAG_GROUP) != 0) {
        return std::unexpected(failed(step, errno, each));
      }
    }
    return {};
  }
};

std::expected<void, EventError> Group::State::open_clocks(System& system) {
  clocks.resize(opening.steps.size());
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const Planned& step = opening.steps[i].step;
    if (step.event != 0 || !internal::is_of_a_task_on_a_cpu(step.args)) continue;
    OpenArgs clock = clock_of(step.args);
    const int fd = system.open(clock);
    if (fd == -ESRCH) continue;  // the task has ended meanwhile
    if (fd < 0) {
      return std::unexpected(EventError::at_failure(EventError::Step::Open, -fd,
                                                    clock_of(step.args), "dummy", system));
    }
    clocks[i] = os::Fd{fd};
  }
  return {};
}

std::expected<std::optional<std::uint64_t>, EventError> Group::State::read_clock(
    std::size_t step) const {
  if (clocks[step].get() < 0) return std::nullopt;
  std::array<std::byte, 2 * sizeof(std::uint64_t)> room;  // value and time
  const auto values = read_values(clocks[step], PERF_FORMAT_TOTAL_TIME_RUNNING, room);
  if (!values) {
    return std::unexpected(failed(EventError::Step::Read, values.error(), opening.steps[step]));
  }
  return values->time_running();
}

std::expected<Group, EventError> Group::open(const Request& request, bool starts, System& system) {
  auto opening = internal::open_all(request, system, /*grouped=*/true, /*prepare=*/nullptr);
  if (!opening) return std::unexpected(std::move(opening).error());
  auto state = std::make_unique<State>();
  state->opening = *std::move(opening);
  for (const OpenStep& each : state->opening.steps) {
    const Event& event = state->opening.events[each.step.event];
    if (auto set = internal::set_filter(each, event, system); !set) {
      return std::unexpected(std::move(set).error());
    }
  }
  if (auto ticking = state->open_clocks(system); !ticking) {
    return std::unexpected(std::move(ticking).error());
  }
  Group group{std::move(state)};
  if (starts) {
    if (auto started = group.start(); !started) return std::unexpected(std::move(started).error());
  }
  return group;
}

Group::Group(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}
Group::Group(Group&& other) noexcept = default;
Group& Group::operator=(Group&& other) noexcept = default;
Group::~Group() = default;

std::expected<void, EventError> Group::start() {
  if (!state_) return std::unexpected(internal::moved_from(EventError::Step::Start));
  if (state_->opening.child.is_waiting()) return state_->opening.child.start();
  constexpr auto kStep = EventError::Step::Start;
  if (auto started = state_->for_leaders(PERF_EVENT_IOC_ENABLE, kStep); !started) return started;
  return state_->for_clocks(PERF_EVENT_IOC_ENABLE, kStep);
}

std::expected<void, EventError> Group::stop() {
  if (!state_) return std::unexpected(internal::moved_from(EventError::Step::Stop));
  constexpr auto kStep = EventError::Step::Stop;
  if (auto stopped = state_->for_clocks(PERF_EVENT_IOC_DISABLE, kStep); !stopped) return stopped;
  return state_->for_leaders(PERF_EVENT_IOC_DISABLE, kStep);
}

std::expected<std::vector<Count>, EventError> Group::read() const {
  if (!state_) return std::unexpected(internal::moved_from(EventError::Step::Read));
  const std::size_t events = state_->opening.events.size();
  std::vector<Count> counts(events);
  // nr, both times, and the value and id of each member.
  std::vector<std::byte> room((3 + 2 * events) * sizeof(std::uint64_t));
  for (std::size_t step = 0; step < state_->opening.steps.size(); ++step) {
    const OpenStep& each = state_->opening.steps[step];
    if (each.step.event != 0) continue;
    const auto enabled = state_->read_clock(step);
    if (!enabled) return std::unexpected(enabled.error());
    const auto values = read_values(each.fd, each.step.args.attr.read_format, room);
    if (!values) {
      return std::unexpected(state_->failed(EventError::Step::Read, values.error(), each));
    }
    for (std::size_t i = 0; i < std::min(events, values->size()); ++i) {
      counts[i].value += (*values)[i].value;
      counts[i].enabled += enabled->value_or(values->time_enabled().value_or(0));
      counts[i].running += values->time_running().value_or(0);
    }
  }
  return counts;
}

std::span<const std::string> Group::notes() const noexcept {
  if (!state_) return {};
  return state_->opening.notes;
}
pid_t Group::child() const noexcept {
  return state_ ? state_->opening.child.pid() : 0;
}
std::optional<std::expected<int, std::error_code> > Group::child_status() noexcept {
  return state_ ? state_->opening.child.status() : std::nullopt;
}
std::expected<void, std::error_code> Group::signal_child(int number) const noexcept {
  return state_ ? state_->opening.child.signal(number) : internal::Child{}.signal(number);
}

}  // namespace perfring::event
