#ifndef PERFRING_MERGE_TIMED_H_
#define PERFRING_MERGE_TIMED_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Timed<Memory>: a Memory policy for rings with events that were opened with PERF_SAMPLE_TIME and
// PERF_SAMPLE_RAW, and nothing else. The time is between a sample's header and its raw size.
// Ring<Timed<>>, Cursor<Timed<>> and Merge<Timed<>> otherwise behave like those of M. If the
// Merge's key is EventTime (key_at.h), it merges by this time.
//
// Kernel: kernel/events/core.c: perf_output_sample() at v6.18. Without attr.use_clockid the time is
// from a different clock than CLOCK_MONOTONIC (K21).
// K: measured facts, in the project's harness/KERNEL_FACTS.md.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/wire.h"

namespace perfring {

template <Memory M = DefaultMemory>
struct Timed : M {};

namespace internal {

template <class M>
inline constexpr std::size_t kBeforeRaw<Timed<M> > = sizeof(std::uint64_t);

}  // namespace internal
}  // namespace perfring

#endif
#endif  // PERFRING_MERGE_TIMED_H_
