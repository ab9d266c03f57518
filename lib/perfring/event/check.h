#ifndef PERFRING_EVENT_CHECK_H_
#define PERFRING_EVENT_CHECK_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// check(): what the kernel would refuse in a request, and what it would accept silently and never
// answer, before the kernel is asked. It names what the request, /proc and /sys show; the rest only
// the kernel knows (bits that are newer than it is, what a security module forbids), and
// EventError::explain() says it.
//
// Lifetime, threads: as any function of its arguments. Errors: none but std::bad_alloc; a file that
// cannot be read makes no finding.
// Kernel: kernel/events/core.c: perf_copy_attr(), perf_event_open() at v6.18; the tables of the
// project's harness/RECORD_FACTS.md, of which each row has a test.

#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

// Refusals first.
PERFRING_EXPORT std::vector<Finding> check(const Request& request, System& system = real_system());
// Checks one event that is sampled: mapped and read. The pointer that a probe's attributes have in
// config1 must be null or point to a string; all other fields may have any value.
PERFRING_EXPORT std::vector<Finding> check(const Ask& ask, System& system = real_system());
// Checks events that a Group counts.
PERFRING_EXPORT std::vector<Finding> check_group(const Request& request,
                                                 System& system = real_system());
// Checks one event of a group against the group's leader.
PERFRING_EXPORT std::vector<Finding> check_member(const Ask& member, const Ask& leader);

namespace internal {

// The case that a row checks.
struct Case {
  const Ask& ask;
  const Facts& facts;
  std::optional<Kind> kind;  // nullopt: its PMU belongs to no kind
  const std::string& name;   // of the event, or empty
  std::vector<Finding>& found;
  bool counts = false;  // it is only read, and has no ring

  const perf_event_attr& attr() const noexcept { return ask.attr; }
  bool is_cpu_wide() const noexcept {
    return ask.pid == -1 || (ask.flags & PERF_FLAG_PID_CGROUP) != 0;
  }
  bool is_own() const noexcept { return !is_cpu_wide() && ask.pid == 0; }
  bool is(Kind which) const noexcept { return kind == which; }
  bool is_software(std::uint64_t config) const noexcept {
    return attr().type == PERF_TYPE_SOFTWARE && attr().config == config;
  }
  // Has no hardware PMU behind it.
  bool is_soft() const noexcept {
    return attr().type == PERF_TYPE_SOFTWARE || attr().type == PERF_TYPE_TRACEPOINT ||
           is(Kind::Breakpoint) || is(Kind::Kprobe) || is(Kind::Uprobe);
  }
  bool is_msr() const { return is(Kind::Pmu) && facts.pmu_of(attr().type) == "msr"; }
  // Occurs only in the kernel: without the kernel it counts nothing (R11, R16).
  bool is_of_the_kernel() const;
  bool samples(std::uint64_t bits) const noexcept { return (attr().sample_type & bits) != 0; }
  bool has_period() const noexcept { return attr().sample_period != 0; }

  void refused(const char* field, std::string says, std::string advice) const {
    found.push_back({Finding::Severity::Refused, field, std::move(says), std::move(advice)});
  }
  void silent(const char* field, std::string says, std::string advice) const {
    found.push_back({Finding::Severity::Silent, field, std::move(says), std::move(advice)});
  }
};

constexpr const char* kPerfmon = "run with CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN)";
// For an event with `inherit`.
constexpr const char* kNotMapped =
    "an event that children inherit cannot be mapped without a CPU (R9)";
constexpr const char* kPlaced = "open one for each CPU";
// For a cgroup.
constexpr const char* kNoPerfEvent = "the folder is in a cgroup v1 hierarchy without perf_event";
constexpr const char* kWithPerfEvent =
    "give a folder of cgroup v2, or of v1's perf_event: /proc/PID/cgroup names a process's";
// The advice if this user may not observe the kernel: exclude it, if that leaves anything.
std::string without_kernel(const Case& each);

// The findings of check() for an event of this name, which is sampled or only counted; with or
// without those about rights. And the advice if this user may not observe the kernel.
std::vector<Finding> check_named(const Ask& ask, const std::string& name, const Facts& facts,
                                 bool with_rights = true, bool counts = false);
std::string without_kernel(const Ask& ask, const std::string& name, const Facts& facts);
// A right that the event itself needs, whatever else is asked for, and that the caller lacks: the
// only way out is another event.
std::optional<Finding> right_of_its_own(const Ask& ask, const Facts& facts);
// Whether a filter can be set at all.
std::optional<Finding> check_filter(const Ask& ask, const Facts& facts);
// Whether the event cannot write to the ring of `first`.
std::optional<Finding> check_output(const Ask& ask, const Ask& first);
// Whether its records name their event, in a ring of several events; and the finding if not.
bool says_its_event(const perf_event_attr& attr) noexcept;
Finding of_unknown_events();
bool is_kernel_address(const perf_event_attr& attr) noexcept;  // of a breakpoint
// A breakpoint in the kernel, or an event of a PMU that cannot exclude anything.
bool is_nothing_without_kernel(const Ask& ask) noexcept;

void check_attr(const Case& each);    // impossible values
void check_rights(const Case& each);  // rights that the caller lacks
void check_silent(const Case& each);  // accepted, and useless
void check_own_right(const Case& each);
void check_place(const Case& each);  // pid and CPU
void check_probe(const Case& each);  // uprobes, kprobes, breakpoints

}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_CHECK_H_
