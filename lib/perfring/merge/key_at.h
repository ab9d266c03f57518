#ifndef PERFRING_MERGE_KEY_AT_H_
#define PERFRING_MERGE_KEY_AT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Keys for a Merge. KeyAt: the key that an event's writer put into the payload. EventTime: the time
// that the kernel put in front of the payload.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

#include <cstddef>
#include <cstdint>

#include "perfring/perf_event.h"

namespace perfring {

// The u64 at `offset` in a payload, in this machine's byte order, or 0 if the payload is too short.
struct KeyAt {
  std::size_t offset = 0;

  [[gnu::always_inline]] std::uint64_t operator()(const Sample& sample) const noexcept {
    std::uint64_t key;
    const std::size_t in_head = sample.head.size();
    if (in_head >= sizeof(key) && offset <= in_head - sizeof(key)) [[likely]] {
      __builtin_memcpy(&key, sample.head.data() + offset, sizeof(key));
      return key;
    }
    return from_both(sample);
  }

 private:
  [[gnu::noinline]] std::uint64_t from_both(const Sample& sample) const noexcept {
    const std::size_t in_head = sample.head.size();
    if (offset > sample.size()) return 0;
    const Sample from = offset < in_head ? Sample{sample.head.subspan(offset), sample.tail}
                                         : Sample{{}, sample.tail.subspan(offset - in_head)};
    return from.as<std::uint64_t>().value_or(0);
  }
};

// The PERF_SAMPLE_TIME of the rings' events, which must have been opened with it: for
// Merge<Timed<M>>, or a RingSet with RingSetOptions::timed. The kernel takes the time inside the
// helper, with preemption off, so it precedes its record by less than a key in the payload may (W1,
// W2).
struct EventTime {};

}  // namespace perfring

#endif
#endif  // PERFRING_MERGE_KEY_AT_H_
