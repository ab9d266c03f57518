#include "perfring/event/opening.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "perfring/event/check.h"

namespace perfring::event::internal {
namespace {

EventError child_failed(int error, const std::string& name) {
  EventError failed{.step = EventError::Step::Child,
                    .io_error = std::error_code(error, std::generic_category()),
                    .asked = "the command " + name,
                    .causes = {}};
  if (error == ENOENT || error == EACCES) {
    failed.causes.push_back({"command",
                             error == ENOENT ? "there is no such program" : "it may not be run",
                             "give a program's path, or a name that is in PATH"});
  }
  if (auto lack = cause_of_lack(error, real_system())) failed.causes.push_back(*std::move(lack));
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

ssize_t read_on(int fd, void* data, std::size_t size) {
  while (true) {
    const ssize_t got = ::read(fd, data, size);
    if (got >= 0 || errno != EINTR) return got;
  }
}

// Runs in the child: nothing but system calls.
[[noreturn]] void run(char* const* arguments, int start, int failed) {
  char byte = 0;
  constexpr int kNotRun = 127;
  if (read_on(start, &byte, 1) != 1) ::_exit(kNotRun);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  static_cast<void>(!::write(failed, &error, sizeof error));
  ::_exit(kNotRun);
}

// Whether another event could be opened where this one cannot.
bool is_of_the_event(int error) {
  return error != EMFILE && error != ENFILE && error != ESRCH && error != ENOMEM;
}

class Opener {
 public:
  Opener(Plan& plan, System& system, bool grouped, Opening& opening)
      : plan_{plan}, system_{system}, grouped_{grouped}, opening_{opening} {}

  // The event that was not opened, and why.
  struct Failed {
    std::size_t event;
    EventError error;
  };

  // If there are `several` tasks, passes over those that have ended since they were listed, unless
  // all have (R8).
  std::optional<Failed> open(Prepare prepare, bool several) {
    std::vector<pid_t> ended;
    std::optional<Failed> last;
    for (Planned& step : plan_.steps) {
      if (std::ranges::find(ended, step.ask.pid) != ended.end()) continue;
      if (excludes(step.event)) exclude_kernel(step.ask.attr);
      if (prepare != nullptr) prepare(step);
      if (grouped_ && step.event != 0) {
        const auto leader = leader_of(step);
        step.ask.group_fd = leader == opening_.steps.end() ? -1 : leader->fd.get();
      }
      auto failed = open(step);
      if (!failed) continue;
      if (!several || failed->error.io_error.value() != ESRCH) return failed;
      ended.push_back(step.ask.pid);
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
      return each.step.event == 0 && each.step.ask.pid == step.ask.pid &&
             each.step.ask.cpu == step.ask.cpu;
    });
  }

  std::optional<Failed> open(Planned& step) {
    const Event& event = plan_.events[step.event];
    Ask asked = step.ask;
    int fd = system_.open(asked);
    const bool may_exclude = is_of_rights(-fd) && event.kernel() == Kernel::IfAllowed &&
                             step.ask.attr.exclude_kernel == 0;
    if (may_exclude) {
      asked = step.ask;
      exclude_kernel(asked.attr);
      const Ask without = asked;
      const int second = system_.open(asked);
      // EINVAL: this event cannot exclude the kernel, so the first answer names the missing right.
      const bool never = second == -EINVAL && is_nothing_without_kernel(without);
      if (!never) step.ask = without, fd = second;
      if (fd >= 0) {
        excluding_.push_back(step.event);
        opening_.notes.push_back(event.name() +
                                 ": without the kernel, which this user may not observe");
      }
    }
    // If the event is refused in the same way without the kernel, its causes are sought without it.
    if (fd < 0 && event.kernel() == Kernel::IfAllowed && is_of_the_event(-fd) &&
        !is_of_rights(-fd) && !is_nothing_without_kernel(step.ask)) {
      asked = step.ask;
      exclude_kernel(asked.attr);
      const Ask without = asked;
      const os::Fd second{system_.open(asked)};
      if (second.get() == fd) step.ask = without;
    }
    if (fd < 0) {
      const auto leader = leader_of(step);
      auto error =
          EventError::at_failure(EventError::Step::Open, -fd, step.ask, event.name(), system_,
                                 leader == opening_.steps.end() ? nullptr : &leader->step.ask);
      // Not beside another cause: the kernel would have been excluded.
      const auto is_left_out = [](const Cause& each) { return each.field == "exclude_kernel"; };
      if (event.kernel() == Kernel::IfAllowed && !std::ranges::all_of(error.causes, is_left_out)) {
        std::erase_if(error.causes, is_left_out);
      }
      if (-fd == EMFILE) {
        error.causes.front().says +=
            ", and " + std::to_string(plan_.steps.size()) + " events are asked for";
      }
      return Failed{step.event, std::move(error)};
    }
    opening_.steps.push_back({step, os::Fd{fd}});
    return std::nullopt;
  }

  Plan& plan_;
  System& system_;
  bool grouped_;
  Opening& opening_;
  std::vector<std::size_t> excluding_;
};

std::string in_one(const std::vector<Event>& events) {
  std::string names;
  for (const Event& each : events) names += (names.empty() ? "" : ", ") + each.name();
  return names.empty() ? "events" : names;
}

// For each event of a request, why it and its fallbacks were given up so far.
using GivenUp = std::vector<std::vector<Cause> >;

// Replaces an event that cannot be opened by its fallback. If it has none, the error names all that
// were tried.
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
  const Event taken = *fallback;
  request.events[event] = taken;
  return true;
}

}  // namespace

