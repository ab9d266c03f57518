#include "perfring/event/diagnosis/check.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

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
  internal::check_plan(request, *planned, facts, found, is_group);
  if (!is_group) {
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
