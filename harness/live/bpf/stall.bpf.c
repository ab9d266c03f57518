// A late writer: it reads its clock, spins, and outputs the time that it read.

#include "harness/live/bpf/late.h"
#include "harness/live/bpf/writer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() requires GPL-compatible

SHARED_WITH_USER_SPACE(stalled, struct stall);

SEC("raw_tp")
int stall(struct bpf_raw_tracepoint_args* ctx) {
  const __u32 zero = 0;
  struct stall* shared = bpf_map_lookup_elem(&stalled, &zero);
  if (!shared) return -EDOM;
  __u64 key = bpf_ktime_get_ns();
  *(volatile __u64*)&shared->started = key;
  spin_until(key + ctx->args[STALL_NS]);
  return bpf_perf_event_output(ctx, &events, ctx->args[STALL_INDEX], &key, sizeof(key));
}
