#ifndef HARNESS_LIVE_BPF_NESTED_H_
#define HARNESS_LIVE_BPF_NESTED_H_

/* What nested.bpf.c and its loader share. Read by both C and C++. */

#include <linux/types.h>

/* The programs' own ledger, of one CPU: none is written by two that interrupt each other. */
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

/* The argument of `task`, in bpf_raw_tracepoint_args::args: how many records. */
#define NESTED_RUN_MAX 1024

#endif /* HARNESS_LIVE_BPF_NESTED_H_ */
