#ifndef PERFRING_EVENT_OPENING_H_
#define PERFRING_EVENT_OPENING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The opening of a request, which Sampler and Group share. Internal to them.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/event/event_error.h"
#include "perfring/event/request.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring::event::internal {

// A command that waits for its start: os::Command, with errors that name the command. One that was
// started runs on when it is destroyed.
class Child {
 public:
  Child() = default;
  // Errors: Step::Child, with socketpair()'s or fork()'s errno.
  static std::expected<Child, EventError> fork(const std::vector<std::string>& command);

  pid_t pid() const noexcept { return command_.process().id(); }
  bool waits() const noexcept { return command_.waits(); }
  // Errors: Step::Child, with os::Command::start()'s.
  std::expected<void, EventError> start();
  // os::Process's poll() and signal().
  std::optional<std::expected<int, std::error_code> > status() noexcept;
  std::expected<void, std::error_code> signal(int number) const noexcept;

 private:
  std::string name_;
  os::Command command_;
};

struct OpenStep {
  Planned step;
  os::Fd fd;
};

// Everything that is open.
struct Opening {
  std::vector<Event> events;  // as they were opened, fallbacks included
  std::vector<OpenStep> steps;
  std::size_t rings = 0;
  bool wakes_itself = false;  // Plan's
  std::vector<std::string> notes;
  Child child;
};

// Changes an event before it is opened.
using Prepare = void (*)(Planned& step);

// Errors: Step::Filter.
std::expected<void, EventError> set_filter(const OpenStep& opened, const Event& event,
                                           System& system);

// The error of a Sampler or Group that has nothing open.
EventError moved_from(EventError::Step step);

// Opens all steps, or none. When an event is replaced by its fallback, it begins again. With
// `grouped`, they are a Group's, and each event but the first is a member of the first one's group.
std::expected<Opening, EventError> open_all(Request request, System& system, bool grouped,
                                            Prepare prepare);

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_EVENT_OPENING_H_
