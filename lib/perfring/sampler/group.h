#ifndef PERFRING_SAMPLER_GROUP_H_
#define PERFRING_SAMPLER_GROUP_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Group and Counter: events that are counted, not sampled. The events of a group are on the PMU
// together or not at all, so that their counts are comparable, and one call reads them all.
//
//   auto group = Group::open({.events = {hardware(PERF_COUNT_HW_INSTRUCTIONS), cycles},
//                             .target = this_thread()});
//   work();
//   const auto counts = group->read();
//   if ((*counts)[0].ran()) use(*(*counts)[0].scaled());
//
// If there are more events than PMU counters, the kernel lets the events take turns. scaled() is
// then the count extrapolated to the whole time, and nullopt if the event never ran. A group that
// does not fit the PMU at all never runs. Events that never take turns (software events,
// tracepoints, probes) have a scaled() equal to their value, whatever their target is.
//
// Units: values are numbers of events, times are nanoseconds. For several threads and CPUs they are
// sums: over the time of each watched thread, of each CPU, or of a cgroup on each CPU. Neither
// includes what a thread does on CPUs that are not in on().
// Lifetime: move-only; destroying it closes the events. If moved from, it has no events: start(),
// stop() and read() fail with EBADF. Self-assignment has no effect. A child: as for Sampler.
// fork(2): the copy in a forked child reads, starts and stops the parent's events, and closes its
// own descriptors. It can neither start the parent's command (ECHILD) nor wait for it.
// Threads: one at a time.
// Errors: those of Sampler::open(); Read, if a count cannot be read.
// Kernel: kernel/events/core.c: perf_read_group() at v6.18.

#include <sched.h>

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

struct Count {
  std::uint64_t value = 0;
  std::uint64_t enabled = 0;  // how long it was enabled, and could have counted
  std::uint64_t running = 0;  // how long it counted

  bool ran() const noexcept { return running != 0; }
  // The count extrapolated to all the time that it was enabled.
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
  // Opens the events. Ignores the request's settings for rings.
  static std::expected<Group, EventError> open(const Request& request, bool starts = true,
                                               System& system = real_system());

  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;
  ~Group();

  // start() enables all events, or lets the child execve(), which enables them. stop() disables
  // all. A second call has no effect. After an error, some events may be counting and others not;
  // call the other function to end that.
  std::expected<void, EventError> start();
  std::expected<void, EventError> stop();
  // Returns a count for each event of the request, in the request's order.
  std::expected<std::vector<Count>, EventError> read() const;

  std::span<const std::string> notes() const noexcept;
  // As for Sampler.
  pid_t child() const noexcept;
  std::optional<std::expected<int, std::error_code> > child_status() noexcept;
  std::expected<void, std::error_code> signal_child(int number) const noexcept;

 private:
  struct PERFRING_HIDDEN State;
  PERFRING_HIDDEN explicit Group(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

// A group of one event.
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
#endif  // PERFRING_SAMPLER_GROUP_H_
