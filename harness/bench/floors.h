#ifndef HARNESS_BENCH_FLOORS_H_
#define HARNESS_BENCH_FLOORS_H_

// What a drain is held against: loops that no consumer could use, because they check nothing,
// cannot wrap, and leave data_head and data_tail alone. Each passes visit(const std::byte* raw,
// std::size_t size) the raw data of the records from `at` to `end`, all of them sound samples
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

// LB-spec: takes each header to be the one before it, then looks. Nothing waits for a load, which
// is what following the records costs if they are all alike; where they are not, each surprise
// costs a branch misprediction.
template <class Visit>
[[gnu::always_inline]] inline void guess_unchecked(const std::byte* at, const std::byte* end,
                                                   Visit visit) {
  const auto load = [](const std::byte* from) {
    std::uint64_t header;
    std::memcpy(&header, from, sizeof(header));
    return header;
  };
  while (at != end) {
    const std::uint64_t guessed = load(at);
    std::size_t size = std::bit_cast<perf_event_header>(guessed).size;
    // A compiler that knew where `size` comes from could take it from the header just loaded.
    asm("" : "+r"(size));
    do {
      visit(at + kRawAt, size - kRawAt);
      at += size;
    } while (at != end && load(at) == guessed);
  }
}

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_FLOORS_H_
