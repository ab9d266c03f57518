#ifndef PERFRING_EVENT_GROUP_H_
#define PERFRING_EVENT_GROUP_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Group and Counter: events that are counted, not sampled. A group's events are on the PMU together
// or not at all, so that their counts are comparable, and are read by one call.
//
//   auto group = Group::open({.events = {hardware(PERF_COUNT_HW_INSTRUCTIONS), cycles},
//                             .target = this_thread()});
//   work();
//   const auto counts = group->read();
//   if ((*counts)[0].ran()) use(*(*counts)[0].scaled());
//
// If there are more events than the PMU has counters, the kernel lets them take turns: scaled()
// is the count as if the event had run all the time, and nullopt if it never ran. A group that does
// not fit the PMU at all never runs. Events that take no turns (software events, tracepoints,
// probes) have a scaled() that is their value, whatever they are counted of.
//
// Units: values are events, times nanoseconds. Over several threads and CPUs they are sums: of
// the time of each thread that is watched, of each CPU, or of a cgroup on each CPU. What a
// thread does on other CPUs than those of on() counts for neither.
// Lifetime: move-only; events are closed with it. Moved from, it has none: start(), stop() and
// read() fail with EBADF. Assigned to itself, it is as it was. A child: as Sampler's. fork(2): a
// forked child's copy reads, starts and stops the parent's events, and closes its own descriptors;
// it can neither start the parent's command (ECHILD) nor wait for it. Threads: one at a time.
// Errors: those of Sampler::open(); Read, if a count cannot be read. Kernel: kernel/events/core.c:
// perf_read_group() at v6.18.

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "perfring/event/event_error.h"
#include "perfring/event/request.h"
#include "perfring/export.h"

namespace perfring::event {

struct Count {
  std::uint64_t value = 0;
  std::uint64_t enabled = 0;  // how long it was enabled, and could have counted
  std::uint64_t running = 0;  // how long it counted

  bool ran() const noexcept { return running != 0; }
  // As if it had run all the time that it was enabled.
  std::optional<std::uint64_t> scaled() const noexcept {
    if (running == 0) return std::nullopt;
    if (running >= enabled) return value;
    const double all =
        static_cast<double>(value) * static_cast<double>(enabled) / static_cast<double>(running);
    return all < 0x1p64 ? static_cast<std::uint64_t>(all) : ~std::uint64_t{0};
  }
};

class PERFRING_EXPORT Group {
 public:
  // Ignores the request's settings of rings.
  static std::expected<Group, EventError> open(const Request& request, bool starts = true,
                                               System& system = real_system());

  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;
  ~Group();

  // Enables all, or lets the child execve(), which enables them; disables all. A second call does
  // nothing. After an error, some of them may count and others not: call the other to put an end to
  // that.
  std::expected<void, EventError> start();
  std::expected<void, EventError> stop();
  // A count for each event of the request, in its order.
  std::expected<std::vector<Count>, EventError> read() const;

  std::span<const std::string> notes() const noexcept;
  // As Sampler's.
  pid_t child() const noexcept;
  std::optional<std::expected<int, std::error_code> > child_status() noexcept;
  std::expected<void, std::error_code> signal_child(int number) const noexcept;

 private:
  struct PERFRING_HIDDEN State;
  PERFRING_HIDDEN explicit Group(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

// A group of one.
class Counter {
 public:
  static std::expected<Counter, EventError> open(const Event& event,
                                                 std::optional<Target> target = std::nullopt) {
    auto group = Group::open({.events = {event}, .target = std::move(target)});
    if (!group) return std::unexpected(std::move(group).error());
    return Counter{*std::move(group)};
  }
  std::expected<Count, EventError> read() const {
    const auto counts = group_.read();
    if (!counts) return std::unexpected(counts.error());
    return counts->front();
  }
  std::span<const std::string> notes() const noexcept { return group_.notes(); }

 private:
  explicit Counter(Group group) noexcept : group_{std::move(group)} {}
  Group group_;
};

}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_GROUP_H_
