#ifndef HARNESS_BENCH_FLOORS_H_
#define HARNESS_BENCH_FLOORS_H_

// The floors that a drain is compared with: loops that no consumer could use, because they check
// nothing, cannot wrap, and leave data_head and data_tail alone. Each passes visit(const std::byte*
// raw, std::size_t size) the raw data of the records from `at` to `end`, all of them sound samples
// whose raw size follows from header.size (which saves the load that a consumer must make).

#include <linux/perf_event.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace perfring::bench {

inline constexpr std::size_t kRawAt = sizeof(perf_event_header) + sizeof(__u32);

// LB-ptr: from header.size to header.size. Each load waits for the one before it, so this is
// what following the records costs at the least.
template <class Visit>
[[gnu::always_inline]] inline void chase_by_pointer(const std::byte* at, const std::byte* end,
                                                    Visit visit) {
  while (at != end) {
    __u16 size;
    std::memcpy(&size, at + offsetof(perf_event_header, size), sizeof(size));
    visit(at + kRawAt, size - kRawAt);
    at += size;
  }
}

// Hides where a value comes from: a compiler that knew could take a guess that has turned out
// right from the header that it was checked against, which would have to be loaded first.
inline std::size_t opaque(std::size_t value) {
  asm("" : "+r"(value));
  return value;
}

// LB-spec: takes each header to be the one before it, then looks. Nothing waits for a load, which
// is what following the records costs if they are all alike (there must be one at least); where
// they are not, each surprise costs a branch misprediction.
template <class Visit>
[[gnu::always_inline]] inline void guess_unchecked(const std::byte* at, const std::byte* end,
                                                   Visit visit) {
  const auto load = [](const std::byte* from) {
    std::uint64_t header;
    std::memcpy(&header, from, sizeof(header));
    return header;
  };
  std::uint64_t guessed = load(at);
  std::size_t size = opaque(std::bit_cast<perf_event_header>(guessed).size);
  std::size_t raw_size = opaque(size - kRawAt);
  for (;;) {
    visit(at + kRawAt, raw_size);
    at += size;
    if (at == end) return;
    const std::uint64_t header = load(at);
    if (header != guessed) [[unlikely]] {
      guessed = header;
      size = opaque(std::bit_cast<perf_event_header>(guessed).size);
      raw_size = opaque(size - kRawAt);
    }
  }
}

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_FLOORS_H_
