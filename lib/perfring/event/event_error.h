#ifndef PERFRING_EVENT_EVENT_ERROR_H_
#define PERFRING_EVENT_EVENT_ERROR_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// EventError: why an event was not opened, and what to change.
//
// The kernel answers EINVAL or EACCES to dozens of different faults, and one fault hides another
// (R2). So the cause is not guessed from the errno: the kernel is asked again, each time with one
// thing put back to its default, and the cause is the one that changes its answer (R1). An event
// that is costly to open (a tracepoint, a probe) is not opened again: dummy stands in for it.
//
// Lifetime: a plain value; the cause was found when the call failed, and does not change later.
// Threads: as any value. Errors: none but std::bad_alloc.
// R: facts that were measured, in the project's harness/RECORD_FACTS.md.

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

// One thing that the kernel objects to.
struct Cause {
  std::string field;   // the uapi's name: "exclude_kernel", "PERF_SAMPLE_RAW", "type"
  std::string says;    // a sentence
  std::string advice;  // what to change
};

struct PERFRING_EXPORT EventError {
  enum class Step : std::uint8_t {
    Check,   // nothing was asked of the system
    Open,    // perf_event_open(2)
    Map,     // mmap(2) of the ring
    Output,  // PERF_EVENT_IOC_SET_OUTPUT, of an event that shares a ring
    Filter,  // PERF_EVENT_IOC_SET_FILTER
    Start,   // PERF_EVENT_IOC_ENABLE
    Child,   // fork(2), execve(2)
    Wait,    // epoll
    Read,    // read(2) of a counter
    Name,    // PERF_EVENT_IOC_ID
    Stop,    // PERF_EVENT_IOC_DISABLE
  };

  Step step = Step::Check;
  std::error_code io_error{};   // 0 for Check
  std::string asked{};          // "the tracepoint sched:sched_switch of CPU 0"
  std::vector<Cause> causes{};  // in the order in which they hide each other

  // Makes the error of a request that the kernel never saw.
  static EventError of(const Finding& finding, std::string asked);
  // Makes the error of a call that has just failed: asks the system for the causes. `leader`: the
  // leader of the group that the event was to join, or the event whose ring it was to write to;
  // without it, the error does not say how the two differ.
  static EventError at_failure(Step step, int error, const Ask& ask, const std::string& name,
                               System& system, const Ask* leader = nullptr);

  // One line: "perf_event_open of ... failed: Permission denied".
  std::string message() const;
  // Three lines for a person, as the errors of the rest of lib: what was asked, what the system
  // said and why, and what to change.
  std::string explain() const;
};

// The causes for which the kernel refuses `ask` with `error`, an errno. A few hundred system calls
// at most; none if the errno says all (EMFILE, ESRCH). Returns no cause for an error of 0 or less.
PERFRING_EXPORT std::vector<Cause> causes_of(const Ask& ask, int error,
                                             System& system = real_system());

namespace internal {

struct Variation {
  enum class Aspect : std::uint8_t { Value, Exclusion, Place, Event };
  std::string field;
  Aspect aspect;
  Ask ask;
};
// Returns `ask` with one thing changed, once for each change that may reveal a cause.
std::vector<Variation> variations(const Ask& ask);

// The cause if descriptors or memory ran out, in any call; nullopt for any other error.
std::optional<Cause> cause_of_lack(int error, System& system);

std::string describe(const Ask& ask, const std::string& name);

// The rest is defined in causes.cc. The machine, the event's name, and its group's leader, if that
// is known.
struct Context {
  const Facts& facts;
  const std::string& name;
  const Ask* leader;
};

// Whether opening and closing it takes 35 ms, a grace period.
bool is_costly(const Ask& ask, const Facts& facts);
// Whether the change turns a sampled event into a counted one.
bool is_without_period(const Variation& each);
// Returns what check() refuses in an event that is only opened: it has no ring yet.
std::vector<Finding> refusals(const Ask& ask, const Context& context, bool with_rights = true);

// The advice for an errno alone.
std::optional<Cause> plain_cause(const Ask& ask, int error, const Facts& facts);
// Returns how a member, which opens alone, differs from the leader of its group.
std::vector<Cause> causes_of_group(const Ask& ask, const Context& context);
// The cause that check() finds in the changed field; and one that fits any field.
std::optional<Cause> checked(const Variation& found, const Ask& ask, int error,
                             const Context& context);
Cause unchecked(const Variation& found, const Ask& ask, int error, const Context& context);
// The cause of any failed call but perf_event_open(2). `first`: the event whose ring the event was
// to write to.
std::optional<Cause> cause_of_step(EventError::Step step, int error, const Ask& ask, System& system,
                                   const Ask* first);

inline bool is_of_rights(int error) noexcept {
  return error == EACCES || error == EPERM;
}

}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_EVENT_ERROR_H_
