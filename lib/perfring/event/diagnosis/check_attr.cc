// Rows for what the kernel refuses: impossible values, and privileges that the caller lacks.

#include <linux/perf_event.h>

#include <bit>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"

namespace perfring::event::internal {
namespace {

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;

std::string text(std::uint64_t value) {
  return std::to_string(value);
}

bool wants_cpu_pmu(const Case& each) {
  return each.is(EventKind::Hardware) || each.is(EventKind::Cache) || each.is(EventKind::Raw);
}

void check_type(const Case& each) {
  const perf_event_attr& attr = each.attr();
  const bool wants_cpu = wants_cpu_pmu(each);
  if (!each.kind || (wants_cpu && !each.facts.has_cpu_pmu())) {
    each.add_refusal("type",
                     wants_cpu
                         ? "this machine has no PMU that counts what a processor does (a virtual "
                           "machine, mostly)"
                         : "this machine has no PMU of type " + text(attr.type),
                     "use a software event, such as cpu-clock (or_else())");
  }
  if (attr.type == PERF_TYPE_SOFTWARE && attr.config >= PERF_COUNT_SW_MAX) {
    each.add_refusal("config", "there is no software event " + text(attr.config),
                     "give one below " + text(PERF_COUNT_SW_MAX));
  }
  if (attr.type == PERF_TYPE_TRACEPOINT && attr.config == 0) {
    each.add_refusal("config", "there is no tracepoint 0", "give the id of its folder in tracefs");
  }
  const bool known_size = attr.size == 0 || (attr.size >= PERF_ATTR_SIZE_VER0 && attr.size <= 4096);
  if (!known_size) {
    each.add_refusal("size", "perf_event_attr cannot have " + text(attr.size) + " bytes",
                     "give sizeof(perf_event_attr)");
  }
}

void check_rate(const Case& each) {
  const perf_event_attr& attr = each.attr();
  if (attr.freq != 0) {
    const auto most = each.facts.sysctl("perf_event_max_sample_rate");
    if (most && attr.sample_freq > static_cast<std::uint64_t>(*most)) {
      each.add_refusal(
          "sample_freq",
          text(attr.sample_freq) + " Hz is more than kernel.perf_event_max_sample_rate",
          "ask for at most " + text(static_cast<std::uint64_t>(*most)) +
              " Hz: the kernel lowers that limit itself while it is overrun");
    }
  } else if ((attr.sample_period & kTopBit) != 0) {
    each.add_refusal("sample_period", "a period has at most 63 bits", "give a lower one");
  }
  // (arch/x86/events/msr.c: msr_event_init() at v6.18.)
  if (each.is_msr() && each.has_period()) {
    each.add_refusal("sample_period", "the PMU msr only counts: it cannot sample an event",
                     "leave its period or frequency out, and count it (Counter)");
  }
}

void check_registers(const Case& each, std::uint64_t bit, std::uint64_t mask, const char* field) {
  if (!each.has_sample_bits(bit)) return;
  if (mask == 0) each.add_refusal(field, "the mask of registers is empty", "give some registers");
#if defined(__x86_64__)
  constexpr std::uint64_t kGeneral = 0xff0fff;  // asm/perf_regs.h: all but DS, ES, FS and GS
  constexpr std::uint64_t kXmm = ~std::uint64_t{0} << 32;
  if ((mask & ~(kGeneral | kXmm)) != 0) {
    each.add_refusal(field, "the mask has registers that x86-64 does not provide",
                     "give registers of 0xff0fff only");
  }
  if ((mask & kXmm) != 0 && each.needs_no_hardware()) {
    each.add_refusal(field, "only a hardware PMU has the XMM registers",
                     "give registers of 0xff0fff only");
  }
#endif
}

void check_branches(const Case& each) {
  if (!each.has_sample_bits(PERF_SAMPLE_BRANCH_STACK)) return;
  if (each.needs_no_hardware()) {
    each.add_refusal("sample_type", "only a hardware PMU has a branch stack (LBR)",
                     "sample branches of a hardware event");
  }
  constexpr std::uint64_t kPrivileges = PERF_SAMPLE_BRANCH_PLM_ALL;
  if ((each.attr().branch_sample_type & ~kPrivileges) == 0) {
    each.add_refusal("branch_sample_type", "no kind of branch is selected",
                     "add PERF_SAMPLE_BRANCH_ANY, or another kind");
  }
}

void check_fields(const Case& each) {
  const perf_event_attr& attr = each.attr();
  check_registers(each, PERF_SAMPLE_REGS_USER, attr.sample_regs_user, "sample_regs_user");
  check_registers(each, PERF_SAMPLE_REGS_INTR, attr.sample_regs_intr, "sample_regs_intr");
  check_branches(each);
  if (each.has_sample_bits(PERF_SAMPLE_STACK_USER)) {
    constexpr std::uint32_t kMost = 65528;
    if (attr.sample_stack_user % 8 != 0 || attr.sample_stack_user > kMost) {
      each.add_refusal("sample_stack_user",
                       text(attr.sample_stack_user) + " is not a multiple of 8 up to 65528",
                       "give one: the kernel copies as much as fits into a record of 64 KiB (T11)");
    }
  }
  const auto deepest = each.facts.sysctl("perf_event_max_stack");
  if (deepest && each.has_sample_bits(PERF_SAMPLE_CALLCHAIN) && attr.sample_max_stack > *deepest) {
    each.add_refusal("sample_max_stack",
                     text(attr.sample_max_stack) + " is more than kernel.perf_event_max_stack",
                     "ask for at most " + text(static_cast<std::uint64_t>(*deepest)));
  }
  if (each.has_sample_bits(PERF_SAMPLE_WEIGHT) && each.has_sample_bits(PERF_SAMPLE_WEIGHT_STRUCT)) {
    each.add_refusal("sample_type", "WEIGHT and WEIGHT_STRUCT are two forms of one field",
                     "ask for one of them");
  }
  if (attr.use_clockid != 0) {
    const bool known = attr.clockid == CLOCK_REALTIME || attr.clockid == CLOCK_MONOTONIC ||
                       attr.clockid == CLOCK_MONOTONIC_RAW || attr.clockid == CLOCK_BOOTTIME ||
                       attr.clockid == CLOCK_TAI;
    // (kernel/events/core.c: perf_event_set_clock() at v6.18.)
    const bool is_read_in_nmi =
        attr.clockid == CLOCK_MONOTONIC || attr.clockid == CLOCK_MONOTONIC_RAW;
    if (!known) {
      each.add_refusal("clockid", "perf has no clock " + std::to_string(attr.clockid),
                       "give REALTIME, MONOTONIC, MONOTONIC_RAW, BOOTTIME or TAI");
    } else if (!is_read_in_nmi && (wants_cpu_pmu(each) || each.is_msr())) {
      each.add_refusal("clockid", "a PMU that may interrupt at any time cannot read this clock",
                       "give MONOTONIC or MONOTONIC_RAW");
    }
  }
  if (attr.aux_output != 0 && (each.needs_no_hardware() || each.is_msr())) {
    each.add_refusal("aux_output", "only a hardware PMU has an AUX area",
                     "set it on a hardware event");
  }
}

void check_flags(const Case& each) {
  const perf_event_attr& attr = each.attr();
  if (attr.inherit_thread != 0 && attr.inherit == 0) {
    each.add_refusal("inherit_thread", "inherit_thread narrows inherit, which is not set",
                     "set inherit as well");
  }
  if (attr.sigtrap != 0 && attr.remove_on_exec == 0) {
    each.add_refusal("sigtrap", "sigtrap needs remove_on_exec", "set that as well");
  } else if (attr.sigtrap != 0 && each.is_cpu_wide()) {
    each.add_refusal("sigtrap", "sigtrap signals the task, and all tasks are watched",
                     "watch a thread");
  }
  if (attr.enable_on_exec != 0 && attr.remove_on_exec != 0) {
    each.add_refusal("remove_on_exec", "remove_on_exec contradicts enable_on_exec",
                     "set one of them");
  }
  if (attr.inherit != 0 && each.has_sample_bits(PERF_SAMPLE_READ)) {
    const bool may = each.has_sample_bits(PERF_SAMPLE_TID);
    const char* const problem =
        may ? "before Linux 6.13 an event that samples READ cannot be inherited"
            : "an event that samples READ, without TID, cannot be inherited";
    if (may) {
      each.add_silent("inherit", problem, "do not inherit it there, or read the counters instead");
    } else {
      each.add_refusal("inherit", problem, "add TID, or read the counters instead");
    }
  }
  if (each.args.group_fd < -1) {
    each.add_refusal("group_fd",
                     "group_fd " + std::to_string(each.args.group_fd) + " is not a descriptor",
                     "give the leader's, or -1");
  }
}

}  // namespace

void check_attr(const Case& each) {
  check_type(each);
  check_rate(each);
  check_fields(each);
  check_flags(each);
}

namespace {

void check_paranoid(const Case& each) {
  const Facts& facts = each.facts;
  const auto level = facts.sysctl("perf_event_paranoid");
  const std::string now =
      "kernel.perf_event_paranoid is " + (level ? std::to_string(*level) : "not readable");
  if (each.is_cpu_wide() && facts.is_refused_by_paranoid(1)) {
    each.add_refusal(
        "pid", "this user may not watch all tasks: " + now,
        std::string{"watch your own tasks, or "} + kPerfmon + ", or set that to 0 or below");
  } else if (each.attr().exclude_kernel == 0 && facts.is_refused_by_paranoid(2)) {
    each.add_refusal("exclude_kernel", "this user may not observe the kernel: " + now,
                     advice_without_kernel(each) + ", or set that to 1 or below");
  }
  if (each.has_sample_bits(PERF_SAMPLE_PHYS_ADDR) && facts.is_refused_by_paranoid(2)) {
    each.add_refusal("sample_type", "this user may not sample physical addresses: " + now,
                     kPerfmon);
  }
  const bool is_syscall = tracepoint_in(each.name).starts_with("syscalls:");
  if (each.is(EventKind::Tracepoint) && each.has_sample_bits(PERF_SAMPLE_RAW) &&
      facts.is_refused_by_paranoid(0) && !(is_syscall && each.is_of_caller())) {
    each.add_refusal("sample_type",
                     "this user may not sample the data of a kernel tracepoint: " + now,
                     std::string{kPerfmon} + ", or leave RAW out");
  }
}

}  // namespace

bool is_kernel_address(const perf_event_attr& attr) noexcept {
  return attr.type == PERF_TYPE_BREAKPOINT && sizeof(void*) == 8 && attr.bp_addr >> 63 != 0;
}

bool Case::occurs_only_in_kernel() const {
  // At the entry and the exit of a system call, the registers are those of user code.
  const bool is_syscall = tracepoint_in(name).starts_with("syscalls:sys_");
  return is_software(PERF_COUNT_SW_CONTEXT_SWITCHES) || is_software(PERF_COUNT_SW_CPU_MIGRATIONS) ||
         is_software(PERF_COUNT_SW_CGROUP_SWITCHES) || is(EventKind::Kprobe) ||
         (is(EventKind::Tracepoint) && !is_syscall) || is_kernel_address(attr());
}

std::string advice_without_kernel(const Case& each) {
  if (!each.occurs_only_in_kernel()) return std::string{"exclude the kernel, or "} + kPerfmon;
  const bool has_changes = each.is_software(PERF_COUNT_SW_CONTEXT_SWITCHES);
  return std::string{has_changes ? "use changes({.switches = true}), or " : ""} + kPerfmon;
}

void check_own_right(const Case& each) {
  const Facts& facts = each.facts;
  if (each.is(EventKind::Uprobe) && !facts.is_admin()) {
    each.add_refusal("type", "a uprobe needs CAP_SYS_ADMIN, and no sysctl changes that",
                     "run with CAP_SYS_ADMIN");
  }
  if (each.is(EventKind::Kprobe) && !facts.has_all_rights()) {
    each.add_refusal("type", "a kprobe needs CAP_PERFMON, and no sysctl changes that", kPerfmon);
  }
  if (is_kernel_address(each.attr()) && !facts.is_admin()) {
    each.add_refusal("bp_addr", "a breakpoint in the kernel needs CAP_SYS_ADMIN",
                     "give an address of a program, or run with CAP_SYS_ADMIN");
  }
}

void check_rights(const Case& each) {
  const Facts& facts = each.facts;
  check_paranoid(each);
  if (each.attr().namespaces != 0 && !facts.has_all_rights()) {
    each.add_refusal("namespaces",
                     "this user may not observe namespaces, whatever kernel.perf_event_paranoid is",
                     kPerfmon);
  }
  check_own_right(each);
  if (!each.is_cpu_wide() && each.args.pid > 0 && !facts.has_all_rights()) {
    const auto its = facts.effective_uid(std::to_string(each.args.pid));
    if (its && its != facts.effective_uid("self")) {
      each.add_refusal("pid", "process " + std::to_string(each.args.pid) + " is another user's",
                       kPerfmon);
    }
  }
  if (each.has_sample_bits(PERF_SAMPLE_REGS_INTR)) {
    const auto lockdown = facts.system().read("/sys/kernel/security/lockdown");
    if (lockdown && lockdown->find("[confidentiality]") != std::string::npos) {
      each.add_refusal("sample_type", "the kernel is locked down: [confidentiality]",
                       "leave REGS_INTR out, or boot with lockdown=integrity");
    }
  }
}

}  // namespace perfring::event::internal

