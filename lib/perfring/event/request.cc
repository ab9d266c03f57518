#include "perfring/event/request.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"

namespace perfring::event {
namespace {

using internal::Facts;

struct Place {
  pid_t pid;
  int cpu;
  std::size_t ring;
};

std::unexpected<Finding> cannot_plan(const char* field, std::string problem, std::string advice) {
  return std::unexpected(
      Finding{.field = field, .says = std::move(problem), .advice = std::move(advice)});
}

std::expected<std::vector<pid_t>, Finding> tasks_of(const Target& target, System& system) {
  if (target.pid < 0) {
    // To the kernel, -1 is every task.
    return cannot_plan("pid", "there is no task " + std::to_string(target.pid),
                       "give one that is running");
  }
  if (target.kind == Target::Kind::Thread) return std::vector<pid_t>{target.pid};
  const std::string process = target.pid == 0 ? "self" : std::to_string(target.pid);
  const std::string folder = "/proc/" + process + "/task";
  const auto names = system.list(folder);
  if (!names && (names.error().value() != ENOENT || target.pid == 0)) {
    return cannot_plan("pid", folder + " cannot be read: " + names.error().message(),
                       "mount /proc, and let this process read the folder");
  }
  if (names && names->empty() && target.pid == 0) {
    return cannot_plan("pid", folder + " names no thread", "mount /proc");
  }
  if (!names || names->empty()) {
    return cannot_plan("pid", "there is no process " + process, "give one that is running");
  }
  std::vector<pid_t> tasks;
  for (const std::string& name : *names) {
    pid_t task = 0;
    std::from_chars(name.data(), name.data() + name.size(), task);
    if (task > 0) tasks.push_back(task);
  }
  return tasks;
}

// Returns each task on each CPU. There is one ring for each CPU.
std::vector<Place> places(const std::vector<pid_t>& tasks, const std::vector<std::uint32_t>& cpus) {
  std::vector<Place> all;
  all.reserve(tasks.size() * cpus.size());
  for (const pid_t task : tasks) {
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      all.push_back({task, static_cast<int>(cpus[i]), i});
    }
  }
  return all;
}

std::expected<std::vector<std::uint32_t>, Finding> cpus_of(const Target& target, System& system) {
  if (!target.cpus.empty()) {
    // Each CPU once. Otherwise its records would be delivered twice.
    std::vector<std::uint32_t> cpus = target.cpus;
    std::ranges::sort(cpus);
    const auto twice = std::ranges::unique(cpus);
    cpus.erase(twice.begin(), twice.end());
    // To the kernel, -1 is any CPU.
    if (!std::in_range<int>(cpus.back())) {
      return cannot_plan("cpu", "there is no CPU " + std::to_string(cpus.back()),
                         "choose an online CPU");
    }
    return cpus;
  }
  const std::string path = "/sys/devices/system/cpu/online";
  const auto text = system.read(path);
  auto online = text ? os::parse_cpu_list(text->substr(0, text->find('\n'))) : std::nullopt;
  if (!online) {
    const std::string why = text ? "not a list of CPUs" : text.error().message();
    return cannot_plan("cpu", "the online CPUs cannot be read: " + path + ": " + why,
                       "name the CPUs by on()");
  }
  return *std::move(online);
}

// With `counts` there are no rings; with rings, an inherited event needs a CPU (R9).
std::expected<std::vector<Place>, Finding> places_of(const Target& target, System& system,
                                                     pid_t pid, bool counts) {
  using Kind = Target::Kind;
  if (target.kind > Kind::Cgroup) {
    return cannot_plan("target", "the kind of target is unknown",
                       "use this_process(), system() or the like");
  }
  const bool is_task = target.kind == Kind::Thread || target.kind == Kind::Process;
  const bool follows = counts ? is_task || target.kind == Kind::Child : is_task && !target.children;
  const bool anywhere = follows && target.cpus.empty();
  std::vector<std::uint32_t> cpus;
  if (!anywhere) {
    auto found = cpus_of(target, system);
    if (!found) return std::unexpected(std::move(found).error());
    cpus = *std::move(found);
  }
  if (target.kind == Kind::System) return places({-1}, cpus);
  if (!is_task && pid < 0) {
    const bool is_child = target.kind == Kind::Child;
    return cannot_plan("pid",
                       is_child ? "there is no task " + std::to_string(pid)
                                : std::to_string(pid) + " is not a descriptor",
                       is_child ? "give the child's" : "give that of the cgroup's folder");
  }
  const auto tasks = is_task ? tasks_of(target, system) : std::vector<pid_t>{pid};
  if (!tasks) return std::unexpected(tasks.error());
  if (!anywhere) return places(*tasks, cpus);
  std::vector<Place> all;
  for (std::size_t i = 0; i < tasks->size(); ++i) all.push_back({(*tasks)[i], -1, i});
  return all;
}

// Returns true if the waiting thread, which is taken to be the calling one, is among those watched.
bool includes_waiter(const Target& target, System& system) {
  switch (target.kind) {
    case Target::Kind::Thread:
      return target.pid == 0 || target.pid == ::gettid();
    case Target::Kind::Process:
      return target.pid == 0 || target.pid == ::getpid();
    case Target::Kind::System:
      return true;
    case Target::Kind::Cgroup:
      break;
    default:
      return false;
  }
  // "0::/user.slice/a" means this folder of cgroup v2, and its parents. There is also a line for
  // the perf_event hierarchy of v1.
  const auto groups = system.read("/proc/self/cgroup");
  if (!groups) return false;
  std::string folder = target.path;
  while (folder.ends_with('/')) folder.pop_back();
  for (std::string_view rest = *groups; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t path = line.find('/');
    if (path == std::string_view::npos) continue;
    const bool is_v2 = line.starts_with("0::");
    if (!is_v2 && line.find("perf_event") == std::string_view::npos) continue;
    for (const char* const root :
         {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/perf_event"}) {
      const std::string own = std::string{root}.append(line.substr(path)) + "/";
      if (own.starts_with(folder + "/")) return true;
    }
  }
  return false;
}

// Returns true if the event occurs when a thread waits, in the thread or in the kernel: a wait
// makes a system call, starts a timer, switches and wakes (R27). For a kprobe this is unknown.
bool occurs_during_wait(const perf_event_attr& attr, std::string_view name) {
  const bool is_switch =
      attr.type == PERF_TYPE_SOFTWARE && (attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
                                          attr.config == PERF_COUNT_SW_CGROUP_SWITCHES);
  if (attr.context_switch != 0 || is_switch) return true;
  if (attr.type != PERF_TYPE_TRACEPOINT) return false;
  const std::string_view tracepoint = internal::tracepoint_in(name);
  const std::string_view group = tracepoint.substr(0, tracepoint.find(':'));
  if (group == "syscalls") return tracepoint.find("poll") != std::string_view::npos;
  constexpr std::array<std::string_view, 14> kOfWaits{
      "sched", "timer", "raw_syscalls", "irq",  "irq_vectors", "ipi",      "csd",
      "rcu",   "tlb",   "x86_fpu",      "rseq", "msr",         "notifier", "power"};
  return std::ranges::find(kOfWaits, group) != kOfWaits.end();
}

}  // namespace

Target target_of(const Request& request) {
  if (request.target) return *request.target;
  const bool all = std::ranges::any_of(request.events, &Event::is_system_wide);
  return all ? event::system() : this_process();
}

namespace {

// Returns true if the event's own settings (Event::adjust()) say when to wake a waiter.
bool has_own_wakeups(const perf_event_attr& attr) {
  return attr.watermark != 0 || attr.wakeup_events != 0;
}

void make_counting(Planned& step) {
  perf_event_attr& attr = step.args.attr;
  attr.freq = 0;
  attr.sample_period = 0;
  attr.sample_type = 0;
  attr.watermark = 0;
  attr.wakeup_watermark = 0;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
                     PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
  // A member is enabled and disabled with its leader.
  if (step.event != 0) attr.disabled = attr.enable_on_exec = 0;
}

std::expected<Plan, Finding> plan_as(const Request& request, System& system, pid_t pid,
                                     bool counts) {
  const Target target = target_of(request);
  auto places = places_of(target, system, pid, counts);
  if (!places) return std::unexpected(std::move(places).error());
  if (request.events.empty()) return cannot_plan("events", "no event is requested", "give one");
  Plan plan{.events = request.events, .steps = {}};
  plan.steps.reserve(places->size() * plan.events.size());
  std::vector<bool> own_wakeups;  // for each event: whether it sets its own wakeups
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    auto event_args = plan.events[i].open_args(system);
    if (!event_args) return std::unexpected(std::move(event_args).error());
    OpenArgs args = *event_args;
    if (target.kind == Target::Kind::Cgroup) args.flags |= PERF_FLAG_PID_CGROUP;
    if (target.children) args.attr.inherit = 1;
    if (target.kind == Target::Kind::Child) args.attr.enable_on_exec = 1;
    own_wakeups.push_back(has_own_wakeups(event_args->attr));
    if (!own_wakeups[i]) {
      args.attr.watermark = 1;
      args.attr.wakeup_watermark = request.batch == 0 ? 1 : request.batch;
    }
    for (const Place& place : *places) {
      args.pid = place.pid;
      args.cpu = place.cpu;
      plan.steps.push_back({.event = i, .ring = place.ring, .args = args});
      plan.rings = std::max(plan.rings, place.ring + 1);
    }
  }
  plan.wakes_itself =
      request.batch == 0 && !own_wakeups[0] && watches_its_own_wait(request, plan, system);
  if (plan.wakes_itself) {
    for (Planned& step : plan.steps) {
      if (own_wakeups[step.event]) continue;
      step.args.attr.wakeup_watermark =
          static_cast<std::uint32_t>(request.page_count * os::page_size() / 2);
    }
  }
  if (counts) std::ranges::for_each(plan.steps, make_counting);
  return plan;
}

}  // namespace

