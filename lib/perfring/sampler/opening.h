#ifndef PERFRING_SAMPLER_OPENING_H_
#define PERFRING_SAMPLER_OPENING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// How Sampler and Group open a request. Internal to them.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring::event::internal {

// A command that waits to be started: os::Command, with errors that name the command. A command
// that was started continues to run when this is destroyed.
class Child {
 public:
  Child() = default;
  // Errors: Step::Child, with the errno of socketpair() or fork().
  static std::expected<Child, EventError> fork(const std::vector<std::string>& command);

  pid_t pid() const noexcept { return command_.process().id(); }
  bool is_waiting() const noexcept { return command_.is_waiting(); }
  // Errors: Step::Child, with the error of os::Command::start().
  std::expected<void, EventError> start();
  // poll() and signal() of os::Process.
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
  std::vector<Event> events;  // as opened, including fallbacks
  std::vector<OpenStep> steps;
  std::size_t rings = 0;
  bool wakes_itself = false;  // as in Plan
  std::vector<std::string> notes;
  Child child;
};

// Changes an event before it is opened.
using Prepare = void (*)(Planned& step);

// Errors: Step::Filter.
std::expected<void, EventError> set_filter(const OpenStep& opened, const Event& event,
                                           System& system);

// Returns the error of a Sampler or Group that has nothing open.
EventError moved_from(EventError::Step step);

// Opens all steps, or none. Starts again when it replaces an event with its fallback. With
// `grouped`, the steps are for a Group: each event except the first joins the group of the first.
std::expected<Opening, EventError> open_all(Request request, System& system, bool grouped,
                                            Prepare prepare);

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_SAMPLER_OPENING_H_
