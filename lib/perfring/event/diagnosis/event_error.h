#ifndef PERFRING_EVENT_DIAGNOSIS_EVENT_ERROR_H_
#define PERFRING_EVENT_DIAGNOSIS_EVENT_ERROR_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// EventError: why an event was not opened, and what to change.
//
// The kernel returns EINVAL or EACCES for dozens of different faults, and one fault hides another
// (R2). So EventError does not guess the cause from the errno. It asks the kernel again, each time
// with one thing reset to its default: the cause is the thing that changes the kernel's answer
// (R1). It does not reopen an event that is costly to open (a tracepoint, a probe), but opens
// `dummy` instead.
//
// Lifetime: a plain value. The cause was found when the call failed, and does not change later.
// Threads: as for any value.
// Errors: only std::bad_alloc.
// R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <cerrno>
#include <cstdint>
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
    Check,   // before any system call
    Open,    // perf_event_open(2)
    Map,     // mmap(2) of the ring
    Output,  // PERF_EVENT_IOC_SET_OUTPUT, for an event that shares a ring
    Filter,  // PERF_EVENT_IOC_SET_FILTER
    Start,   // PERF_EVENT_IOC_ENABLE
    Child,   // fork(2), execve(2)
    Wait,    // epoll
    Read,    // read(2) from a counter
    Name,    // PERF_EVENT_IOC_ID
    Stop,    // PERF_EVENT_IOC_DISABLE
  };

  Step step = Step::Check;
  std::error_code io_error{};   // 0 for Check
  std::string request{};        // "the tracepoint sched:sched_switch of CPU 0"
  std::vector<Cause> causes{};  // in the order in which they hide each other

  // Returns the error for a request that the kernel never saw.
  static EventError of(const Finding& finding, std::string request);
  // Returns the error for a call that has just failed, after asking the system for the causes.
  // `leader` is the leader of the group that the event was to join, or the event that owns the ring
  // to which it was to write. Without it, the error does not explain how the two differ.
  static EventError at_failure(Step step, int error, const OpenArgs& args, const std::string& name,
                               System& system, const OpenArgs* leader = nullptr);

  // One line: "perf_event_open of ... failed: Permission denied".
  std::string message() const;
  // Three lines for a person, like the other errors of lib: the request, the system's answer and
  // its reason, and what to change.
  std::string explain() const;
};

// Returns the causes for which the kernel refuses `args` with `error`, an errno. Makes a few
// hundred system calls at most, and none if the errno is clear by itself (EMFILE, ESRCH). Returns
// no cause if `error` is 0 or less.
PERFRING_EXPORT std::vector<Cause> causes_of(const OpenArgs& args, int error,
                                             System& system = real_system());

namespace internal {

struct Variation {
  enum class Aspect : std::uint8_t { Value, Exclusion, Place, Event };
  std::string field;
  Aspect aspect;
  OpenArgs args;
};
// Returns copies of `args`, each with one change that may reveal a cause.
std::vector<Variation> variations(const OpenArgs& args);

// Returns the cause if descriptors or memory ran out, in any call; nullopt for any other error.
std::optional<Cause> cause_of_shortage(int error, System& system);

std::string describe(const OpenArgs& args, const std::string& name);

// The rest is defined in causes.cc. A Context has the machine, the event's name, and the leader of
// its group, if known.
struct Context {
  const Facts& facts;
  const std::string& name;
  const OpenArgs* leader;
};

// Returns true if opening and closing the event takes 35 ms, a grace period.
bool is_costly(const OpenArgs& args, const Facts& facts);
// Returns true if the change turns a sampled event into a counted one.
bool removes_period(const Variation& each);
// Returns what check() refuses in an event that is only opened and has no ring yet.
std::vector<Finding> refusals(const OpenArgs& args, const Context& context,
                              bool with_rights = true);

// Returns the advice for an errno alone.
std::optional<Cause> plain_cause(const OpenArgs& args, int error, const Facts& facts);
// Returns the differences between a member, which can be opened alone, and the leader of its group.
std::vector<Cause> causes_of_group(const OpenArgs& args, const Context& context);
// Returns the cause that check() finds in the changed field; and a cause that fits any field.
std::optional<Cause> cause_by_check(const Variation& found, const OpenArgs& args, int error,
                                    const Context& context);
Cause cause_without_check(const Variation& found, const OpenArgs& args, int error,
                          const Context& context);
// Returns the cause of a failed call other than perf_event_open(2). `first` is the event that owns
// the ring to which this event was to write.
std::optional<Cause> cause_of_step(EventError::Step step, int error, const OpenArgs& args,
                                   System& system, const OpenArgs* first);

inline bool is_permission_error(int error) noexcept {
  return error == EACCES || error == EPERM;
}

}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_DIAGNOSIS_EVENT_ERROR_H_
