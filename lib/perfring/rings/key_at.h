#ifndef PERFRING_RINGS_KEY_AT_H_
#define PERFRING_RINGS_KEY_AT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// KeyAt: the key of an event, for a Merge, that its writer put into the payload. EventTime: the one
// that the kernel put in front of it.
// W: facts that were measured, in the project's harness/RINGS_FACTS.md.

#include <cstddef>
#include <cstdint>

#include "perfring/perf_event.h"

namespace perfring {

// The u64 that a payload has at `offset`, in this machine's byte order: 0 if it is too short.
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

// PERF_SAMPLE_TIME of the rings' events, which were opened with it: Merge<Timed<M>>, or a RingSet
// with RingSetOptions::timed. The kernel takes it within the helper, with preemption off: so it is
// older than its record by less than a payload's key may be (W1, W2).
struct EventTime {};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_KEY_AT_H_
