#ifndef PERFRING_EVENT_OPENING_H_
#define PERFRING_EVENT_OPENING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The opening of a request, which Sampler and Group share. Internal to them.

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/event_error.h"
#include "perfring/event/request.h"
#include "perfring/os/fd.h"

namespace perfring::event::internal {

// A command that waits for its start.
class Child {
 public:
  Child() = default;
  static std::expected<Child, EventError> fork(const std::vector<std::string>& command);
  Child(Child&& other) noexcept { *this = std::move(other); }
  Child& operator=(Child&& other) noexcept;
  // Ends a child that was not started, and waits for it; one that was started runs on. In a process
  // that fork() made of this one, nothing happens to the child: it belongs to the parent.
  ~Child();

  pid_t pid() const noexcept { return pid_; }
  bool waits() const noexcept { return start_.get() >= 0; }
  // Lets it execve(). Errors: Step::Child, with execve()'s errno, or ESRCH if the child had ended
  // before: the child has then been waited for. ECHILD in a process that fork() made, where
  // status() stays as it was.
  std::expected<void, EventError> start();
  std::optional<int> status();

 private:
  void reap(int options) noexcept;  // waitpid()'s

  pid_t pid_ = 0;
  pid_t parent_ = 0;
  std::string name_;
  os::Fd start_;       // closed without a byte: it ends
  os::Fd start_read_;  // kept, so that no write to start_ raises SIGPIPE
  os::Fd failed_;      // execve()'s errno comes here
  std::optional<int> status_;
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
// `grouped`, each event but the first is a member of the first one's group.
std::expected<Opening, EventError> open_all(Request request, System& system, bool grouped,
                                            Prepare prepare);

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_EVENT_OPENING_H_
