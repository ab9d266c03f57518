/* The agreement of the generator's BPF program and its user-space half. C and C++ read this file.
 *
 * A generated record's payload is a generator_record, then a body of `size - 8` bytes: a window of
 * the pattern, which starts at generator_window(sequence). So bodies differ from record to record,
 * and each can be checked, although the program writes only 8 bytes for each. */
#ifndef HARNESS_LIVE_BPF_GENERATOR_H_
#define HARNESS_LIVE_BPF_GENERATOR_H_

#include <linux/types.h>

enum {
  GENERATOR_PAYLOAD_MIN = 8,     /* sizeof(struct generator_record) */
  GENERATOR_PAYLOAD_MAX = 65516, /* the largest that the kernel delivers whole */
  GENERATOR_WINDOWS = 8192,
  GENERATOR_PATTERN_SIZE = 131072, /* the last window, 8 * 8191, and the largest payload fit */
};

struct generator_record {
  __u32 sequence; /* of this CPU's outputs, failed ones included; modulo 2^32 */
  __u16 cpu;
  __u16 checksum; /* generator_checksum() */
};

/* One CPU's map value. The program writes it on that CPU only; user space fills in the pattern
 * before the first run, and reads the counts. */
struct generator_state {
  __u64 outputs;    /* calls of bpf_perf_event_output */
  __u64 accepted;   /* of these: returned 0 */
  __u64 full;       /* returned -ENOSPC: the kernel will report them as lost */
  __u64 failed;     /* returned anything else */
  __s64 last_error; /* of the last failed output */
  __u64 unused[3];
  unsigned char pattern[GENERATOR_PATTERN_SIZE];
};

/* bpf_prog_test_run's context: the arguments of a raw tracepoint. */
struct generator_run {
  __u64 batch;        /* outputs to make */
  __u64 stop_if_full; /* whether to end early at the first -ENOSPC */
  __u64 payload_min;
  __u64 payload_max;
};

static inline __u32 generator_mix(__u64 value) {
  value *= 0x9e3779b97f4a7c15ull; /* the golden ratio: Fibonacci hashing */
  return (__u32)(value >> 32);
}

static inline __u32 generator_payload_size(__u64 sequence, __u32 cpu, __u32 min, __u32 max) {
  return min + generator_mix(sequence + ((__u64)cpu << 40)) % (max - min + 1);
}

static inline __u32 generator_window(__u64 sequence) {
  return 8 * (__u32)(sequence & (GENERATOR_WINDOWS - 1));
}

static inline __u16 generator_checksum(__u64 sequence, __u32 cpu, __u32 payload_size) {
  return (__u16)(generator_mix(sequence ^ ((__u64)cpu << 48)) ^ generator_mix(payload_size));
}

#endif /* HARNESS_LIVE_BPF_GENERATOR_H_ */
