#ifndef HARNESS_LIVE_BPF_STALL_H_
#define HARNESS_LIVE_BPF_STALL_H_

/* What stall.bpf.c and its loader share. Read by both C and C++. */

#include <linux/types.h>

struct stall {
  __u64 started; /* when the program read its clock, which is the record's key; 0: not yet */
};

/* Arguments, in the order of bpf_raw_tracepoint_args::args. */
enum {
  STALL_INDEX, /* bpf_perf_event_output's flags */
  STALL_NS,    /* how long the program spins between its clock and its output */
  STALL_ARGUMENTS
};

#endif /* HARNESS_LIVE_BPF_STALL_H_ */
