/* What beat.bpf.c and its loader share. Read by both C and C++. */
#ifndef HARNESS_BENCH_BEAT_ARGS_H_
#define HARNESS_BENCH_BEAT_ARGS_H_

#include <linux/types.h>

#define BEAT_PAYLOAD 52 /* bytes: a record of 64 */

/* The program's own ledger. */
struct beat_counts {
  __u64 accepted;
  __u64 refused;
  __u64 output_ns; /* in the helper, in all */
};

/* Arguments, in the order of bpf_raw_tracepoint_args::args. */
enum {
  BEAT_COUNT,
  BEAT_PERIOD_PS, /* from one output to the next, in picoseconds */
  BEAT_ARGUMENTS
};

#endif /* HARNESS_BENCH_BEAT_ARGS_H_ */
