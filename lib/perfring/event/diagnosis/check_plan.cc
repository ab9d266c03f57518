// What all events of a request, together, ask of the machine and of their rings.

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"

namespace perfring::event {
namespace {

using internal::Facts;
using Severity = Finding::Severity;

void check_files(std::size_t needed, const Plan& plan, const Facts& facts,
                 std::vector<Finding>& found) {
  const auto limit = facts.limit("Max open files");
  const std::size_t open = facts.open_files();
  if (limit && needed + open > *limit) {
    found.push_back({Severity::Refused, "fd",
                     std::to_string(plan.steps.size()) + " events need " + std::to_string(needed) +
                         " open files, and the limit is " + std::to_string(*limit) + ", with " +
                         std::to_string(open) + " in use",
                     "raise the limit (ulimit -n), or watch fewer CPUs"});
  }
}

void check_pages(const Request& request, const Plan& plan, const Facts& facts,
                 std::vector<Finding>& found) {
  if (!std::has_single_bit(request.page_count)) {
    found.push_back(
        {Severity::Refused, "page_count",
         "a page count of " + std::to_string(request.page_count) + " is not a power of two",
         "give 1, 2, 4 and so on"});
    return;
  }
  // The most pages that a Ring accepts; on x86-64, the most that the kernel accepts
  // (kernel/events/ring_buffer.c: rb_alloc() at v6.18, which allocates the array of page addresses
  // in one piece).
#if defined(__x86_64__)
  constexpr std::size_t kMost = std::size_t{1} << 30;
#else
  constexpr std::size_t kMost = std::size_t{1} << 31;
#endif
  if (request.page_count > kMost / os::page_size()) {
    found.push_back({Severity::Refused, "page_count",
                     std::to_string(request.page_count) + " pages are more than a ring can have",
                     "ask for at most " + std::to_string(kMost / os::page_size()) + " pages"});
    return;
  }
  constexpr unsigned kIpcLock = 14;  // CAP_IPC_LOCK
  const auto mlock_kb = facts.sysctl("perf_event_mlock_kb");
  const bool is_free =
      facts.is_capable(kIpcLock) || facts.sysctl("perf_event_paranoid").value_or(2) < 0;
  if (is_free || !mlock_kb) return;
  const std::uint64_t cpus = std::max<std::size_t>(facts.cpus("online").size(), 1);
  const auto locked = facts.limit("Max locked memory");
  const std::uint64_t most =
      cpus * static_cast<std::uint64_t>(*mlock_kb) * 1024 + locked.value_or(0);
  const std::uint64_t wanted = plan.rings * (request.page_count + 1) * os::page_size();
  if (wanted > most && facts.limit("Max open files")) {
    found.push_back({Severity::Refused, "page_count",
                     std::to_string(plan.rings) + " rings need " + std::to_string(wanted) +
                         " bytes, and this user may lock " + std::to_string(most),
                     "ask for fewer pages, raise kernel.perf_event_mlock_kb or RLIMIT_MEMLOCK, or "
                     "run with CAP_IPC_LOCK"});
  }
}

// R5: If a thread watches its own waits, they wake it. If it samples only its own time, it gets no
// samples while it waits.
void check_own_wait(const Request& request, const Plan& plan, const Facts& facts,
                    std::vector<Finding>& found) {
  if (watches_its_own_wait(request, plan, facts.system())) {
    const char* const advice =
        plan.wakes_itself ? "watch only other tasks, or expect the wait's own records: they arrive "
                            "after longest_wait, and wake nobody"
        : request.batch != 0 ? "leave batch at 0, so that they wake nobody, or wait in a process "
                               "that is not watched"
                             : "leave watermark and wakeup_events unset, so that they wake nobody, "
                               "or wait in a process that is not watched";
    found.push_back({Severity::Silent, "pid",
                     "the waiting thread is watched: each wait writes records of its own", advice});
  }
  const Target::Kind kind = target_of(request).kind;
  const bool is_of_tasks = kind == Target::Kind::Thread || kind == Target::Kind::Process;
  const bool is_alone =
      is_of_tasks && std::ranges::all_of(plan.steps, [&](const Planned& each) {
        return internal::is_this_thread(each.args) && each.args.pid == plan.steps.front().args.pid;
      });
  const bool is_clock = std::ranges::any_of(plan.steps, [](const Planned& each) {
    const perf_event_attr& attr = each.args.attr;
    return attr.type == PERF_TYPE_SOFTWARE && attr.sample_period != 0 &&
           (attr.config == PERF_COUNT_SW_CPU_CLOCK || attr.config == PERF_COUNT_SW_TASK_CLOCK);
  });
  if (is_alone && is_clock) {
    found.push_back({Severity::Silent, "pid",
                     "only the waiting thread is watched: while it waits, it uses no CPU time, and "
                     "no samples come",
                     "wait from another thread, or with a deadline"});
  }
}

// Counts the breakpoints of one task and CPU (arch/x86/include/asm/hw_breakpoint.h: HBP_NUM at
// v6.18).
void check_breakpoints([[maybe_unused]] const Plan& plan,
                       [[maybe_unused]] std::vector<Finding>& found) {
#if defined(__x86_64__) || defined(__i386__)
  constexpr std::size_t kMost = 4;
  std::size_t count = 0;
  for (const Planned& each : plan.steps) {
    const OpenArgs& first = plan.steps.front().args;
    const bool is_there = each.args.pid == first.pid && each.args.cpu == first.cpu;
    if (is_there && each.args.attr.type == PERF_TYPE_BREAKPOINT) ++count;
  }
  if (count > kMost) {
    found.push_back(
        {Severity::Refused, "type",
         std::to_string(count) + " breakpoints are requested, and x86 has four for each CPU",
         "ask for fewer"});
  }
#endif
}

// R25: a software event that is requested twice.
void check_ids(const Plan& plan, std::vector<Finding>& found) {
  std::vector<std::uint64_t> seen;
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    const auto step = std::ranges::find(plan.steps, i, &Planned::event);
    if (step == plan.steps.end() || !internal::may_get_foreign_id(step->args.attr)) continue;
    if (std::ranges::find(seen, step->args.attr.config) != seen.end()) {
      found.push_back({Severity::Silent, "config",
                       plan.events[i].name() + " is requested twice: since Linux 6.3 the samples "
                                               "of one of them may have the id of the other",
                       "request it once, or in two requests"});
      return;
    }
    seen.push_back(step->args.attr.config);
  }
}

// Checks the events that a Sampler puts into one ring.
void check_rings(const Plan& plan, std::vector<Finding>& found) {
  const OpenArgs& first = plan.steps.front().args;
  for (std::size_t i = 1; i < plan.events.size(); ++i) {
    const auto step = std::ranges::find(plan.steps, i, &Planned::event);
    if (auto none = internal::check_output(step->args, first)) {
      found.push_back(*std::move(none));
      break;
    }
  }
  const bool all_identified = std::ranges::all_of(
      plan.steps, [](const Planned& each) { return internal::identifies_event(each.args.attr); });
  if (plan.events.size() > 1 && !all_identified)
    found.push_back(internal::unknown_events_finding());
}

}  // namespace

