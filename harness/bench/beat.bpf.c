// A writer that keeps a rate. BPF_PROG_TEST_RUN of `beat` outputs N records to the current CPU's
// entry of `events`, one in each period, and spins in between. Each record begins with the clock,
// read just before the output.

#include "harness/bench/bpf_args.h"
#include "harness/live/bpf/writer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() is GPL-only

SHARED_WITH_USER_SPACE(counts, struct beat_counts);

static __u64 payload[(BEAT_PAYLOAD + 7) / 8];

struct loop {
  void* context;
  struct beat_counts* counts;
  __u64 now;
  __u64 start;
  __u64 period;  // ps
};

static long beat_one(__u32 index, struct loop* loop) {
  __u64 due = loop->start + index * loop->period / 1000;
  if (loop->now < due) {
    spin_until(due);
    loop->now = bpf_ktime_get_ns();
  }
  payload[0] = loop->now;
  long rc = bpf_perf_event_output(loop->context, &events, BPF_F_CURRENT_CPU, payload, BEAT_PAYLOAD);
  // The end of one output is the clock of the next if that is due: one reading per output.
  __u64 after = bpf_ktime_get_ns();
  loop->counts->output_ns += after - loop->now;
  loop->counts->accepted += rc == 0;
  loop->counts->refused += rc != 0;
  loop->now = after;
  return 0;
}

SEC("raw_tp")
int beat(struct bpf_raw_tracepoint_args* context) {
  const __u32 zero = 0;
  struct loop loop = {
      .context = context,
      .counts = bpf_map_lookup_elem(&counts, &zero),
      .now = bpf_ktime_get_ns(),
      .period = context->args[BEAT_PERIOD_PS],
  };
  if (!loop.counts) return -EDOM;
  loop.start = loop.now;
  bpf_loop((__u32)context->args[BEAT_COUNT], beat_one, &loop, 0);
  // Spin until the last period is over, so that consecutive runs keep the rate.
  spin_until(loop.start + context->args[BEAT_COUNT] * loop.period / 1000);
  return 0;
}
