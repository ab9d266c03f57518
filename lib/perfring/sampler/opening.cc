#include "perfring/sampler/opening.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"

namespace perfring::event::internal {
namespace {

EventError child_failed(int error, const std::string& name) {
  EventError failed{.step = EventError::Step::Child,
                    .io_error = std::error_code(error, std::generic_category()),
                    .request = "the command " + name,
                    .causes = {}};
  if (error == ENOENT || error == EACCES) {
    failed.causes.push_back({"command",
                             error == ENOENT ? "there is no such program" : "it may not be run",
                             "give a program's path, or a name that is in PATH"});
  }
  if (auto lack = cause_of_shortage(error, real_system()))
    failed.causes.push_back(*std::move(lack));
  if (error == EAGAIN) {
    failed.causes.push_back({"command", "this user may have no more processes",
                             "raise the limit (ulimit -u), or that of the cgroup (pids.max)"});
  }
  if (error == ESRCH) {
    failed.causes.push_back({"command", "its process ended before it was started",
                             "see child_status() for how it ended, and open again"});
  }
  return failed;
}

// Returns true if another event might open where this one did not.
bool is_about_event(int error) {
  return error != EMFILE && error != ENFILE && error != ESRCH && error != ENOMEM;
}

class Opener {
 public:
  Opener(Plan& plan, System& system, bool grouped, Opening& opening)
      : plan_{plan}, system_{system}, grouped_{grouped}, opening_{opening} {}

  // The event that was not opened, and the error.
  struct Failed {
    std::size_t event;
    EventError error;
  };

  // Opens all steps. With `several` tasks, skips tasks that have ended since they were listed,
  // unless all have ended (R8).
  std::optional<Failed> open(Prepare prepare, bool several) {
    std::vector<pid_t> ended;
    std::optional<Failed> last;
    for (Planned& step : plan_.steps) {
      if (std::ranges::find(ended, step.args.pid) != ended.end()) continue;
      if (excludes(step.event)) exclude_kernel(step.args.attr);
      if (prepare != nullptr) prepare(step);
      if (grouped_ && step.event != 0) {
        const auto leader = leader_of(step);
        step.args.group_fd = leader == opening_.steps.end() ? -1 : leader->fd.get();
      }
      auto failed = open(step);
      if (!failed) continue;
      if (!several || failed->error.io_error.value() != ESRCH) return failed;
      ended.push_back(step.args.pid);
      last = std::move(failed);
    }
    if (!last) return std::nullopt;
    for (std::size_t i = 0; i < plan_.events.size(); ++i) {
      const auto is_of_it = [i](const OpenStep& each) { return each.step.event == i; };
      if (std::ranges::none_of(opening_.steps, is_of_it)) return last;
    }
    return std::nullopt;
  }

 private:
  bool excludes(std::size_t event) const {
    return std::ranges::find(excluding_, event) != excluding_.end();
  }
  std::vector<OpenStep>::const_iterator leader_of(const Planned& step) const {
    return std::ranges::find_if(std::as_const(opening_.steps), [&](const OpenStep& each) {
      return each.step.event == 0 && each.step.args.pid == step.args.pid &&
             each.step.args.cpu == step.args.cpu;
    });
  }

  std::optional<Failed> open(Planned& step) {
    const Event& event = plan_.events[step.event];
    OpenArgs tried = step.args;
    int fd = system_.open(tried);
    os::Fd opened{fd};  // owns it, in case memory runs out below
    const bool may_exclude = is_permission_error(-fd) && event.kernel() == Kernel::IfAllowed &&
                             step.args.attr.exclude_kernel == 0;
    if (may_exclude) {
      tried = step.args;
      exclude_kernel(tried.attr);
      const OpenArgs without = tried;
      const int second = system_.open(tried);
      os::Fd opened_second{second};
      // EINVAL: this event cannot exclude the kernel, so the first answer names the missing
      // privilege.
      const bool never = second == -EINVAL && needs_kernel(without);
      if (!never) step.args = without, fd = second, opened = std::move(opened_second);
      if (fd >= 0) {
        excluding_.push_back(step.event);
        opening_.notes.push_back(event.name() +
                                 ": without the kernel, which this user may not observe");
      }
    }
    // If the event is refused in the same way without the kernel, look for the causes without the
    // kernel.
    if (fd < 0 && event.kernel() == Kernel::IfAllowed && is_about_event(-fd) &&
        !is_permission_error(-fd) && !needs_kernel(step.args)) {
      tried = step.args;
      exclude_kernel(tried.attr);
      const OpenArgs without = tried;
      const os::Fd second{system_.open(tried)};
      if (second.get() == fd) step.args = without;
    }
    if (fd < 0) {
      const auto leader = leader_of(step);
      auto error =
          EventError::at_failure(EventError::Step::Open, -fd, step.args, event.name(), system_,
                                 leader == opening_.steps.end() ? nullptr : &leader->step.args);
      // Not in addition to another cause: the kernel would have been excluded.
      const auto is_left_out = [](const Cause& each) { return each.field == "exclude_kernel"; };
      if (event.kernel() == Kernel::IfAllowed && !std::ranges::all_of(error.causes, is_left_out)) {
        std::erase_if(error.causes, is_left_out);
      }
      if (-fd == EMFILE) {
        error.causes.front().says +=
            ", and " + std::to_string(plan_.steps.size()) + " events are requested";
      }
      return Failed{step.event, std::move(error)};
    }
    opening_.steps.push_back({step, std::move(opened)});
    return std::nullopt;
  }

