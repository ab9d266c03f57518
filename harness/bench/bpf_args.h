/* Shared by fill.bpf.c, beat.bpf.c and their loaders. Valid C and C++. */
#ifndef HARNESS_BENCH_BPF_ARGS_H_
#define HARNESS_BENCH_BPF_ARGS_H_

#include <linux/types.h>

// payload_mix: the payload sizes of the events in a measured ring, in order. filled_ring() writes
// these events in memory, and `fill` has the kernel write them: both must produce the same bytes.
#define PAYLOAD_BYTES_MAX 4096
#define PAYLOAD_CHOICES_MAX 3

// Every event has one of `choices` sizes, each a multiple of 8.
struct payload_mix {
  __u32 choices;
  __u32 bytes[PAYLOAD_CHOICES_MAX];
};

// Returns the size of event `index`. The order is one that no branch predictor can learn.
static inline __u32 payload_bytes(const struct payload_mix* mix, __u32 index) {
  __u32 hash = index * 0x9e3779b1u;  // MurmurHash3's finalizer
  hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
  hash = (hash ^ (hash >> 16)) % mix->choices;
  return hash == 0 ? mix->bytes[0] : hash == 1 ? mix->bytes[1] : mix->bytes[2];
}

// The arguments of `fill`, a raw tracepoint program: one u64 each.
enum fill_arg {
  FILL_EVENTS,
  FILL_CHOICES,
  FILL_BYTES,
  FILL_ARGS = FILL_BYTES + PAYLOAD_CHOICES_MAX,
};

#define BEAT_PAYLOAD 52 /* bytes, for a record of 64 */

/* What `beat` counts. */
struct beat_counts {
  __u64 accepted;
  __u64 refused;
  __u64 output_ns; /* total time in the helper */
};

/* The arguments of `beat`, in the order of bpf_raw_tracepoint_args::args. */
enum {
  BEAT_COUNT,
  BEAT_PERIOD_PS, /* from one output to the next, in picoseconds */
  BEAT_ARGUMENTS
};

#endif  // HARNESS_BENCH_BPF_ARGS_H_