namespace internal {

// Looks up all CPUs at once (there may be 10 000), and names them in one sentence.
void check_cpus(const Plan& plan, const Facts& facts, std::vector<Finding>& found) {
  const auto possible = facts.cpus("possible");
  const auto online = facts.cpus("online");
  std::vector<std::uint32_t> impossible;
  std::vector<std::uint32_t> offline;
  bool is_cpu_wide = false;
  for (const Planned& step : plan.steps) {
    if (step.event != 0 || step.args.cpu < 0) continue;
    const auto cpu = static_cast<std::uint32_t>(step.args.cpu);
    is_cpu_wide = step.args.pid == -1 || (step.args.flags & PERF_FLAG_PID_CGROUP) != 0;
    if (!possible.empty() && !std::ranges::binary_search(possible, cpu)) {
      impossible.push_back(cpu);
    } else if (!online.empty() && !std::ranges::binary_search(online, cpu)) {
      offline.push_back(cpu);
    }
  }
  const std::string advice = "choose online CPUs: " + os::to_cpu_list(online);
  if (!impossible.empty()) {
    found.push_back({Severity::Refused, "cpu",
                     "this machine has no CPU " + os::to_cpu_list(impossible), advice});
  }
  if (!offline.empty()) {
    found.push_back({is_cpu_wide ? Severity::Refused : Severity::Silent, "cpu",
                     "offline: CPU " + os::to_cpu_list(offline), advice});
  }
}

void check_plan(const Request& request, const Plan& plan, const Facts& facts,
                std::vector<Finding>& found, bool is_group) {
  check_cpus(plan, facts, found);
  check_breakpoints(plan, found);
  check_files(fds_of(target_of(request), plan, is_group), plan, facts, found);
  if (is_group) return;
  check_pages(request, plan, facts, found);
  check_own_wait(request, plan, facts, found);
  check_ids(plan, found);
  check_rings(plan, found);
}

}  // namespace internal
}  // namespace perfring::event
