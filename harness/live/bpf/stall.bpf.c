// A writer that is late: it reads its clock, spins, and outputs what it read.

#include "harness/live/bpf/stall.h"
#include "harness/live/bpf/writer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() asks for GPL-compatible

SHARED_WITH_USER_SPACE(stalled, struct stall);

static long spin(__u32 i __attribute__((unused)), void* until) {
  return bpf_ktime_get_ns() >= *(__u64*)until;  // 1 ends the loop
}

SEC("raw_tp")
int stall(struct bpf_raw_tracepoint_args* ctx) {
  const __u32 zero = 0;
  struct stall* shared = bpf_map_lookup_elem(&stalled, &zero);
  if (!shared) return -EDOM;
  __u64 key = bpf_ktime_get_ns();
  __u64 until = key + ctx->args[STALL_NS];
  *(volatile __u64*)&shared->started = key;
  bpf_loop(1 << 23, spin, &until, 0);
  return bpf_perf_event_output(ctx, &events, ctx->args[STALL_INDEX], &key, sizeof(key));
}