std::expected<Plan, Finding> plan(const Request& request, System& system, pid_t pid) {
  return plan_as(request, system, pid, /*counts=*/false);
}

std::expected<Plan, Finding> internal::plan_group(const Request& request, System& system,
                                                  pid_t pid) {
  return plan_as(request, system, pid, /*counts=*/true);
}

bool watches_its_own_wait(const Request& request, const Plan& plan, System& system) {
  return includes_waiter(target_of(request), system) &&
         std::ranges::any_of(plan.steps, [&plan](const Planned& step) {
           return occurs_during_wait(step.args.attr, plan.events[step.event].name());
         });
}

bool internal::is_this_thread(const OpenArgs& args) noexcept {
  return (args.flags & PERF_FLAG_PID_CGROUP) == 0 && (args.pid == 0 || args.pid == ::gettid());
}

bool internal::is_of_a_task_on_a_cpu(const OpenArgs& args) noexcept {
  return args.cpu >= 0 && args.pid != -1 && (args.flags & PERF_FLAG_PID_CGROUP) == 0;
}

std::size_t internal::fds_of(const Target& target, const Plan& plan, bool is_group) {
  constexpr std::size_t kWaiter = 2;
  constexpr std::size_t kChild = 2;  // its end of the socket, until it starts, and its pidfd
  const auto has_clock = [](const Planned& step) {
    return step.event == 0 && is_of_a_task_on_a_cpu(step.args);
  };
  const auto clocks = static_cast<std::size_t>(std::ranges::count_if(plan.steps, has_clock));
  return plan.steps.size() + (is_group ? clocks : kWaiter) +
         (target.kind == Target::Kind::Child ? kChild : 0);
}

std::expected<std::size_t, Finding> fds_needed(const Request& request, System& system) {
  const auto planned = plan(request, system);
  if (!planned) return std::unexpected(planned.error());
  return internal::fds_of(target_of(request), *planned, /*is_group=*/false);
}

}  // namespace perfring::event
