#ifndef HARNESS_BENCH_TALLY_H_
#define HARNESS_BENCH_TALLY_H_

// The callbacks that are measured, and the check that a drain delivered the right events.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace perfring::bench {

// The events that a drain delivered, to be compared with those in the ring.
struct Tally {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;  // of raw data, the kernel's padding included
  std::uint64_t sum = 0;    // of the payload's words, if the callback reads them
  std::uint64_t odd = 0;    // LOST and malformed events: there are none

  bool operator==(const Tally&) const = default;
  Tally& operator+=(const Tally& other) {
    events += other.events;
    bytes += other.bytes;
    sum += other.sum;
    odd += other.odd;
    return *this;
  }
};

inline Tally times(const Tally& tally, std::uint64_t n) {
  return {tally.events * n, tally.bytes * n, tally.sum * n, tally.odd * n};
}

enum class Callback { Count, Sum };

// One event's raw data. The padding that ends it is not part of any whole word.
template <Callback kCallback>
[[gnu::always_inline]] inline void add(Tally& tally, const std::byte* raw, std::size_t size) {
  ++tally.events;
  tally.bytes += size;
  if constexpr (kCallback == Callback::Sum) {
    const std::byte* const end = raw + size / sizeof(std::uint64_t) * sizeof(std::uint64_t);
    for (; raw != end; raw += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, raw, sizeof(word));
      tally.sum += word;
    }
  }
}

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_TALLY_H_