std::expected<void, EventError> set_filter(const OpenStep& opened, const Event& event,
                                           System& system) {
  const std::string& filter = event.filter();
  if (filter.empty() || ::ioctl(opened.fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0) {
    return {};
  }
  return std::unexpected(EventError::at_failure(EventError::Step::Filter, errno, opened.step.ask,
                                                event.name(), system));
}

EventError moved_from(EventError::Step step) {
  return {.step = step,
          .io_error = std::make_error_code(std::errc::bad_file_descriptor),
          .asked = "an object that was moved from",
          .causes = {{"", "it has no events any more", "use the object that they were moved to"}}};
}

std::expected<Child, EventError> Child::fork(const std::vector<std::string>& command) {
  Child child;
  if (command.empty()) return std::unexpected(child_failed(ENOENT, "that is empty"));
  child.name_ = command.front();
  child.parent_ = ::getpid();
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> start{-1, -1};
  std::array<int, 2> failed{-1, -1};
  if (::pipe2(start.data(), O_CLOEXEC) != 0) {
    return std::unexpected(child_failed(errno, child.name_));
  }
  child.start_read_ = os::Fd{start[0]};
  child.start_ = os::Fd{start[1]};
  if (::pipe2(failed.data(), O_CLOEXEC) != 0) {
    return std::unexpected(child_failed(errno, child.name_));
  }
  child.failed_ = os::Fd{failed[0]};
  const os::Fd failed_write{failed[1]};
  child.pid_ = ::fork();
  if (child.pid_ < 0) return std::unexpected(child_failed(errno, child.name_));
  if (child.pid_ == 0) {
    ::close(start[1]);
    run(arguments.data(), start[0], failed[1]);
  }
  return child;
}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(parent_, other.parent_);
  std::swap(name_, other.name_);
  std::swap(start_, other.start_);
  std::swap(start_read_, other.start_read_);
  std::swap(failed_, other.failed_);
  std::swap(status_, other.status_);
  return *this;
}

Child::~Child() {
  if (pid_ == 0 || !waits() || parent_ != ::getpid()) return;
  start_ = os::Fd{};
  // It would wait on where another child that has not begun holds a copy of the pipe's end.
  ::kill(pid_, SIGKILL);
  reap(0);
}

void Child::reap(int options) noexcept {
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(pid_, &status, options);
  while (ended < 0 && errno == EINTR);
  if (ended == pid_) status_ = status;
  if (ended < 0) status_ = 0;  // somebody else has waited for it
}

std::expected<void, EventError> Child::start() {
  if (!waits()) return {};
  if (parent_ != ::getpid()) return std::unexpected(child_failed(ECHILD, name_));
  const os::Fd start_read = std::move(start_read_);
  const os::Fd failed = std::move(failed_);
  const char byte = 1;
  int error = 0;
  if (::write(start_.get(), &byte, 1) != 1) error = errno;
  start_ = os::Fd{};
  // The other end closes at execve(), or when the child dies. If the byte is still in the pipe, it
  // died before.
  if (error == 0 && read_on(failed.get(), &error, sizeof error) <= 0) {
    pollfd untaken{.fd = start_read.get(), .events = POLLIN, .revents = 0};
    error = ::poll(&untaken, 1, 0) > 0 && (untaken.revents & POLLIN) != 0 ? ESRCH : 0;
  }
  if (error == 0) return {};
  reap(0);
  return std::unexpected(child_failed(error, name_));
}

std::optional<int> Child::status() {
  if (pid_ != 0 && !status_ && parent_ == ::getpid()) reap(WNOHANG);
  return status_;
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
                         in_one(request.events)));
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
    // Names first: an event that this machine does not know falls back by itself.
    for (std::size_t i = 0; i < request.events.size(); ++i) {
      while (true) {
        const auto attr = request.events[i].attr(system);
        if (attr) break;
        auto error = EventError::of(attr.error(), request.events[i].name());
        if (!fall_back(request, i, error, opening.notes, given_up)) return std::unexpected(error);
      }
    }
    auto made = plan(request, system, pid);
    if (!made) return std::unexpected(EventError::of(made.error(), in_one(request.events)));
    Opener opener{*made, system, grouped, opening};
    auto failed = opener.open(prepare, target.kind == Target::Kind::Process);
    if (!failed) {
      opening.events = std::move(made->events);
      opening.rings = made->rings;
      opening.wakes_itself = made->wakes_itself;
      return opening;
    }
    opening.steps.clear();
    if (!is_of_the_event(failed->error.io_error.value()) ||
        !fall_back(request, failed->event, failed->error, opening.notes, given_up)) {
      return std::unexpected(std::move(failed->error));
    }
  }
}

}  // namespace perfring::event::internal
