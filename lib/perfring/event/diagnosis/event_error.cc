#include "perfring/event/diagnosis/event_error.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

#include "perfring/event/diagnosis/check.h"

namespace perfring::event {
namespace {

using internal::cause_by_check;
using internal::cause_of_step;
using internal::cause_without_check;
using internal::causes_of_group;
using internal::Context;
using internal::Facts;
using internal::is_costly;
using internal::is_permission_error;
using internal::kPerfmon;
using internal::plain_cause;
using internal::refusals;
using internal::removes_period;
using internal::Variation;
using Aspect = Variation::Aspect;

// Returns the system's answer: 0 or an errno.
int answer(OpenArgs args, System& system) {
  const int fd = system.open(args);
  if (fd >= 0) ::close(fd);
  return fd >= 0 ? 0 : -fd;
}

Cause cause_of(const Variation& found, const OpenArgs& args, int error, const Context& context) {
  auto cause = cause_by_check(found, args, error, context);
  return cause ? *std::move(cause) : cause_without_check(found, args, error, context);
}

struct TriedVariation {
  Variation variation;
  int error;
};

// Returns the least drastic changes that lead to the answer `wanted`, or, without `wanted`, to any
// answer but `error`.
std::vector<TriedVariation> least_drastic(std::vector<TriedVariation> all,
                                          std::optional<int> wanted, int error) {
  std::erase_if(all, [&](const TriedVariation& each) {
    return wanted ? each.error != *wanted : each.error == error;
  });
  const auto least = std::ranges::min_element(
      all, {}, [](const TriedVariation& each) { return each.variation.aspect; });
  if (least == all.end()) return {};
  const Aspect aspect = least->variation.aspect;
  std::erase_if(all, [&](const TriedVariation& each) { return each.variation.aspect != aspect; });
  // Any other change is more informative than that the event would open alone, or without a period.
  const auto is_more_informative = [](const TriedVariation& each) {
    return each.variation.field != "group_fd" && !removes_period(each.variation);
  };
  if (std::ranges::any_of(all, is_more_informative))
    std::erase_if(all, std::not_fn(is_more_informative));
  // Places are ordered from the nearest to the farthest: the first that helps is enough.
  if (aspect == Aspect::Place) all.erase(all.begin() + 1, all.end());
  return all;
}

// A PMU with PERF_PMU_CAP_NO_EXCLUDE, such as msr: if the kernel, which this user may not observe,
// is excluded, the event is refused for a different reason.
std::optional<Cause> cause_of_no_exclusion(const std::vector<TriedVariation>& others,
                                           const OpenArgs& args, int error) {
  const bool is_one = is_permission_error(error) && !others.empty() &&
                      others.front().variation.aspect == Aspect::Exclusion &&
                      others.front().error == EINVAL && args.attr.exclude_kernel == 0 &&
                      args.attr.type > PERF_TYPE_BREAKPOINT;
  if (!is_one) return std::nullopt;
  const bool is_cpu_wide = args.pid == -1 || (args.flags & PERF_FLAG_PID_CGROUP) != 0;
  return Cause{"exclude_kernel",
               "the event cannot exclude the kernel, which this user may not observe",
               std::string{kPerfmon} + ", or set kernel.perf_event_paranoid to " +
                   (is_cpu_wide ? "0" : "1") + " or below"};
}

// Returns true if check() refuses the changed event for a reason that did not exist before the
// change.
bool is_refused_itself(const Variation& changed, const std::vector<Finding>& before,
                       const Context& context) {
  return std::ranges::any_of(refusals(changed.args, context), [&](const Finding& each) {
    return std::ranges::find(before, each.says, &Finding::says) == before.end();
  });
}

// Returns the changes that alter the answer, except changes that are refused themselves: those that
// include what this user may not observe, or that remove the last sort of branch.
std::vector<TriedVariation> altering(const std::vector<TriedVariation>& all,
                                     const std::vector<Finding>& before, int error,
                                     const Context& context) {
  std::vector<TriedVariation> some;
  std::ranges::copy_if(all, std::back_inserter(some), [&](const TriedVariation& each) {
    if (each.error == error) return false;
    if (each.variation.aspect == Aspect::Event) return true;
    const bool includes = each.variation.field.starts_with("exclude_") &&
                          is_permission_error(each.error) && !is_permission_error(error);
    return !includes && !is_refused_itself(each.variation, before, context);
  });
  return some;
}

// Two things are wrong, and the answer to both is the same. Finds the least drastic pair of changes
// with which the event opens.
void find_pair(const std::vector<TriedVariation>& all, const OpenArgs& args, int error,
               const Context& context, std::vector<Cause>& causes) {
  std::optional<std::pair<Variation, Variation> > least;
  const auto rank = [](const Variation& one, const Variation& other) {
    return std::pair{std::max(one.aspect, other.aspect), std::min(one.aspect, other.aspect)};
  };
  for (const TriedVariation& one : all) {
    for (Variation& other : internal::variations(one.variation.args)) {
      const bool is_less = !least || rank(one.variation, other) < rank(least->first, least->second);
      if (!is_less || answer(other.args, context.facts.system()) != 0) continue;
      least = {one.variation, std::move(other)};
    }
  }
  if (!least) return;
  causes.push_back(cause_of(least->first, args, error, context));
  causes.push_back(cause_of(least->second, least->first.args, error, context));
  if (least->second.aspect > least->first.aspect) std::swap(causes.back(), *(causes.end() - 2));
}

// For an error about privileges, if a dummy was opened instead of the event and was refused as
// well: replaces the advice by the event's own, and appends the findings of check() that apply only
// to the event.
void add_own_causes(const OpenArgs& args, const OpenArgs& dummy, const Context& context,
                    std::vector<Cause>& causes) {
  if (causes.empty()) return;  // everything is forbidden
  const auto found = refusals(args, context);
  for (Cause& each : causes) {
    if (each.field != "exclude_kernel") continue;
    const auto same = std::ranges::find(found, each.says, &Finding::says);
    each.advice = same != found.end()
                      ? same->advice
                      : internal::advice_without_kernel(args, context.name, context.facts);
  }
  const auto others = refusals(dummy, context);
  for (const Finding& each : found) {
    const bool is_of_both = std::ranges::find(others, each.says, &Finding::says) != others.end();
    if (!is_of_both) causes.push_back({each.field, each.says, each.advice});
  }
}

// Adds the causes for changes each of which lets the event open.
void add_causes(const std::vector<TriedVariation>& opened, const OpenArgs& args, int error,
                const Context& context, std::vector<Cause>& causes) {
  const std::size_t begin = causes.size();
  const auto add = [&causes](Cause cause) {
    const bool is_there = std::ranges::any_of(causes, [&](const Cause& other) {
      return other.field == cause.field && other.says == cause.says;
    });
    if (!is_there) causes.push_back(std::move(cause));
  };
  for (const TriedVariation& each : opened) {
    if (auto cause = cause_by_check(each.variation, args, error, context)) add(*std::move(cause));
  }
  if (causes.size() != begin) return;
  // Only now: if a field has a wrong value, it does not matter that the field could be omitted.
  for (const TriedVariation& each : opened)
    add(cause_without_check(each.variation, args, error, context));
}

void find_causes(const OpenArgs& args, int error, const Context& context, int depth,
                 std::vector<Cause>& causes) {
  const Facts& facts = context.facts;
  if (auto plain = plain_cause(args, error, facts)) {
    causes.push_back(*std::move(plain));
    return;
  }
  // A user with the privilege that such an event needs has all other privileges. So this one alone
  // is the cause, unless something else forbids every event.
  const auto right =
      is_permission_error(error) ? internal::missing_own_right(args, facts) : std::nullopt;
  if (right && answer(internal::dummy(), facts.system()) == 0) {
    causes.push_back({right->field, right->says, right->advice});
    return;
  }
  std::vector<TriedVariation> all;
  for (Variation& each : internal::variations(args)) {
    if (is_costly(args, facts) && each.aspect != Aspect::Event) continue;
    const int now = answer(each.args, facts.system());
    all.push_back({std::move(each), now});
  }
  if (auto opened = least_drastic(all, 0, error); !opened.empty()) {
    const bool is_of_group = std::ranges::any_of(all, [](const TriedVariation& each) {
      return each.variation.field == "group_fd" && each.error == 0;
    });
    if (is_of_group) {
      std::ranges::move(causes_of_group(args, context), std::back_inserter(causes));
    } else {
      add_causes(opened, args, error, context, causes);
    }
    return;
  }
  if (is_costly(args, facts) && !all.empty()) {
    // The dummy is refused as well, so the cause is not only the event.
    const TriedVariation& dummy = all.back();
    find_causes(dummy.variation.args, dummy.error, context, depth, causes);
    if (is_permission_error(error)) add_own_causes(args, dummy.variation.args, context, causes);
    return;
  }
  // One fault hides another: name the first, and ask the kernel again without it (R2).
  if (auto cause = cause_of_no_exclusion(least_drastic(all, std::nullopt, error), args, error)) {
    causes.push_back(*std::move(cause));
    return;
  }
  const auto before = refusals(args, context);
  const auto others = least_drastic(altering(all, before, error, context), std::nullopt, error);
  if (depth == 0) return;
  if (others.empty()) {
    find_pair(all, args, error, context, causes);
    return;
  }
  causes.push_back(cause_of(others.front().variation, args, error, context));
  // A fault that only the dummy has is not a cause.
  const bool is_the_event = others.front().variation.aspect == Aspect::Event;
  if (is_the_event && is_refused_itself(others.front().variation, before, context)) return;
  find_causes(others.front().variation.args, others.front().error, context, depth - 1, causes);
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
    case Step::Name:
      return "ioctl PERF_EVENT_IOC_ID";
    case Step::Stop:
      return "ioctl PERF_EVENT_IOC_DISABLE";
  }
  return "a system call";
}

std::vector<Cause> causes_of_named(const OpenArgs& args, const std::string& name, int error,
                                   System& system, const OpenArgs* leader) {
  constexpr int kDepth = 3;
  std::vector<Cause> causes;
  if (error <= 0) return causes;
  const Facts facts{system};
  const Context context{facts, name, leader};
  find_causes(args, error, context, kDepth, causes);
  if (!causes.empty()) return causes;
  // No change altered the answer, so the cause is not this event, or it is two things in it.
  if (answer(internal::dummy(), system) == 0) {
    for (const Finding& each : refusals(args, context, is_permission_error(error))) {
      causes.push_back({each.field, each.says, each.advice});
    }
    return causes;
  }
  const auto paranoid = facts.sysctl("perf_event_paranoid");
  if (error == EACCES && paranoid.value_or(0) > 2) {
    causes.push_back({"perf_event_paranoid",
                      "kernel.perf_event_paranoid is " + std::to_string(*paranoid) +
                          ", at which Debian's kernels refuse every event",
                      std::string{"set it to 2 or below, or "} + kPerfmon});
  } else {
    causes.push_back({"", "not even an event that counts nothing may be opened",
                      "change the seccomp profile or the security module that forbids "
                      "perf_event_open, or use a kernel with CONFIG_PERF_EVENTS"});
  }
  return causes;
}

}  // namespace

