// Writers that nest. `task` outputs records when it is run (BPF_PROG_TEST_RUN), the first of them
// as late as requested. `interrupt` outputs one whenever the event that it is attached to
// overflows, which interrupts the other.

#include <linux/bpf_perf_event.h>

#include "harness/live/bpf/late.h"
#include "harness/live/bpf/writer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() requires GPL-compatible

// Sized by user space: an entry for each possible CPU.
SHARED_WITH_USER_SPACE(counts, struct nested_counts);

static __attribute__((always_inline)) int output(void* context, struct nested_counts* all,
                                                 __u32 cpu, __u32 source, __u64 key) {
  struct nested_record record = {
      .key = key,
      .cpu = cpu,
      .source = source,
      .sequence = all->attempted[source]++,
  };
  long rc = bpf_perf_event_output(context, &events, BPF_F_CURRENT_CPU, &record, sizeof(record));
  all->accepted[source] += rc == 0;
  return rc == 0;
}

SEC("raw_tp")
int task(struct bpf_raw_tracepoint_args* context) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct nested_counts* all = bpf_map_lookup_elem(&counts, &cpu);
  const __u64 count = context->args[NESTED_COUNT];
  const __u64 late = context->args[NESTED_LATE_NS];
  if (!all) return -EDOM;
  __u64 key = bpf_ktime_get_ns();
  // A loop of its own, not bpf_loop(): 32-bit kernels cannot call back into a program (K57).
  for (__u32 i = 0; i < NESTED_SPINS && bpf_ktime_get_ns() - key < late; ++i) {
  }
  for (__u32 i = 0; i < NESTED_RUN_MAX && i < count; ++i) {
    output(context, all, cpu, NESTED_TASK, key);
    key = bpf_ktime_get_ns();
  }
  return 0;
}

SEC("perf_event")
int interrupt(struct bpf_perf_event_data* context) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct nested_counts* all = bpf_map_lookup_elem(&counts, &cpu);
  if (all) output(context, all, cpu, NESTED_INTERRUPT, bpf_ktime_get_ns());
  return 0;
}
