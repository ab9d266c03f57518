#include "harness/live/live_kernel.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/bpf_common.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "harness/live/bpf_object.h"
#include "harness/program/privileges.h"
#include "perfring/os/cpus.h"
#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"

namespace perfring::live {
namespace {

constexpr int kNotSupported = 524;  // ENOTSUPP, the kernel's own (include/linux/errno.h)

// Returns a reason if a privilege or a kernel feature would cure the error. The probes are too
// simple to be refused for another reason. If they are, the tests should fail and show it.
std::optional<std::string> reason(const char* what, int error_number) {
  switch (error_number) {
    case EPERM:
    case EACCES:
      return std::string{"no privilege for "} + what + ": " +
             std::generic_category().message(error_number) + " (user " +
             std::to_string(::geteuid()) + ", kernel.perf_event_paranoid " +
             os::read_line("/proc/sys/kernel/perf_event_paranoid").value_or("unreadable") + ")";
    case ENOSYS:
    case ENOENT:
    case EOPNOTSUPP:
    case kNotSupported:
      return std::string{"this kernel lacks "} + what + " (error " + std::to_string(error_number) +
             ")";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> why_no_event(std::uint32_t cpu) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_type = PERF_SAMPLE_RAW;
  const auto event = os::perf_event_open(attr, cpu);
  return event ? std::nullopt
               : reason("perf_event_open of a CPU-wide event", event.error().value());
}

std::optional<std::string> why_no_map() {
  const os::Fd map{bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, nullptr, 4, 4, 1, nullptr)};
  return map.get() >= 0 ? std::nullopt : reason("bpf BPF_MAP_CREATE", errno);
}

// Loads and runs "return 0".
std::optional<std::string> why_no_program(std::uint32_t cpu) {
  std::array<bpf_insn, 2> program{};
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  program[1].code = BPF_JMP | BPF_EXIT;
  const os::Fd fd{bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, nullptr, "GPL", program.data(),
                                program.size(), nullptr)};
  if (fd.get() < 0) return reason("bpf BPF_PROG_LOAD", errno);
  const auto ran = test_run(fd.get(), cpu, {});
  return ran ? std::nullopt
             : reason("bpf BPF_PROG_TEST_RUN of a raw tracepoint (5.10)", ran.error().value());
}

}  // namespace

std::optional<std::string> why_no_live_kernel() {
  const auto cpus = os::online_cpus();
  if (!cpus) return "the online CPUs are not known.\n" + cpus.error().explain();
  if (auto why = why_no_event(cpus->front())) return why;
  if (auto why = why_no_map()) return why;
  return why_no_program(cpus->front());
}

std::string advice_on_capabilities(bool has_bpf, bool has_perfmon) {
  if (has_bpf && has_perfmon) return {};
  const bool both = !has_bpf && !has_perfmon;
  const std::string lacking = both      ? "CAP_BPF and CAP_PERFMON"
                              : has_bpf ? "CAP_PERFMON"
                                        : "CAP_BPF";
  return "This process lacks " + lacking + ": run as root, or grant " + (both ? "them" : "it");
}

std::string advice_on_capabilities() {
  if (has_capability(CAP_SYS_ADMIN)) return {};
  return advice_on_capabilities(has_capability(CAP_BPF), has_capability(CAP_PERFMON));
}

}  // namespace perfring::live
