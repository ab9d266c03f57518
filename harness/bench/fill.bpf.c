// Has the kernel fill a ring with events. BPF_PROG_TEST_RUN of `fill`, with the values of enum
// fill_arg as context, writes that number of events to the current CPU's entry of `events`, and
// returns the number that the kernel refused.

#include "harness/bench/bpf_args.h"
#include "harness/live/bpf/writer.h"

// Event `index` contains its index, then zeros.
static __u64 payload[PAYLOAD_BYTES_MAX / sizeof(__u64)];

struct loop {
  void* context;
  struct payload_mix mix;
  __u32 refused;
};

static long write_one(__u32 index, struct loop* loop) {
  const __u32 size = payload_bytes(&loop->mix, index);
  if (size > sizeof(payload)) return 1;
  payload[0] = index;
  if (bpf_perf_event_output(loop->context, &events, BPF_F_CURRENT_CPU, payload, size) != 0) {
    loop->refused++;
  }
  return 0;
}

SEC("raw_tp")
int fill(struct bpf_raw_tracepoint_args* context) {
  struct loop loop = {
      .context = context,
      .mix = {.choices = (__u32)context->args[FILL_CHOICES],
              .bytes = {(__u32)context->args[FILL_BYTES], (__u32)context->args[FILL_BYTES + 1],
                        (__u32)context->args[FILL_BYTES + 2]}},
  };
  const __u32 events = (__u32)context->args[FILL_EVENTS];
  return bpf_loop(events, write_one, &loop, 0) == events ? (int)loop.refused : -1;
}

char gpl[] SEC("license") = "Dual MIT/GPL";
