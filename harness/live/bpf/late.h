#ifndef HARNESS_LIVE_BPF_LATE_H_
#define HARNESS_LIVE_BPF_LATE_H_

/* The writers that are late: what nested.bpf.c and stall.bpf.c share with their loaders. Read by
 * both C and C++. */

#include <linux/types.h>

/* The ledger of nested.bpf.c, of one CPU: none is written by two that interrupt each other. */
struct nested_counts {
  __u64 attempted[2]; /* by NESTED_... */
  __u64 accepted[2];
};

enum {
  NESTED_TASK,
  NESTED_INTERRUPT,
};

struct nested_record {
  __u64 key; /* the clock that the program read before its output */
  __u32 cpu;
  __u32 source;   /* NESTED_... */
  __u64 sequence; /* of that source, on that CPU */
};

/* Arguments of `task`, in the order of bpf_raw_tracepoint_args::args. */
enum {
  NESTED_COUNT,   /* how many records, NESTED_RUN_MAX at most */
  NESTED_LATE_NS, /* how long it spins between the first one's key and its output */
  NESTED_ARGUMENTS
};

#define NESTED_RUN_MAX 1024
#define NESTED_SPINS 4096 /* readings of the clock that it spins for at most */

struct stall {
  __u64 started; /* when the program read its clock, which is the record's key; 0: not yet */
};

/* Arguments of `stall`, in the order of bpf_raw_tracepoint_args::args. */
enum {
  STALL_INDEX, /* bpf_perf_event_output's flags */
  STALL_NS,    /* how long the program spins between its clock and its output */
  STALL_ARGUMENTS
};

#endif /* HARNESS_LIVE_BPF_LATE_H_ */