  Plan& plan_;
  System& system_;
  bool grouped_;
  Opening& opening_;
  std::vector<std::size_t> excluding_;
};

std::string joined_names(const std::vector<Event>& events) {
  std::string names;
  for (const Event& each : events) names += (names.empty() ? "" : ", ") + each.name();
  return names.empty() ? "events" : names;
}

// For each event of a request, why it and its fallbacks were refused so far.
using GivenUp = std::vector<std::vector<Cause> >;

// Replaces an event that cannot be opened by its fallback. Without a fallback, adds everything that
// was tried to the error and returns false.
bool fall_back(Request& request, std::size_t event, EventError& error,
               std::vector<std::string>& notes, GivenUp& given_up) {
  const Event* const fallback = request.events[event].fallback();
  if (fallback == nullptr) {
    std::ranges::copy(given_up[event], std::back_inserter(error.causes));
    return false;
  }
  const std::string& name = request.events[event].name();
  const std::string why = error.causes.empty() ? error.message() : error.causes.front().says;
  const std::string advice = error.causes.empty() ? "" : error.causes.front().advice;
  notes.push_back(name + ": " + why + "; " + fallback->name() + " instead");
  given_up[event].push_back({error.causes.empty() ? "" : error.causes.front().field,
                             "before it, " + name + " was refused: " + why, advice});
  const Event replacement = *fallback;
  request.events[event] = replacement;
  return true;
}

}  // namespace

std::expected<void, EventError> set_filter(const OpenStep& opened, const Event& event,
                                           System& system) {
  const std::string& filter = event.filter();
  if (filter.empty() || ::ioctl(opened.fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0) {
    return {};
  }
  return std::unexpected(EventError::at_failure(EventError::Step::Filter, errno, opened.step.args,
                                                event.name(), system));
}

EventError moved_from(EventError::Step step) {
  return {.step = step,
          .io_error = std::make_error_code(std::errc::bad_file_descriptor),
          .request = "an object that was moved from",
          .causes = {{"", "it no longer has events", "use the object that they were moved to"}}};
}

std::expected<Child, EventError> Child::fork(const std::vector<std::string>& command) {
  if (command.empty()) return std::unexpected(child_failed(ENOENT, "that is empty"));
  auto forked = os::Command::fork(command, [] { return 0; });
  if (!forked) return std::unexpected(child_failed(forked.error().value(), command.front()));
  Child child;
  child.name_ = command.front();
  child.command_ = *std::move(forked);
  return child;
}

std::expected<void, EventError> Child::start() {
  if (const auto started = command_.start(); !started) {
    return std::unexpected(child_failed(started.error().value(), name_));
  }
  command_.process().keep_running();
  return {};
}

std::optional<std::expected<int, std::error_code> > Child::status() noexcept {
  return command_.process().poll();
}

std::expected<void, std::error_code> Child::signal(int number) const noexcept {
  return command_.process().signal(number);
}

std::expected<Opening, EventError> open_all(Request request, System& system, bool grouped,
                                            Prepare prepare) {
  const Target target = target_of(request);
  request.target = target;
  Opening opening;
  os::Fd folder;
  pid_t pid = 0;
  if (target.kind == Target::Kind::Cgroup) {
    folder = os::Fd{::open(target.path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY)};
    if (folder.get() < 0) {
      return std::unexpected(
          EventError::of({.field = "cgroup",
                          .says = target.path + ": " + std::generic_category().message(errno),
                          .advice = "give a folder below /sys/fs/cgroup"},
                         joined_names(request.events)));
    }
    pid = folder.get();
  }
  if (target.kind == Target::Kind::Child) {
    auto child = Child::fork(target.command);
    if (!child) return std::unexpected(std::move(child).error());
    opening.child = *std::move(child);
    pid = opening.child.pid();
  }
  GivenUp given_up{request.events.size()};
  while (true) {
    // Names first: an event that does not exist on this machine is replaced without opening
    // anything.
    for (std::size_t i = 0; i < request.events.size(); ++i) {
      while (true) {
        const auto attr = request.events[i].attr(system);
        if (attr) break;
        auto error = EventError::of(attr.error(), request.events[i].name());
        if (!fall_back(request, i, error, opening.notes, given_up)) return std::unexpected(error);
      }
    }
    auto planned = grouped ? plan_group(request, system, pid) : plan(request, system, pid);
    if (!planned)
      return std::unexpected(EventError::of(planned.error(), joined_names(request.events)));
    Opener opener{*planned, system, grouped, opening};
    auto failed = opener.open(prepare, target.kind == Target::Kind::Process);
    if (!failed) {
      opening.events = std::move(planned->events);
      opening.rings = planned->rings;
      opening.wakes_itself = planned->wakes_itself;
      return opening;
    }
    opening.steps.clear();
    if (!is_about_event(failed->error.io_error.value()) ||
        !fall_back(request, failed->event, failed->error, opening.notes, given_up)) {
      return std::unexpected(std::move(failed->error));
    }
  }
}

}  // namespace perfring::event::internal