namespace perfring::event {
namespace {

bool has_clock_of(const perf_event_attr& one, const perf_event_attr& other) {
  return one.use_clockid == other.use_clockid &&
         (one.use_clockid == 0 || one.clockid == other.clockid);
}

}  // namespace

std::vector<Finding> check_member(const OpenArgs& member, const OpenArgs& leader) {
  std::vector<Finding> found;
  const auto add_refusal = [&found](const char* field, const char* problem, const char* advice) {
    found.push_back({Finding::Severity::Refused, field, problem, advice});
  };
  if (member.cpu != leader.cpu) {
    add_refusal("cpu", "the group's leader is on another CPU", "open all of a group on one CPU");
  }
  if ((member.pid == -1) != (leader.pid == -1) || member.pid != leader.pid) {
    add_refusal("pid", "the group's leader watches other tasks",
                "open all of a group for the same tasks");
  }
  if (!has_clock_of(member.attr, leader.attr)) {
    add_refusal("clockid", "the group's leader has another clock", "give all the same");
  }
  if (member.attr.pinned != 0) {
    add_refusal("pinned", "only a group's leader may be pinned", "set it on the leader");
  }
  if (member.attr.exclusive != 0) {
    add_refusal("exclusive", "only a group's leader may be exclusive", "set it on the leader");
  }
  // (perf_event_open() at v6.18 checks this only for the event of a task.)
  const bool is_of_a_task = member.pid != -1 && (member.flags & PERF_FLAG_PID_CGROUP) == 0;
  if (is_of_a_task && member.attr.inherit != leader.attr.inherit) {
    add_refusal("inherit", "the group's leader is inherited and the member is not, or the reverse",
                "give all the same");
  }
  return found;
}

// kernel/events/core.c: perf_event_set_output() at v6.18.
std::optional<Finding> internal::check_output(const OpenArgs& args, const OpenArgs& first) {
  if (has_clock_of(args.attr, first.attr)) return std::nullopt;
  return Finding{.severity = Finding::Severity::Refused,
                 .field = "clockid",
                 .says = "the events of one ring have different clocks",
                 .advice = "give all the same, or open a Sampler for each clock"};
}

bool internal::identifies_event(const perf_event_attr& attr) noexcept {
  return (attr.sample_type & PERF_SAMPLE_IDENTIFIER) != 0 && attr.sample_id_all != 0;
}

Finding internal::unknown_events_finding() {
  return {.severity = Finding::Severity::Refused,
          .field = "sample_type",
          .says =
              "several events write to one ring, and their records do not identify their event "
              "(R12)",
          .advice = "keep IDENTIFIER and sample_id_all set"};
}

}  // namespace perfring::event
