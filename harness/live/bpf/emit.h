#ifndef HARNESS_LIVE_BPF_EMIT_H_
#define HARNESS_LIVE_BPF_EMIT_H_

/* Shared by emit.bpf.c and emitter.cc: the one value of the map `emission`, which user space maps,
 * and the arguments of the two programs. C and C++ read this file. */

#include <linux/types.h>

/* The largest payload: four times as much as header.size, a u16, can hold. */
#define EMISSION_PAYLOAD_MAX 262144

/* The outputs that emit_many makes in one run, at most. The verifier walks through each of them. */
#define EMIT_RUN_MAX 32

struct emission {
  /* Counted by emit_many. */
  __u64 accepted;
  __u64 refused;
  /* A payload is the front of this. The arguments give its size. */
  __u8 payload[EMISSION_PAYLOAD_MAX];
};

/* Arguments, in the order of bpf_raw_tracepoint_args::args. */
enum {
  EMIT_FLAGS, /* bpf_perf_event_output's flags: an index, or BPF_F_CURRENT_CPU */
  EMIT_SIZE,  /* of the payload */
  EMIT_FIRST, /* emit_many: the first record's number, which is in its first 8 bytes */
  EMIT_COUNT, /* emit_many: how many records; their numbers are consecutive */
  EMIT_ARGUMENTS
};

#endif /* HARNESS_LIVE_BPF_EMIT_H_ */
