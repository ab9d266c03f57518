// Puts into words what the kernel's answer means: of an errno alone, or of a change that altered
// the answer.

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"

namespace perfring::event::internal {
namespace {

using Aspect = Variation::Aspect;

// Returns why a probe cannot be set (kernel/kprobes.c: check_kprobe_address_safe(),
// kernel/trace/trace_kprobe.c: create_local_trace_kprobe(), kernel/events/uprobes.c:
// prepare_uprobe() at v6.18).
std::optional<Cause> cause_of_probe(int error, bool is_kprobe) {
  constexpr int kNotSupported = 524;  // ENOTSUPP, which no uapi header has
  // (EINVAL: arch/arm/probes/uprobes/core.c: arch_uprobe_analyze_insn().)
  if (error == kNotSupported || (!is_kprobe && error == EINVAL)) {
    return Cause{"probe_offset", "no instruction that can be probed starts there",
                 "give the offset of an instruction, such as a function's first; on 32-bit ARM, "
                 "not in Thumb code"};
  }
  if (!is_kprobe) return std::nullopt;
  switch (error) {
    case ENOENT:
      return Cause{"kprobe_func", "the kernel has no function of this name",
                   "give one of /proc/kallsyms"};
    case EILSEQ:
      return Cause{"probe_offset", "the offset is inside an instruction",
                   "give the offset of an instruction's first byte"};
    case EINVAL:
      return Cause{
          "kprobe_func", "this place in the kernel may not be probed",
          "give a function that is not in debugfs's kprobes/blacklist, and an offset in it"};
    default:
      return std::nullopt;
  }
}

// Returns true if the field specifies what a sample bit adds, as "sample_stack_user" does for
// "PERF_SAMPLE_STACK_USER".
bool is_detail_of(const std::string& field, std::string_view bit) {
  if (bit == "PERF_SAMPLE_CALLCHAIN") return field == "sample_max_stack";
  constexpr std::string_view kPrefix = "PERF_";
  return bit.starts_with(kPrefix) &&
         std::ranges::equal(field, bit.substr(kPrefix.size()),
                            [](char a, char b) { return a == b || a == b + ('a' - 'A'); });
}

}  // namespace

std::optional<Cause> cause_of_shortage(int error, System& system) {
  switch (error) {
    case EMFILE: {
      auto limit = Facts{system}.limit("Max open files");
      rlimit own{};
      // Without a free descriptor, Facts cannot read any file.
      if (!limit && ::getrlimit(RLIMIT_NOFILE, &own) == 0) limit = own.rlim_cur;
      return Cause{"fd",
                   "this process may have " +
                       (limit ? std::to_string(*limit) + " open files" : "no more open files"),
                   "raise the limit (ulimit -n), or watch fewer CPUs"};
    }
    case ENFILE:
      return Cause{"fd", "the machine has no more open files", "raise fs.file-max"};
    case ENOMEM:
      return Cause{"page_count", "the kernel is out of memory", "ask for fewer pages"};
    default:
      return std::nullopt;
  }
}

std::optional<Cause> plain_cause(const OpenArgs& args, int error, const Facts& facts) {
  if (auto lack = cause_of_shortage(error, facts.system())) return lack;
  switch (error) {
    case ESRCH:
      return Cause{"pid", "the process no longer exists", "give one that is running"};
    case EBUSY:
      return Cause{"type", "the PMU is in use by an exclusive or pinned event",
                   "wait for that event to be closed"};
    case ENOSPC:
      // Whatever the place: another CPU may have a free one, but the event is what must change.
      if (args.attr.type != PERF_TYPE_BREAKPOINT) return std::nullopt;
      return Cause{"type", "all breakpoints of the processor are in use: x86 has four for each CPU",
                   "ask for fewer, or close one that is open"};
    case EBADF:
      return args.group_fd != -1
                 ? Cause{"group_fd", "group_fd is not an event", "give the leader's descriptor"}
                 : Cause{"cgroup", "the folder is not a cgroup", "give one below /sys/fs/cgroup"};
    default:
      return std::nullopt;
  }
}

bool removes_period(const Variation& each) {
  return each.field == "sample_period" && each.args.attr.sample_period == 0;
}

bool is_costly(const OpenArgs& args, const Facts& facts) {
  if (args.attr.type <= PERF_TYPE_BREAKPOINT) return args.attr.type == PERF_TYPE_TRACEPOINT;
  return facts.pmu_type("kprobe") == args.attr.type || facts.pmu_type("uprobe") == args.attr.type;
}

std::vector<Finding> refusals(const OpenArgs& args, const Context& context, bool with_rights) {
  auto found = check_named(args, context.name, context.facts, with_rights,
                           /*counts=*/true);
  std::erase_if(found, [](const Finding& each) {
    // (This kernel accepts inherit silently, but older ones refuse it.)
    return each.severity != Finding::Severity::Refused && each.field != "inherit";
  });
  return found;
}

std::vector<Cause> causes_of_group(const OpenArgs& args, const Context& context) {
  std::vector<Cause> causes;
  for (const Finding& each :
       check_member(args, context.leader == nullptr ? args : *context.leader)) {
    causes.push_back({each.field, each.says, each.advice});
  }
  if (causes.empty()) {
    causes.push_back({"group_fd", "the event does not match the group's leader",
                      "give it the leader's clock, tasks, CPU and inherit, or open it alone"});
  }
  return causes;
}

std::optional<Cause> cause_by_check(const Variation& found, const OpenArgs& args, int error,
                                    const Context& context) {
  const Facts& facts = context.facts;
  const std::string& field = found.field;
  // A dummy was opened instead of a costly event, so the cause may be in any field.
  const bool is_any = is_costly(args, facts);
  // Findings about privileges come last, and are not the cause of any other error.
  auto findings = refusals(args, context, is_permission_error(error));
  if (is_permission_error(error)) std::ranges::reverse(findings);
  for (const Finding& each : findings) {
    // Any fault of the event itself.
    const bool is_of_it =
        found.aspect == Aspect::Event &&
        (error == EINVAL || (error == ENOENT && (each.field == "type" || each.field == "config")));
    // Impossible places. (If this user may not watch the place, the finding names the field.)
    const bool is_of_place = found.aspect == Aspect::Place && !is_permission_error(error) &&
                             (each.field == "cpu" || each.field == "pid" ||
                              (each.field == "sigtrap" && args.attr.remove_on_exec != 0));
    const bool is_it = is_any || is_of_it || is_of_place ||
                       field.find(each.field) != std::string::npos ||
                       each.says.find(field) != std::string::npos ||
                       (each.field == "sample_type" && field.starts_with("PERF_SAMPLE_")) ||
                       (each.field == "branch_sample_type" && field.starts_with("PERF_SAMPLE_B"));
    if (is_detail_of(each.field, field)) return Cause{each.field, each.says, each.advice};
    if (is_it) {
      return Cause{is_any || is_of_it || is_of_place ? each.field : field, each.says, each.advice};
    }
  }
  return std::nullopt;
}

Cause cause_without_check(const Variation& found, const OpenArgs& args, int error,
                          const Context& context) {
  const Facts& facts = context.facts;
  const std::string& field = found.field;
  if ((field == "size" || field == "config3" || field == "config4") && error == E2BIG) {
    OpenArgs sized = args;
    const int fd = facts.system().open(sized);
    if (fd >= 0) ::close(fd);
    return {field,
            "this kernel's perf_event_attr has " + std::to_string(sized.attr.size) + " bytes",
            "leave the fields after those 0"};
  }
  // (arch/x86/kernel/hw_breakpoint.c: arch_build_bp_info() at v6.18.)
  if (error == EINVAL && is_kernel_address(args.attr)) {
    return {"bp_addr", "the kernel does not accept this kind of breakpoint at this address",
            "watch reads and writes; for execution, give a place where a kprobe is allowed, on a "
            "kernel that has kprobes"};
  }
  switch (found.aspect) {
    case Aspect::Exclusion:
      if (args.attr.exclude_kernel != 0) {
        return {field, "this event cannot exclude the kernel", "include it"};
      }
      return {field, "this user may not observe the kernel",
              advice_without_kernel(args, context.name, facts)};
    case Aspect::Place:
      if (error == ENODEV) {
        return {field, "CPU " + std::to_string(args.cpu) + " is offline", "choose an online CPU"};
      }
      // (kernel/cgroup/cgroup.c: css_tryget_online_from_dir() at v6.18.)
      if (error == ENOENT && (args.flags & PERF_FLAG_PID_CGROUP) != 0) {
        return {"cgroup", kNoPerfEvent, kWithPerfEvent};
      }
      return {field, "this user may not watch this target, or this event cannot",
              std::string{"watch your own tasks, or "} + kPerfmon};
    case Aspect::Event:
      if (is_costly(args, facts) && args.attr.type != PERF_TYPE_TRACEPOINT) {
        const bool is_kprobe = facts.pmu_type("kprobe") == args.attr.type;
        if (auto cause = cause_of_probe(error, is_kprobe)) return *std::move(cause);
      }
      if (is_permission_error(error) && !facts.has_all_rights()) {
        return {field, "this user may not open this event", kPerfmon};
      }
      return {field, "this machine does not have this event", "use another one (or_else())"};
    default:
      if (field == "group_fd") return causes_of_group(args, context).front();
      if (removes_period(found)) {
        return {field, "the PMU only counts: it cannot sample this event",
                "leave its period or frequency out, and count it (Counter)"};
      }
      if (is_permission_error(error)) {
        return {field, "this user may not set " + field,
                std::string{"leave it out, or "} + kPerfmon};
      }
      return {field, "this kernel, or this PMU, does not support " + field,
              "leave " + field + " out, or use a kernel or a PMU that has it"};
  }
}

std::optional<Cause> cause_of_step(EventError::Step step, int error, const OpenArgs& args,
                                   System& system, const OpenArgs* first) {
  using Step = EventError::Step;
  if (step == Step::Map && error == EPERM) {
    return Cause{"page_count", "the rings need more memory than this user may lock",
                 "ask for fewer pages, raise kernel.perf_event_mlock_kb or RLIMIT_MEMLOCK, or run "
                 "with CAP_IPC_LOCK"};
  }
  if (step == Step::Map && error == ENOMEM) {
    return Cause{"page_count", "the kernel has no memory for a ring of that many pages",
                 "ask for fewer pages"};
  }
  if (step == Step::Map && error == EINVAL) {
    if (args.attr.inherit != 0 && args.cpu == -1) {
      return Cause{"inherit", kNotMapped, kPlaced};
    }
    return Cause{"page_count", "the number of pages is not a power of two",
                 "give 1, 2, 4 and so on"};
  }
  if (step == Step::Output && error == EINVAL) {
    const auto none = first == nullptr ? std::nullopt : check_output(args, *first);
    if (none) return Cause{none->field, none->says, none->advice};
    return Cause{"", "the event cannot write to the ring of the one before it",
                 "open a Sampler for each of them"};
  }
  if (step == Step::Filter) {
    if (const auto none = check_filter(args, Facts{system})) {
      return Cause{none->field, none->says, none->advice};
    }
    return Cause{"filter",
                 error == EEXIST ? "the event has a filter already"
                                 : "the event does not accept this filter",
                 "name fields of the tracepoint's format, as in \"prev_pid == 0\""};
  }
  return cause_of_shortage(error, system);
}

std::string describe(const OpenArgs& args, const std::string& name) {
  std::string text = name.empty() ? "an event of type " + std::to_string(args.attr.type) : name;
  if ((args.flags & PERF_FLAG_PID_CGROUP) != 0) {
    text += " of a cgroup";
  } else if (args.pid == 0) {
    text += " of this thread";
  } else if (args.pid > 0) {
    text += " of process " + std::to_string(args.pid);
  } else {
    text += " of all processes";
  }
  return args.cpu < 0 ? text : text + " on CPU " + std::to_string(args.cpu);
}

}  // namespace perfring::event::internal
