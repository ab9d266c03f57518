#ifndef HARNESS_KERNEL_BPF_OUTPUT_H_
#define HARNESS_KERNEL_BPF_OUTPUT_H_

// The BPF helper: kernel/trace/bpf_trace.c at v6.18.

#include <linux/bpf.h>
#include <linux/types.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/sample.h"

namespace perfring::kernel {

// bpf_trace.c, __bpf_perf_event_output().
template <Cpu C>
int output_to_entry(C& cpu, const bpf_array& map, __u64 flags, perf_sample_data& data,
                    std::span<const std::byte> payload) {
  __u64 index = flags & BPF_F_INDEX_MASK;
  if (index == BPF_F_CURRENT_CPU) index = static_cast<__u64>(cpu.id);
  if (index >= map.max_entries()) return -E2BIG;
  perf_event* const event = map.event_at(static_cast<std::size_t>(index));
  if (event == nullptr) return -ENOENT;
  const bool output =
      event->attr.type == PERF_TYPE_SOFTWARE && event->attr.config == PERF_COUNT_SW_BPF_OUTPUT;
  if (!output) return -EINVAL;
  if (event->oncpu != cpu.id) return -EOPNOTSUPP;
  perf_sample_save_raw_data(data, *event, payload);
  return perf_event_output(cpu, *event, data);
}

// The helper, from a program that runs on `cpu`. 0, or a negative errno (K43). Up to three may be
// at work on a CPU, each interrupting the one before; the next is refused with EBUSY.
template <Cpu C>
int bpf_perf_event_output(C& cpu, const bpf_array& map, __u64 flags,
                          std::span<const std::byte> payload) {
  constexpr int kNestLevels = 3;
  int error = -EBUSY;
  if (++cpu.bpf_trace_nest_level <= kNestLevels) {
    perf_sample_data data;
    error = (flags & ~__u64{BPF_F_INDEX_MASK}) != 0
                ? -EINVAL
                : output_to_entry(cpu, map, flags, data, payload);
  }
  --cpu.bpf_trace_nest_level;
  return error;
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_BPF_OUTPUT_H_
