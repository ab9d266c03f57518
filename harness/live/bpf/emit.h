#ifndef HARNESS_LIVE_BPF_EMIT_H_
#define HARNESS_LIVE_BPF_EMIT_H_

/* What emit.bpf.c and emitter.cc share: the one value of the map `emission`, which user space
 * has mapped, and the arguments of the two programs. Read by both C and C++. */

#include <linux/types.h>

/* The largest payload. Four times what header.size, a u16, can say. */
#define EMISSION_PAYLOAD_MAX 262144

/* How many times emit_many outputs in one run: the verifier walks through each of them. */
#define EMIT_RUN_MAX 32

struct emission {
  /* Counted by emit_many. */
  __u64 accepted;
  __u64 refused;
  /* What is sent: the front of this, as much of it as the arguments ask for. */
  __u8 payload[EMISSION_PAYLOAD_MAX];
};

/* Arguments, in the order of bpf_raw_tracepoint_args::args. */
enum {
  EMIT_FLAGS, /* bpf_perf_event_output's flags: an index, or BPF_F_CURRENT_CPU */
  EMIT_SIZE,  /* of the payload */
  EMIT_FIRST, /* emit_many: the number that the first record carries in its first 8 bytes */
  EMIT_COUNT, /* emit_many: how many records, of consecutive numbers */
  EMIT_ARGUMENTS
};

#endif /* HARNESS_LIVE_BPF_EMIT_H_ */
