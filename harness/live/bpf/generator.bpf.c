/* Generates genuine records as fast as the kernel can: bpf_loop over bpf_perf_event_output in a
 * raw-tracepoint program, which user space runs with BPF_PROG_TEST_RUN (it is never attached). */

#include "harness/live/bpf/generator.h"
#include "harness/live/bpf/writer.h"

/* Sized by user space: an entry for each possible CPU. */
SHARED_WITH_USER_SPACE(states, struct generator_state);

struct loop {
  void* program_context;
  struct generator_run run;
};

static long output_one(__u32 index __attribute__((unused)), void* argument) {
  struct loop* loop = argument;
  __u32 cpu = bpf_get_smp_processor_id();
  struct generator_state* state = bpf_map_lookup_elem(&states, &cpu);
  if (!state) return 1;

  __u64 sequence = state->outputs++;
  __u32 size = generator_payload_size(sequence, cpu, (__u32)loop->run.payload_min,
                                      (__u32)loop->run.payload_max);
  __u32 window = generator_window(sequence);
  if (size > GENERATOR_PAYLOAD_MAX || window > 8 * (GENERATOR_WINDOWS - 1)) return 1;

  /* The record's 8 bytes replace those of the pattern during the output only. */
  __u64* record = (__u64*)&state->pattern[window];
  __u64 kept = *record;
  *(struct generator_record*)record = (struct generator_record){
      .sequence = (__u32)sequence,
      .cpu = (__u16)cpu,
      .checksum = generator_checksum(sequence, cpu, size),
  };
  long error =
      bpf_perf_event_output(loop->program_context, &events, BPF_F_CURRENT_CPU, record, size);
  *record = kept;

  if (!error) {
    state->accepted++;
  } else if (error == -ENOSPC) {
    state->full++;
    return loop->run.stop_if_full != 0;
  } else {
    state->failed++;
    state->last_error = error;
    return 1;
  }
  return 0;
}

SEC("raw_tp")
int generate(struct bpf_raw_tracepoint_args* context) {
  struct loop loop = {
      .program_context = context,
      .run = {.batch = context->args[0],
              .stop_if_full = context->args[1],
              .payload_min = context->args[2],
              .payload_max = context->args[3]},
  };
  return (int)bpf_loop((__u32)loop.run.batch, output_one, &loop, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
