#include "perfring/event/diagnosis/check.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"

namespace perfring::event {
namespace {

using internal::Case;
using internal::Facts;
using Severity = Finding::Severity;

std::optional<EventKind> kind_of(const OpenArgs& args, const Facts& facts) {
  switch (args.attr.type) {
    case PERF_TYPE_SOFTWARE:
      return args.attr.config == PERF_COUNT_SW_DUMMY ? EventKind::Changes : EventKind::Software;
    case PERF_TYPE_TRACEPOINT:
      return EventKind::Tracepoint;
    case PERF_TYPE_HARDWARE:
      return EventKind::Hardware;
    case PERF_TYPE_HW_CACHE:
      return EventKind::Cache;
    case PERF_TYPE_RAW:
      return EventKind::Raw;
    case PERF_TYPE_BREAKPOINT:
      return EventKind::Breakpoint;
    default:
      break;
  }
  if (facts.pmu_type("kprobe") == args.attr.type) return EventKind::Kprobe;
  if (facts.pmu_type("uprobe") == args.attr.type) return EventKind::Uprobe;
  return facts.pmu_of(args.attr.type) ? std::optional{EventKind::Pmu} : std::nullopt;
}

void check_all(const OpenArgs& args, const std::string& name, const Facts& facts,
               std::vector<Finding>& found, bool counts, bool with_rights) {
  const Case each{args, facts, kind_of(args, facts), name, found, counts};
  internal::check_attr(each);
  internal::check_probe(each);
  if (with_rights) internal::check_rights(each);
  internal::check_silent(each);
}

// Puts the refusals first, and keeps the order within each severity.
void sort(std::vector<Finding>& found) {
  std::vector<Finding> sorted;
  for (const Severity severity : {Severity::Refused, Severity::Silent}) {
    std::ranges::copy_if(found, std::back_inserter(sorted),
                         [&](const Finding& each) { return each.severity == severity; });
  }
  found = std::move(sorted);
}

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

bool needs_kernel(const OpenArgs& args) noexcept {
  return is_kernel_address(args.attr) || args.attr.type > PERF_TYPE_BREAKPOINT;
}

void check_place(const Case& each) {
  const OpenArgs& args = each.args;
  if (args.cpu < -1 || (args.pid == -1 && args.cpu == -1)) {
    each.add_refusal("cpu", "an event of all tasks needs a CPU", "open one for each CPU");
  }
  if (args.pid < -1)
    each.add_refusal("pid", "there is no such process", "give one that is running");
  const bool is_cgroup = (args.flags & PERF_FLAG_PID_CGROUP) != 0;
  if (is_cgroup && args.cpu == -1) {
    each.add_refusal("cpu", "an event of a cgroup needs a CPU", "open one for each CPU");
  }
  if (!is_cgroup && args.pid > 0 && !each.facts.is_running(args.pid)) {
    each.add_refusal("pid", "there is no process " + std::to_string(args.pid),
                     "give one that is running");
  }
  if (args.attr.inherit != 0 && args.cpu == -1 && !each.counts) {
    each.add_refusal("inherit", kNotMapped, kPlaced);
  }
}

std::vector<Finding> check_named(const OpenArgs& args, const std::string& name, const Facts& facts,
                                 bool with_rights, bool counts) {
  std::vector<Finding> found;
  check_all(args, name, facts, found, counts, with_rights);
  check_place(Case{args, facts, std::nullopt, name, found, counts});
  if (args.cpu >= 0) {
    Plan plan;
    plan.steps.push_back({.event = 0, .ring = 0, .args = args});
    check_cpus(plan, facts, found);
  }
  sort(found);
  return found;
}

std::string advice_without_kernel(const OpenArgs& args, const std::string& name,
                                  const Facts& facts) {
  std::vector<Finding> none;
  return advice_without_kernel(Case{args, facts, kind_of(args, facts), name, none});
}

// kernel/events/core.c: perf_event_set_filter() at v6.18 accepts tracepoints, probes, and PMUs that
// filter addresses.
std::optional<Finding> check_filter(const OpenArgs& args, const Facts& facts) {
  const auto kind = kind_of(args, facts);
  if (kind == EventKind::Tracepoint || kind == EventKind::Kprobe || kind == EventKind::Uprobe)
    return std::nullopt;
  const auto pmu = facts.pmu_of(args.attr.type);
  if (pmu && facts.system().read(kDevices + *pmu + "/nr_addr_filters")) return std::nullopt;
  return Finding{.severity = Severity::Refused,
                 .field = "filter",
                 .says = "only a tracepoint or a probe has fields that a filter can name",
                 .advice = "leave the filter out, or use a tracepoint"};
}

std::optional<Finding> missing_own_right(const OpenArgs& args, const Facts& facts) {
  std::vector<Finding> found;
  check_own_right(Case{args, facts, kind_of(args, facts), {}, found});
  return found.empty() ? std::nullopt : std::optional{std::move(found.front())};
}

}  // namespace internal

std::vector<Finding> check(const OpenArgs& args, System& system) {
  return internal::check_named(args, {}, Facts{system});
}

namespace {

// Checks the event as it would be opened: without the kernel, if this user may not observe the
// kernel and the event may exclude it (Kernel::IfAllowed).
void check_event(const Event& event, OpenArgs args, const Facts& facts, std::vector<Finding>& found,
                 bool is_group) {
  std::vector<Finding> own;
  check_all(args, event.name(), facts, own, is_group, /*with_rights=*/true);
  const bool may_exclude =
      event.kernel() == Kernel::IfAllowed && !internal::needs_kernel(args) &&
      std::ranges::find(own, std::string_view{"exclude_kernel"}, &Finding::field) != own.end();
  if (may_exclude) {
    own.clear();
    internal::exclude_kernel(args.attr);
    check_all(args, event.name(), facts, own, is_group, /*with_rights=*/true);
  }
  std::ranges::move(own, std::back_inserter(found));
}

// Returns true if the folder's cgroup v1 hierarchy is mounted without perf_event, according to the
// innermost mount that contains the folder: "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0".
// A path through a symbolic link matches no such mount.
bool lacks_perf_event(const std::string& path, System& system) {
  const auto mounts = system.read("/proc/self/mounts");
  if (!mounts) return false;
  std::istringstream lines{*mounts};
  std::string innermost;
  bool lacks = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string device, folder, type, options;
    words >> device >> folder >> type >> options;
    if (!words || folder.size() < innermost.size()) continue;
    if (path != folder && !path.starts_with(folder == "/" ? folder : folder + "/")) continue;
    innermost = folder;
    lacks = type == "cgroup" && ("," + options + ",").find(",perf_event,") == std::string::npos;
  }
  return lacks;
}

// The events of a group only count, and are read together.
std::vector<Finding> check_request(const Request& request, System& system, bool is_group) {
  std::vector<Finding> found;
  const Facts facts{system};
  const Target target = target_of(request);
  if (target.kind == Target::Kind::Child && target.command.empty()) {
    found.push_back({Severity::Refused, "command", "no command is given", "give a program"});
  }
  if (target.kind == Target::Kind::Cgroup) {
    constexpr std::uint64_t kCgroup1 = 0x27e0eb;    // CGROUP_SUPER_MAGIC
    constexpr std::uint64_t kCgroup2 = 0x63677270;  // CGROUP2_SUPER_MAGIC
    const auto folder = system.look_at(target.path);
    const bool is_one = folder && folder->type == FileKind::Type::Folder &&
                        (folder->file_system == kCgroup1 || folder->file_system == kCgroup2);
    if (!is_one) {
      found.push_back({Severity::Refused, "cgroup", target.path + " is not a cgroup",
                       "give one below /sys/fs/cgroup: /proc/PID/cgroup names a process's"});
    } else if (folder->file_system == kCgroup1 && lacks_perf_event(target.path, system)) {
      found.push_back(
          {Severity::Refused, "cgroup", internal::kNoPerfEvent, internal::kWithPerfEvent});
    }
  }
  auto planned = is_group ? internal::plan_group(request, system) : plan(request, system);
  if (!planned) {
    found.push_back(planned.error());
    return found;
  }
  for (std::size_t i = 0, next = 0; next < planned->steps.size(); ++next) {
    const Planned& step = planned->steps[next];
    if (step.event != i) continue;  // the first step of each event
    ++i;
    check_event(planned->events[step.event], step.args, facts, found, is_group);
    if (!planned->events[step.event].filter().empty()) {
      if (auto none = internal::check_filter(step.args, facts)) found.push_back(*std::move(none));
    }
    if (is_group && step.event != 0) {
      std::ranges::move(check_member(step.args, planned->steps.front().args),
                        std::back_inserter(found));
    }
    if (step.event == 0 && target.kind != Target::Kind::Child) {
      internal::check_place(Case{step.args, facts, std::nullopt, {}, found, is_group});
    }
  }
  check_cpus(*planned, facts, found);
  check_breakpoints(*planned, found);
  check_files(internal::fds_of(target, *planned, is_group), *planned, facts, found);
  if (!is_group) {
    check_pages(request, *planned, facts, found);
    check_own_wait(request, *planned, facts, found);
    check_ids(*planned, found);
    check_rings(*planned, found);
    // The kernel accepts it, but a Sampler does not.
    for (Finding& each : found) {
      if (each.field == "write_backward") each.severity = Severity::Refused;
    }
  }
  sort(found);
  return found;
}

}  // namespace

std::vector<Finding> check(const Request& request, System& system) {
  return check_request(request, system, /*is_group=*/false);
}

std::vector<Finding> check_group(const Request& request, System& system) {
  return check_request(request, system, /*is_group=*/true);
}

}  // namespace perfring::event
