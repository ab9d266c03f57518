#include "perfring/event/group.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "perfring/event/opening.h"
#include "perfring/record/read_values.h"

namespace perfring::event {
namespace {

using internal::OpenStep;

}  // namespace

struct Group::State {
  internal::Opening opening;

  EventError failed(EventError::Step step, int error, const OpenStep& at) const {
    return EventError::at_failure(step, error, at.step.ask, opening.events[at.step.event].name(),
                                  real_system());
  }
  std::expected<void, EventError> for_leaders(unsigned long call) const {
    for (const OpenStep& each : opening.steps) {
      if (each.step.event != 0) continue;
      if (::ioctl(each.fd.get(), call, PERF_IOC_FLAG_GROUP) != 0) {
        return std::unexpected(failed(EventError::Step::Start, errno, each));
      }
    }
    return {};
  }
};

std::expected<Group, EventError> Group::open(const Request& request, bool starts, System& system) {
  auto opening = internal::open_all(request, system, /*grouped=*/true, internal::only_counts);
  if (!opening) return std::unexpected(std::move(opening).error());
  auto state = std::make_unique<State>();
  state->opening = *std::move(opening);
  for (const OpenStep& each : state->opening.steps) {
    const Event& event = state->opening.events[each.step.event];
    if (auto set = internal::set_filter(each, event, system); !set) {
      return std::unexpected(std::move(set).error());
    }
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
  if (state_->opening.child.waits()) return state_->opening.child.start();
  return state_->for_leaders(PERF_EVENT_IOC_ENABLE);
}

std::expected<void, EventError> Group::stop() {
  if (!state_) return std::unexpected(internal::moved_from(EventError::Step::Start));
  return state_->for_leaders(PERF_EVENT_IOC_DISABLE);
}

std::expected<std::vector<Count>, EventError> Group::read() const {
  if (!state_) return std::unexpected(internal::moved_from(EventError::Step::Read));
  const std::size_t events = state_->opening.events.size();
  std::vector<Count> counts(events);
  // nr, both times, and value and id of each member.
  std::vector<std::byte> room((3 + 2 * events) * sizeof(std::uint64_t));
  for (const OpenStep& each : state_->opening.steps) {
    if (each.step.event != 0) continue;
    const ssize_t got = ::read(each.fd.get(), room.data(), room.size());
    const auto values =
        got < 0 ? std::nullopt
                : record::ReadValues::over(Bytes{room.data(), static_cast<std::size_t>(got)},
                                           each.step.ask.attr.read_format);
    // 0 bytes: the kernel could not schedule a pinned event (perf_read() at v6.18).
    if (!values) {
      return std::unexpected(
          state_->failed(EventError::Step::Read, got < 0 ? errno : ENODATA, each));
    }
    for (std::size_t i = 0; i < std::min(events, values->size()); ++i) {
      counts[i].value += (*values)[i].value;
      counts[i].enabled += values->time_enabled().value_or(0);
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
std::optional<int> Group::child_status() {
  return state_ ? state_->opening.child.status() : std::nullopt;
}

}  // namespace perfring::event
