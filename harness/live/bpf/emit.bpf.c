// The live producer: raw-tracepoint programs that are never attached. They run through
// BPF_PROG_TEST_RUN, and return the result of bpf_perf_event_output().

#include "harness/live/bpf/emit.h"
#include "harness/live/bpf/writer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() requires GPL-compatible

SHARED_WITH_USER_SPACE(emission, struct emission);

static struct emission* shared(void) {
  const __u32 zero = 0;
  return bpf_map_lookup_elem(&emission, &zero);
}

SEC("raw_tp")
int emit(struct bpf_raw_tracepoint_args* ctx) {
  struct emission* e = shared();
  const __u64 size = ctx->args[EMIT_SIZE];
  if (!e || size > EMISSION_PAYLOAD_MAX) return -EDOM;  // the helper never returns that
  return bpf_perf_event_output(ctx, &events, ctx->args[EMIT_FLAGS], e->payload, size);
}

// A loop of its own, not bpf_loop(): 32-bit kernels cannot call back into a program (K57).
SEC("raw_tp")
int emit_many(struct bpf_raw_tracepoint_args* ctx) {
  struct emission* e = shared();
  const __u64 count = ctx->args[EMIT_COUNT];
  if (!e) return -EDOM;
  long rc = -EDOM;
  for (__u32 i = 0; i < EMIT_RUN_MAX && i < count; ++i) {
    // Reload the size each time, unknown to the compiler: 6.1's verifier forgets a bound in a
    // spill.
    __u64 size = ctx->args[EMIT_SIZE];
    asm volatile("" : "+r"(size));
    if (size > EMISSION_PAYLOAD_MAX) return -EDOM;
    *(__u64*)e->payload = ctx->args[EMIT_FIRST] + i;
    rc = bpf_perf_event_output(ctx, &events, ctx->args[EMIT_FLAGS], e->payload, size);
    e->accepted += rc == 0;
    e->refused += rc != 0;
  }
  return rc;
}
