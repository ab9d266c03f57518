// Rows for what the kernel accepts but never or hardly ever answers, and for faults in probes.

#include <linux/perf_event.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"

namespace perfring::event::internal {
namespace {

bool has_side_band(const perf_event_attr& attr) {
  return attr.mmap || attr.mmap2 || attr.mmap_data || attr.comm || attr.task ||
         attr.context_switch || attr.ksymbol || attr.bpf_event || attr.text_poke;
}

void check_exclusions(const Case& each) {
  const perf_event_attr& attr = each.attr();
  if (attr.exclude_kernel != 0 && each.occurs_only_in_kernel()) {
    if (each.is(EventKind::Tracepoint)) {
      each.add_silent("exclude_kernel", "a tracepoint is in the kernel: this counts nothing (R16)",
                      "include the kernel");
    } else if (each.is(EventKind::Kprobe)) {
      each.add_silent("exclude_kernel", "a kprobe is in the kernel: no records come",
                      "include the kernel");
    } else if (each.is(EventKind::Software)) {
      each.add_silent("exclude_kernel",
                      "only the kernel switches and migrates tasks: this counts nothing",
                      "include the kernel, or use changes({.switches = true})");
    }
  }
  if (attr.exclude_user != 0 && each.is(EventKind::Tracepoint)) {
    each.add_silent("exclude_user", "tracepoints ignore it (R16)", "filter by the records' pid");
  }
  // (include/linux/perf_event.h: event_has_any_exclude_flag() at v6.18.)
  const char* const left_out = attr.exclude_kernel != 0  ? "exclude_kernel"
                               : attr.exclude_user != 0  ? "exclude_user"
                               : attr.exclude_hv != 0    ? "exclude_hv"
                               : attr.exclude_idle != 0  ? "exclude_idle"
                               : attr.exclude_host != 0  ? "exclude_host"
                               : attr.exclude_guest != 0 ? "exclude_guest"
                                                         : nullptr;
  if (left_out != nullptr && each.is_msr()) {
    each.add_refusal(left_out, "the PMU msr cannot exclude anything", "include everything");
  }
  if (attr.exclude_user != 0 && attr.exclude_kernel != 0) {
    each.add_silent("exclude_user", "user and kernel are both excluded: no records come",
                    "include one of them");
  }
  if (each.has_sample_bits(PERF_SAMPLE_CALLCHAIN) && attr.exclude_callchain_user != 0 &&
      attr.exclude_callchain_kernel != 0) {
    each.add_silent("exclude_callchain_user",
                    "both parts of the callchain are excluded: it is empty", "include one of them");
  }
}

void check_periods(const Case& each) {
  const perf_event_attr& attr = each.attr();
  const bool is_dummy = each.is_software(PERF_COUNT_SW_DUMMY);
  const bool wants_records = has_side_band(attr) || attr.cgroup || attr.namespaces;
  if (!each.counts && !each.has_period() && !wants_records && !is_dummy) {
    each.add_silent("sample_period", "without a period, it only counts, and writes no records",
                    "give a period or a frequency, or use a Counter");
  }
  if (is_dummy && !wants_records) {
    each.add_silent("config", "dummy never occurs, and no changes are requested",
                    "request some of changes()");
  }
  if (each.is_cpu_wide() && (attr.cgroup || attr.namespaces) && !has_side_band(attr)) {
    each.add_silent(attr.cgroup ? "cgroup" : "namespaces",
                    "on a whole CPU, it produces no records by itself (R10)", "set comm as well");
  }
  const bool is_each =
      each.is(EventKind::Tracepoint) || each.is(EventKind::Kprobe) || each.is(EventKind::Uprobe);
  if (is_each && attr.freq != 0) {
    each.add_silent("freq", "a frequency samples only some of the occurrences: 5 of 100 at 4000 Hz",
                    "give a period of 1");
  } else if (is_each && attr.sample_period > 1) {
    each.add_silent(
        "sample_period",
        "no record comes before the " + std::to_string(attr.sample_period) + "th occurrence (R7)",
        "give a period of 1");
  }
  const bool is_clock =
      each.is_software(PERF_COUNT_SW_CPU_CLOCK) || each.is_software(PERF_COUNT_SW_TASK_CLOCK);
  constexpr std::uint64_t kShortest = 10'000;  // ns: the kernel raises shorter ones to it
  if (is_clock && attr.freq == 0 && attr.sample_period != 0 && attr.sample_period < kShortest) {
    each.add_silent("sample_period", "a clock's period is in nanoseconds, and at least 10000",
                    "give a longer one, or a frequency");
  }
}

void check_targets(const Case& each) {
  const bool is_syscall = tracepoint_in(each.name).starts_with("syscalls:");
  if (each.is(EventKind::Tracepoint) && !each.is_cpu_wide() && !is_syscall) {
    each.add_silent("pid",
                    "an event of one task does not see a tracepoint that fires in other tasks (R7)",
                    "watch system()");
  }
  if (each.is(EventKind::Pmu) && !each.is_cpu_wide()) {
    const auto pmu = each.facts.pmu_of(each.attr().type);
    if (pmu && each.facts.system().read(kDevices + *pmu + "/cpumask")) {
      each.add_refusal("pid", "the PMU " + *pmu + " counts for a whole CPU", "watch system()");
    }
  }
  if (each.is_software(PERF_COUNT_SW_BPF_OUTPUT)) {
    each.add_silent("config", "only BPF programs write its records",
                    "put the event into a program's map, as PerfEventArray does");
  }
#if defined(__x86_64__) || defined(__i386__)
  if (each.is_software(PERF_COUNT_SW_ALIGNMENT_FAULTS) ||
      each.is_software(PERF_COUNT_SW_EMULATION_FAULTS)) {
    each.add_silent("config", "x86 has no such faults", "use another event");
  }
#endif
}

// The tracer's own tracepoints (kernel/trace/trace_event_perf.c: perf_trace_event_perm() at v6.18).
void check_tracer(const Case& each) {
  const std::string_view tracepoint = tracepoint_in(each.name);
  if (!tracepoint.starts_with("ftrace:")) return;
  const perf_event_attr& attr = each.attr();
  if (tracepoint != "ftrace:function") {
    each.add_silent("config",
                    "the tracer writes this event for itself, and does not pass it to perf",
                    "use another one");
  } else if (each.has_period() && attr.exclude_callchain_user == 0) {
    each.add_refusal("exclude_callchain_user", "ftrace:function has no user callchain",
                     "set exclude_callchain_user; or use a kprobe on the function");
  } else if (each.has_period() && each.has_sample_bits(PERF_SAMPLE_STACK_USER)) {
    each.add_refusal("sample_type", "ftrace:function has no user stack", "leave STACK_USER out");
  }
}

void check_useless_flags(const Case& each) {
  const perf_event_attr& attr = each.attr();
  const auto useless = [&each](bool is, const char* field, const char* problem,
                               const char* advice) {
    if (is) each.add_silent(field, problem, advice);
  };
  useless(attr.precise_ip != 0 && each.needs_no_hardware(), "precise_ip",
          "a software event's ip cannot be more precise", "leave it out");
  useless(each.is_cpu_wide() && attr.enable_on_exec, "enable_on_exec",
          "an event of a whole CPU is in no task that calls execve()", "enable it yourself");
  useless(each.is_cpu_wide() && attr.remove_on_exec, "remove_on_exec",
          "an event of a whole CPU is in no task that calls execve()", "leave it out");
  useless(attr.inherit_stat && !attr.inherit, "inherit_stat", "nothing is inherited",
          "set inherit as well");
  useless(attr.comm_exec && !attr.comm, "comm_exec", "no COMM is requested", "set comm as well");
  useless(attr.mmap2 && !attr.mmap && !attr.mmap_data, "mmap2", "no MMAP is requested",
          "set mmap as well");
  useless(attr.build_id && !attr.mmap2, "build_id", "no MMAP2 is requested",
          "set mmap and mmap2 as well");
  useless(attr.write_backward && !each.counts, "write_backward",
          "the ring is written backwards, and a Sampler reads forwards",
          "leave it out, or use an OverwritableRing");
  useless(!attr.watermark && attr.wakeup_events != 0 && has_side_band(attr), "wakeup_events",
          "side-band records do not count towards wakeup_events: only a half-full ring wakes (R3)",
          "set watermark and wakeup_watermark = 1");
}

// Returns true if config has bits that no format of the uprobe PMU has.
bool has_unknown_probe_bits(const Case& each) {
  constexpr std::uint64_t kRetprobe = 1;
  constexpr std::uint64_t kReferences = ~std::uint64_t{0} << 32;  // ref_ctr_offset
  return (each.attr().config & ~(kRetprobe | kReferences)) != 0;
}

void check_uprobe(const Case& each) {
  const auto* const path =
      reinterpret_cast<const char*>(static_cast<std::uintptr_t>(each.attr().config1));
  if (path == nullptr || *path == '\0') {
    each.add_refusal("uprobe_path", "a uprobe needs a file", "give its path");
    return;
  }
  const auto file = each.facts.system().look_at(path);
  constexpr std::uint64_t kProc = 0x9fa0;  // PROC_SUPER_MAGIC
  if (!file) {
    each.add_refusal("uprobe_path", std::string{path} + ": " + file.error().message(),
                     "give a program or a library");
  } else if (file->type != FileKind::Type::Regular || file->file_system == kProc) {
    each.add_refusal("uprobe_path", std::string{path} + " is not a program or a library",
                     "give the path of one");
  } else if (each.attr().config2 >= file->size) {
    each.add_refusal("probe_offset",
                     std::to_string(each.attr().config2) + " is past the end of the file",
                     "give an offset in the file, not a virtual address; or a symbol");
  } else if (const auto text = each.facts.system().read(path);
             text && !may_be_code(*text, each.attr().config2)) {
    each.add_silent("probe_offset",
                    "there is no code at " + std::to_string(each.attr().config2) + " of " + path +
                        ": the probe is never hit, and a breakpoint overwrites what is there (R26)",
                    "give the offset of an instruction, or a function's symbol");
  }
  if (has_unknown_probe_bits(each)) {
    each.add_silent("config", "a uprobe ignores the bits of config that it has no format for",
                    "leave them 0");
  }
}

void check_kprobe(const Case& each) {
  const auto* const name =
      reinterpret_cast<const char*>(static_cast<std::uintptr_t>(each.attr().config1));
  const bool is_named = name != nullptr && *name != '\0';
  const bool is_return = (each.attr().config & 1) != 0;
  if (name != nullptr && *name == '\0') {
    each.add_refusal("kprobe_func", "a kprobe needs a function", "give its name, or an address");
  } else if (is_return && !is_named) {
    each.add_refusal("kprobe_func", "a kretprobe needs a function's name", "give it");
  } else if (is_return && each.attr().config2 != 0) {
    each.add_refusal("probe_offset", "a kretprobe cannot be at an offset in a function",
                     "leave the offset out");
  }
}

void check_breakpoint(const Case& each) {
  const perf_event_attr& attr = each.attr();
  const bool writes = (attr.bp_type & 2) != 0;
  const bool executes = (attr.bp_type & 4) != 0;
#if defined(__x86_64__) || defined(__i386__)
  if (attr.bp_type == 1) {
    each.add_refusal("bp_type", "x86 has no breakpoint on reads only", "watch reads and writes");
  }
#endif
  if (attr.bp_type == 0 || (writes && executes) || attr.bp_type > 7) {
    each.add_refusal("bp_type", "a breakpoint is either on accesses or on execution",
                     "give rw, w or x");
  }
  if (executes && attr.bp_len != sizeof(long)) {
    each.add_refusal("bp_len", "a breakpoint on execution has sizeof(long) bytes",
                     "give that length");
  } else if (!std::has_single_bit(attr.bp_len) || attr.bp_len > 8) {
    each.add_refusal("bp_len", "a breakpoint cannot have " + std::to_string(attr.bp_len) + " bytes",
                     "give 1, 2, 4 or 8");
  } else if (!executes && attr.bp_addr % attr.bp_len != 0) {
    each.add_refusal("bp_addr", "the address is not a multiple of the length", "align it");
  }
  if (is_kernel_address(attr) && attr.exclude_kernel != 0) {
    each.add_refusal("bp_addr", "the address is in the kernel, which is excluded",
                     "include the kernel, or give an address of a program");
  }
}

}  // namespace

void check_silent(const Case& each) {
  check_exclusions(each);
  check_periods(each);
  check_targets(each);
  check_tracer(each);
  check_useless_flags(each);
}

void check_probe(const Case& each) {
  if (each.is(EventKind::Uprobe)) check_uprobe(each);
  if (each.is(EventKind::Kprobe)) check_kprobe(each);
  if (each.is(EventKind::Breakpoint)) check_breakpoint(each);
}

}  // namespace perfring::event::internal
