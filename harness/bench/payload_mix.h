// payload_mix: the payload sizes of the events that a measured ring holds, in order. C, because
// the BPF program that has the kernel write them reads it too: both must come to the same bytes.
#ifndef HARNESS_BENCH_PAYLOAD_MIX_H_
#define HARNESS_BENCH_PAYLOAD_MIX_H_

#include <linux/types.h>

#define PAYLOAD_BYTES_MAX 4096
#define PAYLOAD_CHOICES_MAX 3

// Every event has one of `choices` sizes, each a multiple of 8.
struct payload_mix {
  __u32 choices;
  __u32 bytes[PAYLOAD_CHOICES_MAX];
};

// The size of event `index`: in no order that a branch predictor could learn.
static inline __u32 payload_bytes(const struct payload_mix* mix, __u32 index) {
  __u32 hash = index * 0x9e3779b1u;  // MurmurHash3's finalizer
  hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
  hash = (hash ^ (hash >> 16)) % mix->choices;
  return hash == 0 ? mix->bytes[0] : hash == 1 ? mix->bytes[1] : mix->bytes[2];
}

// The arguments of that program, `fill`, a raw tracepoint's: each is one u64.
enum fill_arg {
  FILL_EVENTS,
  FILL_CHOICES,
  FILL_BYTES,
  FILL_ARGS = FILL_BYTES + PAYLOAD_CHOICES_MAX,
};

#endif  // HARNESS_BENCH_PAYLOAD_MIX_H_
