// A writer that is late: it reads its clock, spins, and outputs what it read.

#include <linux/bpf.h>
#include <linux/errno.h>

#include <bpf/bpf_helpers.h>

#include "harness/live/bpf/stall.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() asks for GPL-compatible

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} events SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct stall);
} stalled SEC(".maps");

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
