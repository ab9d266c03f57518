#ifndef PERFRING_EVENT_REQUEST_H_
#define PERFRING_EVENT_REQUEST_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Request: the events to observe, and where. plan() lists what a Sampler will open for it.
//
//   const Request request{.events = {changes({.switches = true})}, .target = this_process()};
//   if (const auto needed = fds_needed(request)) ...
//
// To the kernel, a pid is one thread (R8), and both inherit (R9) and an event for all tasks need a
// CPU. So one target may take several events.
//
//   target                        events for each Event     rings         events in a Group
//   thread                        1                         1             1
//   process                       one per thread            1 per thread  one per thread
//   the same with children        one per thread and CPU    1 per CPU     one per thread
//   child                         one per CPU               1 per CPU     1
//   any of these on() some CPUs   one per thread and CPU    1 per CPU     one per thread and CPU
//   system, cgroup                one per CPU               1 per CPU     one per CPU
//
// A Group has no rings, so its events on a task need no CPU. On chosen CPUs it opens one more event
// for each thread and CPU, as a clock (R31).
//
// The events of one CPU, or of one thread, write to one ring (PERF_EVENT_IOC_SET_OUTPUT). The CPUs
// are those in on(), or those that are online when the request is opened. CPUs that come online
// later are not followed (a RingSet follows them).
//
// Units: page counts are data pages of the machine's page size; watermarks are bytes.
// Lifetime, threads: values.
// Errors: plan() returns a Finding for a name, a process or a CPU that cannot exist, for a request
// without events, and for an unknown kind of target. A CPU that is named twice counts once. The
// words of a command and the folder of a cgroup end at their first NUL.
// Kernel: kernel/events/core.c: perf_mmap() and perf_event_set_output() at v6.18.
// R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

struct Target {
  enum class Kind : std::uint8_t { Thread, Process, Child, System, Cgroup };
  Kind kind = Kind::Process;
  pid_t pid = 0;                          // for Thread and Process; 0: the calling one
  std::vector<std::string> command = {};  // for Child: a program, found by PATH, and its arguments
  std::string path = {};                  // for Cgroup: its folder
  bool children = false;  // whether to include tasks that the target starts from now on
  std::vector<std::uint32_t> cpus = {};  // empty: all that are online, or wherever the task runs

  [[nodiscard]] Target on(std::vector<std::uint32_t> some) const {
    Target copy = *this;
    copy.cpus = std::move(some);
    return copy;
  }
  [[nodiscard]] Target and_children() const {
    Target copy = *this;
    copy.children = true;
    return copy;
  }
};

inline Target this_thread() {
  return {.kind = Target::Kind::Thread};
}
// The threads that exist now. and_children() adds those that they start.
inline Target this_process() {
  return {.kind = Target::Kind::Process};
}
inline Target thread(pid_t tid) {
  return {.kind = Target::Kind::Thread, .pid = tid};
}
inline Target process(pid_t pid) {
  return {.kind = Target::Kind::Process, .pid = pid};
}
// A command and what it starts, from its execve() on (R23).
inline Target child(std::vector<std::string> command) {
  return {.kind = Target::Kind::Child, .command = std::move(command), .children = true};
}
inline Target system() {
  return {.kind = Target::Kind::System};
}
// A folder of cgroup v2, or of the perf_event hierarchy of cgroup v1.
inline Target cgroup(std::string folder) {
  return {.kind = Target::Kind::Cgroup, .path = std::move(folder)};
}

struct Request {
  std::vector<Event> events;
  // nullopt: the system if an event occurs in any task (a tracepoint, a probe), otherwise this
  // process.
  std::optional<Target> target = std::nullopt;
  // The data pages of each ring: a power of two.
  std::size_t page_count = 16;
  // The kernel wakes a waiter after this many bytes. With 0, each record wakes it, including
  // side-band records (R3). However, if the waits themselves write records (switches of this
  // process or of all tasks, the tracepoints in R27), half a ring wakes the waiter, because each
  // wait would end at once otherwise (R5). Events that set a watermark themselves (adjust():
  // watermark, wakeup_events) keep it. A ring has the watermark of its first event (R20).
  std::uint32_t batch = 0;
  // The longest duration of any wait. Records below the batch are delivered by then.
  std::chrono::nanoseconds longest_wait = std::chrono::milliseconds{100};
};

// One event to open.
struct Planned {
  std::size_t event = 0;  // index in Request::events
  std::size_t ring = 0;
  OpenArgs args;
};

struct Plan {
  std::vector<Event> events;  // they own the strings in `steps`
  std::vector<Planned> steps;
  std::size_t rings = 0;
  bool wakes_itself = false;  // the waits write records, so only half a ring wakes (R5)
};

// Lists what a Sampler will open. For a child or a cgroup, `pid` is the child's pid or the folder's
// descriptor; a negative one is refused.
PERFRING_EXPORT std::expected<Plan, Finding> plan(const Request& request,
                                                  System& system = real_system(), pid_t pid = 0);
// Returns the number of descriptors that a Sampler opens for the request.
PERFRING_EXPORT std::expected<std::size_t, Finding> fds_needed(const Request& request,
                                                               System& system = real_system());
// Returns true if each wait of this thread writes records to its own rings (R5).
PERFRING_EXPORT bool watches_its_own_wait(const Request& request, const Plan& plan,
                                          System& system = real_system());
// Returns the request's target, or the default target of its events.
PERFRING_EXPORT Target target_of(const Request& request);

namespace internal {
// Lists what a Group opens: as plan(), but the events only count, and follow a task to each CPU.
std::expected<Plan, Finding> plan_group(const Request& request, System& system, pid_t pid = 0);
bool is_this_thread(const OpenArgs& args) noexcept;
// R31: Returns true if the event's enabled time also passes while the task is on other CPUs.
bool is_of_a_task_on_a_cpu(const OpenArgs& args) noexcept;
// Returns the number of descriptors that a Sampler, until its child starts, or a Group keeps open.
std::size_t fds_of(const Target& target, const Plan& plan, bool is_group);
}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_REQUEST_H_
