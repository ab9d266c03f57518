#ifndef HARNESS_LIVE_BPF_WRITER_H_
#define HARNESS_LIVE_BPF_WRITER_H_

/* Shared by the BPF programs that write. For BPF only. */

#include <linux/bpf.h>
#include <linux/errno.h>

#include <bpf/bpf_helpers.h>

/* The rings: an entry for each CPU, by its number. */
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} events SEC(".maps");

/* A map that user space maps: of one value, or of as many as user space sizes it to. */
#define SHARED_WITH_USER_SPACE(name, type_of_value) \
  struct {                                          \
    __uint(type, BPF_MAP_TYPE_ARRAY);               \
    __uint(map_flags, BPF_F_MMAPABLE);              \
    __uint(max_entries, 1);                         \
    __type(key, __u32);                             \
    __type(value, type_of_value);                   \
  } name SEC(".maps")

static inline long is_late(__u32 i __attribute__((unused)), void* until) {
  return bpf_ktime_get_ns() >= *(__u64*)until; /* 1 ends the loop */
}

/* Spins until the clock shows this time. Not for 32-bit kernels, which cannot call back into a
 * program (K57). */
static __attribute__((always_inline)) inline void spin_until(__u64 time) {
  bpf_loop(1 << 23, is_late, &time, 0);
}

#endif /* HARNESS_LIVE_BPF_WRITER_H_ */
