#ifndef PERFRING_EVENT_DIAGNOSIS_CHECK_H_
#define PERFRING_EVENT_DIAGNOSIS_CHECK_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// check(): finds, before the kernel is asked, what the kernel would refuse in a request, and what
// it would accept without ever delivering anything. It reports what the request, /proc and /sys
// show. Only the kernel knows the rest (bits that are newer than the kernel, what a security module
// forbids), which EventError::explain() reports.
//
// Lifetime, threads: as for any function of its arguments.
// Errors: only std::bad_alloc. A file that cannot be read leads to no finding.
// Kernel: kernel/events/core.c: perf_copy_attr(), perf_event_open() at v6.18; the tables in the
// project's harness/RECORD_FACTS.md. Each row of them has a test.

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

// Checks a request. The refusals come first.
PERFRING_EXPORT std::vector<Finding> check(const Request& request, System& system = real_system());
// Checks one event that is sampled, that is, mapped and read. The pointer in config1 of a probe
// must be null or point to a string. All other fields may have any value.
PERFRING_EXPORT std::vector<Finding> check(const OpenArgs& args, System& system = real_system());
// Checks events that a Group counts.
PERFRING_EXPORT std::vector<Finding> check_group(const Request& request,
                                                 System& system = real_system());
// Checks one event of a group against the group's leader.
PERFRING_EXPORT std::vector<Finding> check_member(const OpenArgs& member, const OpenArgs& leader);

namespace internal {

// The case to check.
struct Case {
  const OpenArgs& args;
  const Facts& facts;
  std::optional<EventKind> kind;  // nullopt: its PMU has none
  const std::string& name;        // of the event, or empty
  std::vector<Finding>& found;
  bool counts = false;  // whether it is only read, and has no ring

  const perf_event_attr& attr() const noexcept { return args.attr; }
  bool is_cpu_wide() const noexcept {
    return args.pid == -1 || (args.flags & PERF_FLAG_PID_CGROUP) != 0;
  }
  bool is_of_caller() const noexcept { return !is_cpu_wide() && args.pid == 0; }
  bool is(EventKind which) const noexcept { return kind == which; }
  bool is_software(std::uint64_t config) const noexcept {
    return attr().type == PERF_TYPE_SOFTWARE && attr().config == config;
  }
  // Returns true if the kernel counts it without a hardware PMU.
  bool needs_no_hardware() const noexcept {
    return attr().type == PERF_TYPE_SOFTWARE || attr().type == PERF_TYPE_TRACEPOINT ||
           is(EventKind::Breakpoint) || is(EventKind::Kprobe) || is(EventKind::Uprobe);
  }
  bool is_msr() const { return is(EventKind::Pmu) && facts.pmu_of(attr().type) == "msr"; }
  // Returns true if it occurs only in the kernel, so that without the kernel it counts nothing
  // (R11, R16).
  bool occurs_only_in_kernel() const;
  bool has_sample_bits(std::uint64_t bits) const noexcept {
    return (attr().sample_type & bits) != 0;
  }
  bool has_period() const noexcept { return attr().sample_period != 0; }

  void add_refusal(const char* field, std::string problem, std::string advice) const {
    found.push_back({Finding::Severity::Refused, field, std::move(problem), std::move(advice)});
  }
  void add_silent(const char* field, std::string problem, std::string advice) const {
    found.push_back({Finding::Severity::Silent, field, std::move(problem), std::move(advice)});
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
// Returns the advice for a user who may not observe the kernel: to exclude it, if that leaves
// anything.
std::string advice_without_kernel(const Case& each);

// check_named() returns the findings of check() for an event with this name that is sampled or only
// counted, with or without the findings about privileges. advice_without_kernel() returns the
// advice for a user who may not observe the kernel.
std::vector<Finding> check_named(const OpenArgs& args, const std::string& name, const Facts& facts,
                                 bool with_rights = true, bool counts = false);
std::string advice_without_kernel(const OpenArgs& args, const std::string& name,
                                  const Facts& facts);
// Returns a privilege that the event itself needs, whatever else is requested, and that the caller
// lacks. The only remedy is a different event.
std::optional<Finding> missing_own_right(const OpenArgs& args, const Facts& facts);
// Checks whether the event can have a filter at all.
std::optional<Finding> check_filter(const OpenArgs& args, const Facts& facts);
// Checks whether the event can write to the ring of `first`.
std::optional<Finding> check_output(const OpenArgs& args, const OpenArgs& first);
// Returns true if the records name their event, as a ring of several events needs. If they do not,
// unknown_events_finding() returns the finding.
bool identifies_event(const perf_event_attr& attr) noexcept;
Finding unknown_events_finding();
bool is_kernel_address(const perf_event_attr& attr) noexcept;  // for a breakpoint
// Returns true for a breakpoint in the kernel, and for an event of a PMU that cannot exclude
// anything.
bool needs_kernel(const OpenArgs& args) noexcept;

void check_attr(const Case& each);    // impossible values
void check_rights(const Case& each);  // missing privileges
void check_silent(const Case& each);  // what is accepted but useless
void check_own_right(const Case& each);
void check_place(const Case& each);  // pid and CPU
void check_probe(const Case& each);  // uprobes, kprobes, breakpoints

// Checks what the events of a plan ask for together. A group has no rings.
void check_plan(const Request& request, const Plan& plan, const Facts& facts,
                std::vector<Finding>& found, bool is_group);
void check_cpus(const Plan& plan, const Facts& facts, std::vector<Finding>& found);

}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_DIAGNOSIS_CHECK_H_
