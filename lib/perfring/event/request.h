#ifndef PERFRING_EVENT_REQUEST_H_
#define PERFRING_EVENT_REQUEST_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Request: the events to observe, and their target. plan() lists what a Sampler will open for it.
//
//   const Request request{.events = {changes({.switches = true})}, .target = this_process()};
//   if (const auto needed = fds_needed(request)) ...
//
// The kernel's pid is a thread (R8), its inherit needs a CPU (R9), and so does an event of all
// tasks: so a target takes several events.
//
//   target                        events for each Event     rings         of a Group
//   thread                        1                         1             1
//   process                       one per thread            1 per thread  one per thread
//   the same with children        one per thread and CPU    1 per CPU     one per thread
//   child                         one per CPU               1 per CPU     1
//   any of these on() some CPUs   one per thread and CPU    1 per CPU     one per thread and CPU
//   system, cgroup                one per CPU               1 per CPU     one per CPU
//
// A Group has no rings, so that its events of a task need no CPU. On chosen CPUs it opens one more
// for each thread and CPU, as their clock (R31).
// Events of one CPU, or one thread, write to one ring (PERF_EVENT_IOC_SET_OUTPUT). CPUs are those
// of on(), or those online when the request is opened: one that comes online later is not followed
// (a RingSet follows it).
//
// Units: page counts are data pages of the machine's page size, watermarks bytes.
// Lifetime, threads: values.
// Errors: plan() returns a Finding for a name, a process or a CPU that cannot exist, for a request
// without events and for an unknown kind of target. A CPU that is named twice counts once. A
// command's words and a cgroup's folder end at their first NUL.
// Kernel: kernel/events/core.c: perf_mmap() and perf_event_set_output() at v6.18.
// R: facts that were measured, in the project's harness/RECORD_FACTS.md.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

struct Target {
  enum class Kind : std::uint8_t { Thread, Process, Child, System, Cgroup };
  Kind kind = Kind::Process;
  pid_t pid = 0;                          // of Thread and Process; 0: this one
  std::vector<std::string> command = {};  // of Child: a program, looked for in PATH, and arguments
  std::string path = {};                  // of Cgroup: its folder
  bool children = false;                  // and what they start from now on
  std::vector<std::uint32_t> cpus = {};   // empty: all that are online, or wherever the task runs

  [[nodiscard]] Target on(std::vector<std::uint32_t> some) const {
    Target said = *this;
    said.cpus = std::move(some);
    return said;
  }
  [[nodiscard]] Target and_children() const {
    Target said = *this;
    said.children = true;
    return said;
  }
};

inline Target this_thread() {
  return {.kind = Target::Kind::Thread};
}
// The threads that exist now; and_children() adds those that they start.
inline Target this_process() {
  return {.kind = Target::Kind::Process};
}
inline Target thread(pid_t tid) {
  return {.kind = Target::Kind::Thread, .pid = tid};
}
inline Target process(pid_t pid) {
  return {.kind = Target::Kind::Process, .pid = pid};
}
// A command, and what it starts, from its execve() on (R23).
inline Target child(std::vector<std::string> command) {
  return {.kind = Target::Kind::Child, .command = std::move(command), .children = true};
}
inline Target system() {
  return {.kind = Target::Kind::System};
}
// A folder of cgroup v2, or of v1's perf_event hierarchy.
inline Target cgroup(std::string folder) {
  return {.kind = Target::Kind::Cgroup, .path = std::move(folder)};
}

struct Request {
  std::vector<Event> events;
  // nullopt: the system if an event occurs in any task (a tracepoint, a probe), else this process.
  std::optional<Target> target = std::nullopt;
  // The data pages of each ring: a power of two.
  std::size_t page_count = 16;
  // The kernel wakes a waiter once this many bytes have come. 0: by each record, side-band ones too
  // (R3); but by half a ring if its own waits write records (switches of its own or of all tasks,
  // the tracepoints of R27), since each wait would end at once otherwise (R5). Events that set it
  // themselves (adjust(): watermark, wakeup_events) keep it: the ring's watermark is that of the
  // first event (R20).
  std::uint32_t batch = 0;
  // No wait lasts longer: what is below the batch is seen then.
  std::chrono::nanoseconds longest_wait = std::chrono::milliseconds{100};
};

// One event that is opened.
struct Planned {
  std::size_t event = 0;  // of Request::events
  std::size_t ring = 0;
  Ask ask;
};

struct Plan {
  std::vector<Event> events;  // which own the strings in `steps`
  std::vector<Planned> steps;
  std::size_t rings = 0;
  bool wakes_itself = false;  // but for half a ring and longest_wait (R5, Request::batch)
};

// For a child or a cgroup, `pid` is the child's, or the folder's descriptor; one below 0 is
// refused.
PERFRING_EXPORT std::expected<Plan, Finding> plan(const Request& request,
                                                  System& system = real_system(), pid_t pid = 0);
// The number of descriptors that a Sampler of the request opens.
PERFRING_EXPORT std::expected<std::size_t, Finding> fds_needed(const Request& request,
                                                               System& system = real_system());
// Whether each wait of this thread writes records to its own rings (R5).
PERFRING_EXPORT bool watches_its_own_wait(const Request& request, const Plan& made,
                                          System& system = real_system());
// The request's target, or, without one, the events' own.
PERFRING_EXPORT Target target_of(const Request& request);

namespace internal {
// What a Group opens for it: as plan(), but events that only count, and follow a task to each CPU.
std::expected<Plan, Finding> plan_group(const Request& request, System& system, pid_t pid = 0);
bool is_this_thread(const Ask& ask) noexcept;
// R31: whether the time for which the event is enabled passes on other CPUs than its own, too.
bool is_of_a_task_on_a_cpu(const Ask& ask) noexcept;
// The number of descriptors that a Sampler of it, until its child starts, or a Group has open.
std::size_t fds_of(const Target& target, const Plan& made, bool is_group);
}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_REQUEST_H_
