#include "perfring/event/event_error.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "perfring/event/check.h"

namespace perfring::event {
namespace {

using internal::Facts;
using internal::Variation;
using Group = Variation::Group;

using internal::is_of_rights;
using internal::kPerfmon;

// The machine, what the event is called, and its group's leader, if that is known.
struct Context {
  const Facts& facts;
  const std::string& name;
  const Ask* leader;
};

// The answer to it: 0 or an errno.
int answer(Ask ask, System& system) {
  const int fd = system.open(ask);
  if (fd >= 0) ::close(fd);
  return fd >= 0 ? 0 : -fd;
}

// The advice for an errno alone.
std::optional<Cause> plain_cause(const Ask& ask, int error, const Facts& facts) {
  if (auto lack = internal::cause_of_lack(error, facts.system())) return lack;
  switch (error) {
    case ESRCH:
      return Cause{"pid", "the process is not there any more", "give one that is running"};
    case EBUSY:
      return Cause{"type", "the PMU is taken by an event that is exclusive or pinned",
                   "wait for that event to be closed"};
    case ENOSPC:
      // Of every place that is tried: only another event helps.
      if (ask.attr.type != PERF_TYPE_BREAKPOINT) return std::nullopt;
      return Cause{"type", "all breakpoints of the processor are taken: x86 has four for each CPU",
                   "ask for fewer, or close one that is open"};
    case EBADF:
      return ask.group_fd != -1
                 ? Cause{"group_fd", "group_fd is no event", "give the leader's"}
                 : Cause{"cgroup", "the folder is no cgroup's", "give one below /sys/fs/cgroup"};
    default:
      return std::nullopt;
  }
}

// The change by which an event that was to be sampled is counted.
bool is_without_period(const Variation& each) {
  return each.field == "sample_period" && each.ask.attr.sample_period == 0;
}

// To open and close it takes 35 ms, a grace period.
bool is_costly(const Ask& ask, const Facts& facts) {
  if (ask.attr.type <= PERF_TYPE_BREAKPOINT) return ask.attr.type == PERF_TYPE_TRACEPOINT;
  return facts.pmu_type("kprobe") == ask.attr.type || facts.pmu_type("uprobe") == ask.attr.type;
}

// Why a probe is not set (kernel/kprobes.c: check_kprobe_address_safe(),
// kernel/trace/trace_kprobe.c: create_local_trace_kprobe(), kernel/events/uprobes.c:
// prepare_uprobe() at v6.18).
std::optional<Cause> cause_of_probe(int error, bool is_kprobe) {
  constexpr int kNotSupported = 524;  // ENOTSUPP, which no header of the uapi has
  // (EINVAL: arch/arm/probes/uprobes/core.c: arch_uprobe_analyze_insn().)
  if (error == kNotSupported || (!is_kprobe && error == EINVAL)) {
    return Cause{"probe_offset", "what is there is no instruction that can be probed",
                 "give the offset of an instruction, such as a function's first; on 32-bit ARM "
                 "not of Thumb code"};
  }
  if (!is_kprobe) return std::nullopt;
  switch (error) {
    case ENOENT:
      return Cause{"kprobe_func", "the kernel has no function of this name",
                   "give one of /proc/kallsyms"};
    case EILSEQ:
      return Cause{"probe_offset", "the offset is inside of an instruction",
                   "give that of an instruction's first byte"};
    case EINVAL:
      return Cause{
          "kprobe_func", "this place of the kernel may not be probed",
          "give a function that is not in debugfs's kprobes/blacklist, and an offset in it"};
    default:
      return std::nullopt;
  }
}

// What check() would refuse of the event, as one that is opened: it has no ring yet.
std::vector<Finding> refusals(const Ask& ask, const Context& context, bool with_rights = true) {
  auto found = internal::check_named(ask, context.name, context.facts, with_rights,
                                     /*counts=*/true);
  std::erase_if(found, [](const Finding& each) {
    // What is silent on this kernel is refused by older ones.
    return each.severity != Finding::Severity::Refused && each.field != "inherit";
  });
  return found;
}

// How a member, which alone would open, differs from the leader of its group.
std::vector<Cause> causes_of_group(const Ask& ask, const Context& context) {
  std::vector<Cause> causes;
  for (const Finding& each : check_member(ask, context.leader == nullptr ? ask : *context.leader)) {
    causes.push_back({each.field, each.says, each.advice});
  }
  if (causes.empty()) {
    causes.push_back({"group_fd", "the event does not go with the group's leader",
                      "give it the leader's clock, tasks, CPU and inherit, or open it alone"});
  }
  return causes;
}

// "sample_stack_user" of "PERF_SAMPLE_STACK_USER": what says more of the field that a bit adds.
bool is_detail_of(const std::string& field, std::string_view bit) {
  if (bit == "PERF_SAMPLE_CALLCHAIN") return field == "sample_max_stack";
  constexpr std::string_view kPrefix = "PERF_";
  return bit.starts_with(kPrefix) &&
         std::ranges::equal(field, bit.substr(kPrefix.size()),
                            [](char a, char b) { return a == b || a == b + ('a' - 'A'); });
}

// What check() says of what was changed.
std::optional<Cause> checked(const Variation& found, const Ask& ask, int error,
                             const Context& context) {
  const Facts& facts = context.facts;
  const std::string& field = found.field;
  // dummy has stood in for a costly event, so that the field is any.
  const bool is_any = is_costly(ask, facts);
  // Rights come last; of another error they are not the cause.
  auto findings = refusals(ask, context, is_of_rights(error));
  if (is_of_rights(error)) std::ranges::reverse(findings);
  for (const Finding& each : findings) {
    // Whatever is wrong with the event itself.
    const bool is_of_it =
        found.group == Group::Event &&
        (error == EINVAL || (error == ENOENT && (each.field == "type" || each.field == "config")));
    // Impossible places; those that are not for this user say so themselves.
    const bool is_of_place = found.group == Group::Place && !is_of_rights(error) &&
                             (each.field == "cpu" || each.field == "pid" ||
                              (each.field == "sigtrap" && ask.attr.remove_on_exec != 0));
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

// One that fits any field.
Cause unchecked(const Variation& found, const Ask& ask, int error, const Context& context) {
  const Facts& facts = context.facts;
  const std::string& field = found.field;
  if (field == "size" && error == E2BIG) {
    Ask sized = ask;
    const int fd = facts.system().open(sized);
    if (fd >= 0) ::close(fd);
    return {field,
            "this kernel's perf_event_attr has " + std::to_string(sized.attr.size) + " bytes",
            "leave the fields behind them 0"};
  }
  // (arch/x86/kernel/hw_breakpoint.c: arch_build_bp_info() at v6.18.)
  if (error == EINVAL && internal::is_kernel_address(ask.attr)) {
    return {"bp_addr", "the kernel takes no breakpoint of this sort at this address",
            "watch reads and writes; on execution, give a place that a kprobe may be put on, of a "
            "kernel that has kprobes"};
  }
  switch (found.group) {
    case Group::Exclusion:
      if (ask.attr.exclude_kernel != 0) {
        return {field, "this event cannot exclude the kernel", "include it"};
      }
      return {field, "the kernel may not be watched by this user",
              internal::without_kernel(ask, context.name, facts)};
    case Group::Place:
      if (error == ENODEV) {
        return {field, "CPU " + std::to_string(ask.cpu) + " is offline", "choose an online CPU"};
      }
      // (kernel/cgroup/cgroup.c: css_tryget_online_from_dir() at v6.18.)
      if (error == ENOENT && (ask.flags & PERF_FLAG_PID_CGROUP) != 0) {
        return {"cgroup", internal::kNoPerfEvent, internal::kWithPerfEvent};
      }
      return {field, "this target is not for this user, or not for this event",
              std::string{"watch your own tasks, or "} + kPerfmon};
    case Group::Event:
      if (is_costly(ask, facts) && ask.attr.type != PERF_TYPE_TRACEPOINT) {
        const bool is_kprobe = facts.pmu_type("kprobe") == ask.attr.type;
        if (auto cause = cause_of_probe(error, is_kprobe)) return *std::move(cause);
      }
      if (is_of_rights(error) && !facts.may_all()) {
        return {field, "this event is not for this user", kPerfmon};
      }
      return {field, "this machine does not have this event", "use another one (or_else())"};
    default:
      if (field == "group_fd") return causes_of_group(ask, context).front();
      if (is_without_period(found)) {
        return {field, "the PMU only counts: it cannot sample this event",
                "leave its period or frequency out, and count it (Counter)"};
      }
      if (is_of_rights(error)) {
        return {field, field + " is not for this user",
                std::string{"leave it out, or "} + kPerfmon};
      }
      return {field, "this kernel, or this PMU, does not take " + field,
              "leave " + field + " out, or use a kernel or a PMU that has it"};
  }
}

Cause cause_of(const Variation& found, const Ask& ask, int error, const Context& context) {
  auto cause = checked(found, ask, error, context);
  return cause ? *std::move(cause) : unchecked(found, ask, error, context);
}

struct Answered {
  Variation variation;
  int error;
};

// The least drastic changes that lead to the answer `wanted`, or, without one, to any other than
// `error`.
std::vector<Answered> telling(std::vector<Answered> all, std::optional<int> wanted, int error) {
  std::erase_if(all, [&](const Answered& each) {
    return wanted ? each.error != *wanted : each.error == error;
  });
  const auto least =
      std::ranges::min_element(all, {}, [](const Answered& each) { return each.variation.group; });
  if (least == all.end()) return {};
  const Group group = least->variation.group;
  std::erase_if(all, [&](const Answered& each) { return each.variation.group != group; });
  // What else helps says more than that the event would open alone, or without a period.
  const auto says_more = [](const Answered& each) {
    return each.variation.field != "group_fd" && !is_without_period(each.variation);
  };
  if (std::ranges::any_of(all, says_more)) std::erase_if(all, std::not_fn(says_more));
  // Places come from the nearest to the farthest: the first that helps is enough.
  if (group == Group::Place) all.erase(all.begin() + 1, all.end());
  return all;
}

// A PMU of PERF_PMU_CAP_NO_EXCLUDE, such as msr: without the kernel, which is not for this user,
// the event is refused for another reason.
std::optional<Cause> cause_of_no_exclusion(const std::vector<Answered>& others, const Ask& ask,
                                           int error) {
  const bool is_one = is_of_rights(error) && !others.empty() &&
                      others.front().variation.group == Group::Exclusion &&
                      others.front().error == EINVAL && ask.attr.exclude_kernel == 0 &&
                      ask.attr.type > PERF_TYPE_BREAKPOINT;
  if (!is_one) return std::nullopt;
  const bool is_cpu_wide = ask.pid == -1 || (ask.flags & PERF_FLAG_PID_CGROUP) != 0;
  return Cause{"exclude_kernel",
               "the event cannot leave the kernel out, which is not for this user",
               std::string{kPerfmon} + ", or set kernel.perf_event_paranoid to " +
                   (is_cpu_wide ? "0" : "1") + " or below"};
}

// Whether check() refuses the changed event for a reason that the event did not give before.
bool is_wrong_itself(const Variation& changed, const std::vector<Finding>& before,
                     const Context& context) {
  return std::ranges::any_of(refusals(changed.ask, context), [&](const Finding& each) {
    return std::ranges::find(before, each.says, &Finding::says) == before.end();
  });
}

// Those that change the answer; but not where the answer is that of the change: to include what is
// not for this user, or to take the last sort of branch away.
std::vector<Answered> changing(const std::vector<Answered>& all, const std::vector<Finding>& before,
                               int error, const Context& context) {
  std::vector<Answered> some;
  std::ranges::copy_if(all, std::back_inserter(some), [&](const Answered& each) {
    if (each.error == error) return false;
    if (each.variation.group == Group::Event) return true;
    const bool includes = each.variation.field.starts_with("exclude_") &&
                          is_of_rights(each.error) && !is_of_rights(error);
    return !includes && !is_wrong_itself(each.variation, before, context);
  });
  return some;
}

// Two things are wrong, and the answer to either is the same: the least drastic two changes with
// which it opens.
void find_both(const std::vector<Answered>& all, const Ask& ask, int error, const Context& context,
               std::vector<Cause>& causes) {
  std::optional<std::pair<Variation, Variation> > least;
  const auto rank = [](const Variation& one, const Variation& other) {
    return std::pair{std::max(one.group, other.group), std::min(one.group, other.group)};
  };
  for (const Answered& one : all) {
    for (Variation& other : internal::variations(one.variation.ask)) {
      const bool is_less = !least || rank(one.variation, other) < rank(least->first, least->second);
      if (!is_less || answer(other.ask, context.facts.system()) != 0) continue;
      least = {one.variation, std::move(other)};
    }
  }
  if (!least) return;
  causes.push_back(cause_of(least->first, ask, error, context));
  causes.push_back(cause_of(least->second, least->first.ask, error, context));
  if (least->second.group > least->first.group) std::swap(causes.back(), *(causes.end() - 2));
}

// Of rights, where dummy has stood in for the event and was refused as well: the advice is the
// event's, and what check() says of the event alone is behind that.
void add_its_own(const Ask& ask, const Ask& dummy, const Context& context,
                 std::vector<Cause>& causes) {
  if (causes.empty()) return;  // whatever is asked for is forbidden
  const auto found = refusals(ask, context);
  for (Cause& each : causes) {
    if (each.field != "exclude_kernel") continue;
    const auto same = std::ranges::find(found, each.says, &Finding::says);
    each.advice = same != found.end() ? same->advice
                                      : internal::without_kernel(ask, context.name, context.facts);
  }
  const auto others = refusals(dummy, context);
  for (const Finding& each : found) {
    const bool is_of_both = std::ranges::find(others, each.says, &Finding::says) != others.end();
    if (!is_of_both) causes.push_back({each.field, each.says, each.advice});
  }
}

// Each of these changes lets the event open.
void add_causes(const std::vector<Answered>& opened, const Ask& ask, int error,
                const Context& context, std::vector<Cause>& causes) {
  const std::size_t begin = causes.size();
  const auto add = [&causes](Cause cause) {
    const bool is_there = std::ranges::any_of(causes, [&](const Cause& other) {
      return other.field == cause.field && other.says == cause.says;
    });
    if (!is_there) causes.push_back(std::move(cause));
  };
  for (const Answered& each : opened) {
    if (auto cause = checked(each.variation, ask, error, context)) add(*std::move(cause));
  }
  if (causes.size() != begin) return;
  // Of a field whose value is wrong: not that it could be left out as well.
  for (const Answered& each : opened) add(unchecked(each.variation, ask, error, context));
}

void find_causes(const Ask& ask, int error, const Context& context, int depth,
                 std::vector<Cause>& causes) {
  const Facts& facts = context.facts;
  if (auto plain = plain_cause(ask, error, facts)) {
    causes.push_back(*std::move(plain));
    return;
  }
  // Who has the right that such an event needs has every other; so that one says all, unless it is
  // something else that forbids everything.
  const auto right = is_of_rights(error) ? internal::right_of_its_own(ask, facts) : std::nullopt;
  if (right && answer(internal::dummy(), facts.system()) == 0) {
    causes.push_back({right->field, right->says, right->advice});
    return;
  }
  std::vector<Answered> all;
  for (Variation& each : internal::variations(ask)) {
    if (is_costly(ask, facts) && each.group != Group::Event) continue;
    const int now = answer(each.ask, facts.system());
    all.push_back({std::move(each), now});
  }
  if (auto opened = telling(all, 0, error); !opened.empty()) {
    const bool is_of_group = std::ranges::any_of(all, [](const Answered& each) {
      return each.variation.field == "group_fd" && each.error == 0;
    });
    if (is_of_group) {
      std::ranges::move(causes_of_group(ask, context), std::back_inserter(causes));
    } else {
      add_causes(opened, ask, error, context, causes);
    }
    return;
  }
  if (is_costly(ask, facts) && !all.empty()) {
    // dummy is refused as well: whatever it is, it is not the event alone.
    const Answered& dummy = all.back();
    find_causes(dummy.variation.ask, dummy.error, context, depth, causes);
    if (is_of_rights(error)) add_its_own(ask, dummy.variation.ask, context, causes);
    return;
  }
  // One thing hides another: the first is named, and asked about without it (R2).
  if (auto cause = cause_of_no_exclusion(telling(all, std::nullopt, error), ask, error)) {
    causes.push_back(*std::move(cause));
    return;
  }
  const auto before = refusals(ask, context);
  const auto others = telling(changing(all, before, error, context), std::nullopt, error);
  if (depth == 0) return;
  if (others.empty()) {
    find_both(all, ask, error, context, causes);
    return;
  }
  causes.push_back(cause_of(others.front().variation, ask, error, context));
  // What is wrong with dummy alone is no cause of the event's.
  const bool is_the_event = others.front().variation.group == Group::Event;
  if (is_the_event && is_wrong_itself(others.front().variation, before, context)) return;
  find_causes(others.front().variation.ask, others.front().error, context, depth - 1, causes);
}

const char* name_of(EventError::Step step) {
  using Step = EventError::Step;
  switch (step) {
    case Step::Check:
      return "the check";
    case Step::Open:
      return "perf_event_open";
    case Step::Map:
      return "mmap";
    case Step::Output:
      return "ioctl PERF_EVENT_IOC_SET_OUTPUT";
    case Step::Filter:
      return "ioctl PERF_EVENT_IOC_SET_FILTER";
    case Step::Start:
      return "ioctl PERF_EVENT_IOC_ENABLE";
    case Step::Child:
      return "the start";
    case Step::Wait:
      return "epoll";
    case Step::Read:
      return "read";
  }
  return "a system call";
}

std::optional<Cause> cause_of_step(EventError::Step step, int error, const Ask& ask, System& system,
                                   const Ask* first) {
  using Step = EventError::Step;
  if (step == Step::Map && error == EPERM) {
    return Cause{"page_count", "the rings are more than this user may lock in memory",
                 "ask for fewer pages, raise kernel.perf_event_mlock_kb or RLIMIT_MEMLOCK, or run "
                 "with CAP_IPC_LOCK"};
  }
  if (step == Step::Map && error == ENOMEM) {
    return Cause{"page_count", "the kernel has no memory for a ring of so many pages",
                 "ask for fewer pages"};
  }
  if (step == Step::Map && error == EINVAL) {
    if (ask.attr.inherit != 0 && ask.cpu == -1) {
      return Cause{"inherit", internal::kNotMapped, internal::kPlaced};
    }
    return Cause{"page_count", "the pages are no power of two", "give 1, 2, 4 and so on"};
  }
  if (step == Step::Output && error == EINVAL) {
    const auto none = first == nullptr ? std::nullopt : internal::check_output(ask, *first);
    if (none) return Cause{none->field, none->says, none->advice};
    return Cause{"", "the event cannot write to the ring of the one before it",
                 "open a Sampler for each of them"};
  }
  if (step == Step::Filter) {
    if (const auto none = internal::check_filter(ask, Facts{system})) {
      return Cause{none->field, none->says, none->advice};
    }
    return Cause{
        "filter",
        error == EEXIST ? "the event has a filter already" : "this is no filter of this event",
        "name fields of the tracepoint's format, as in \"prev_pid == 0\""};
  }
  return internal::cause_of_lack(error, system);
}

}  // namespace

namespace internal {

std::optional<Cause> cause_of_lack(int error, System& system) {
  switch (error) {
    case EMFILE: {
      auto limit = Facts{system}.limit("Max open files");
      rlimit own{};
      // Without a descriptor no file can be read.
      if (!limit && ::getrlimit(RLIMIT_NOFILE, &own) == 0) limit = own.rlim_cur;
      return Cause{"fd",
                   "this process may have " +
                       (limit ? std::to_string(*limit) + " open files" : "no more open files"),
                   "raise the limit (ulimit -n), or watch fewer CPUs"};
    }
    case ENFILE:
      return Cause{"fd", "the machine has no more open files", "raise fs.file-max"};
    case ENOMEM:
      return Cause{"page_count", "the kernel has no memory", "ask for fewer pages"};
    default:
      return std::nullopt;
  }
}

std::string describe(const Ask& ask, const std::string& name) {
  std::string text = name.empty() ? "an event of type " + std::to_string(ask.attr.type) : name;
  if ((ask.flags & PERF_FLAG_PID_CGROUP) != 0) {
    text += " of a cgroup";
  } else if (ask.pid == 0) {
    text += " of this thread";
  } else if (ask.pid > 0) {
    text += " of process " + std::to_string(ask.pid);
  } else {
    text += " of all processes";
  }
  return ask.cpu < 0 ? text : text + " on CPU " + std::to_string(ask.cpu);
}

}  // namespace internal

namespace {

std::vector<Cause> causes_of_named(const Ask& ask, const std::string& name, int error,
                                   System& system, const Ask* leader) {
  constexpr int kDepth = 3;
  std::vector<Cause> causes;
  if (error <= 0) return causes;
  const Facts facts{system};
  const Context context{facts, name, leader};
  find_causes(ask, error, context, kDepth, causes);
  if (!causes.empty()) return causes;
  // Whatever was changed, the answer was the same: it is not this event, or two things in it.
  if (answer(internal::dummy(), system) == 0) {
    for (const Finding& each : refusals(ask, context, is_of_rights(error))) {
      causes.push_back({each.field, each.says, each.advice});
    }
    return causes;
  }
  const auto paranoid = facts.sysctl("perf_event_paranoid");
  if (error == EACCES && paranoid.value_or(0) > 2) {
    causes.push_back({"perf_event_paranoid",
                      "kernel.perf_event_paranoid is " + std::to_string(*paranoid) +
                          ", with which Debian's kernels refuse every event",
                      std::string{"set it to 2 or below, or "} + kPerfmon});
  } else {
    causes.push_back({"", "not even an event that counts nothing may be opened",
                      "change the seccomp profile or the security module that forbids "
                      "perf_event_open, or use a kernel with CONFIG_PERF_EVENTS"});
  }
  return causes;
}

}  // namespace

std::vector<Cause> causes_of(const Ask& ask, int error, System& system) {
  return causes_of_named(ask, {}, error, system, nullptr);
}

EventError EventError::of(const Finding& finding, std::string asked) {
  return {.step = Step::Check,
          .io_error = {},
          .asked = std::move(asked),
          .causes = {{finding.field, finding.says, finding.advice}}};
}

EventError EventError::at_failure(Step step, int error, const Ask& ask, const std::string& name,
                                  System& system, const Ask* leader) {
  EventError failed{.step = step,
                    .io_error = std::error_code(error, std::generic_category()),
                    .asked = internal::describe(ask, name),
                    .causes = {}};
  if (step == Step::Open) {
    failed.causes = causes_of_named(ask, name, error, system, leader);
  } else if (auto cause = cause_of_step(step, error, ask, system, leader)) {
    failed.causes.push_back(*std::move(cause));
  }
  return failed;
}

std::string EventError::message() const {
  if (!io_error) return asked + ": " + (causes.empty() ? "impossible" : causes.front().says);
  return std::string{name_of(step)} + " of " + asked + " failed: " + io_error.message();
}

std::string EventError::explain() const {
  std::string said = io_error ? io_error.message() : "nothing, it was not asked";
  std::string advice;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    const bool is_said =
        std::ranges::find(causes.begin(), causes.begin() + static_cast<std::ptrdiff_t>(i),
                          causes[i].says,
                          &Cause::says) != causes.begin() + static_cast<std::ptrdiff_t>(i);
    if (!is_said) said += (i == 0 ? ": " : "; and ") + causes[i].says;
    if (causes[i].advice.empty() || advice.find(causes[i].advice) != std::string::npos) continue;
    advice += (advice.empty() ? "" : "; ") + causes[i].advice;
  }
  const std::string call = step == Step::Check ? "" : std::string{name_of(step)} + " of ";
  if (advice.empty()) advice = "see perf_event_open(2) for this error";
  return "asked for: " + call + asked + "\nthe system said: " + said + "\nto change: " + advice;
}

}  // namespace perfring::event
