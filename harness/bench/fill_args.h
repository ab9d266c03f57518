// The arguments of the program `fill`, a raw tracepoint's: each is one u64.
#ifndef HARNESS_BENCH_FILL_ARGS_H_
#define HARNESS_BENCH_FILL_ARGS_H_

#include "harness/bench/payload_mix.h"

enum fill_arg {
  FILL_EVENTS,
  FILL_CHOICES,
  FILL_BYTES,
  FILL_ARGS = FILL_BYTES + PAYLOAD_CHOICES_MAX,
};

#endif  // HARNESS_BENCH_FILL_ARGS_H_
