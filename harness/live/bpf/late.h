#ifndef HARNESS_LIVE_BPF_LATE_H_
#define HARNESS_LIVE_BPF_LATE_H_

/* The late writers: shared by nested.bpf.c, stall.bpf.c and their loaders. C and C++ read this
 * file. */

#include <linux/types.h>

/* One CPU's ledger of nested.bpf.c. Each count has one writer, so interrupts do no harm. */
struct nested_counts {
  __u64 attempted[2]; /* index: NESTED_... */
  __u64 accepted[2];
};

enum {
  NESTED_TASK,
  NESTED_INTERRUPT,
};

struct nested_record {
  __u64 key; /* the program's clock before the output */
  __u32 cpu;
  __u32 source;   /* NESTED_... */
  __u64 sequence; /* of that source, on that CPU */
};

/* Arguments of `task`, in the order of bpf_raw_tracepoint_args::args. */
enum {
  NESTED_COUNT,   /* how many records, NESTED_RUN_MAX at most */
  NESTED_LATE_NS, /* how long it spins between the first record's key and its output */
  NESTED_ARGUMENTS
};

#define NESTED_RUN_MAX 1024
#define NESTED_SPINS 4096 /* how often it reads the clock at most while it spins */

struct stall {
  __u64 started; /* the clock that the program read, which is the record's key; 0: not yet */
};

/* Arguments of `stall`, in the order of bpf_raw_tracepoint_args::args. */
enum {
  STALL_INDEX, /* bpf_perf_event_output's flags */
  STALL_NS,    /* how long the program spins between its clock and its output */
  STALL_ARGUMENTS
};

#endif /* HARNESS_LIVE_BPF_LATE_H_ */