std::vector<Cause> causes_of(const OpenArgs& args, int error, System& system) {
  return causes_of_named(args, {}, error, system, nullptr);
}

EventError EventError::of(const Finding& finding, std::string request) {
  return {.step = Step::Check,
          .io_error = {},
          .request = std::move(request),
          .causes = {{finding.field, finding.says, finding.advice}}};
}

EventError EventError::at_failure(Step step, int error, const OpenArgs& args,
                                  const std::string& name, System& system, const OpenArgs* leader) {
  EventError failed{.step = step,
                    .io_error = std::error_code(error, std::generic_category()),
                    .request = internal::describe(args, name),
                    .causes = {}};
  if (step == Step::Open) {
    failed.causes = causes_of_named(args, name, error, system, leader);
  } else if (auto cause = cause_of_step(step, error, args, system, leader)) {
    failed.causes.push_back(*std::move(cause));
  }
  return failed;
}

std::string EventError::message() const {
  if (!io_error) return request + ": " + (causes.empty() ? "impossible" : causes.front().says);
  return std::string{name_of(step)} + " of " + request + " failed: " + io_error.message();
}

std::string EventError::explain() const {
  std::string reply = io_error ? io_error.message() : "nothing, it was not asked";
  std::string advice;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    const bool is_in_reply =
        std::ranges::find(causes.begin(), causes.begin() + static_cast<std::ptrdiff_t>(i),
                          causes[i].says,
                          &Cause::says) != causes.begin() + static_cast<std::ptrdiff_t>(i);
    if (!is_in_reply) reply += (i == 0 ? ": " : "; and ") + causes[i].says;
    if (causes[i].advice.empty() || advice.find(causes[i].advice) != std::string::npos) continue;
    advice += (advice.empty() ? "" : "; ") + causes[i].advice;
  }
  const std::string call = step == Step::Check ? "" : std::string{name_of(step)} + " of ";
  if (advice.empty()) advice = "see perf_event_open(2) for this error";
  return "asked for: " + call + request + "\nthe system said: " + reply + "\nto change: " + advice;
}

}  // namespace perfring::event
