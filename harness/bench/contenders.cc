#include "harness/bench/contenders.h"

#include <benchmark/benchmark.h>
#include <linux/perf_event.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <variant>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"

// BUILD.bazel compiles this file a second time, with AT_O2.
#ifdef AT_O2
#define IN_MEMORY in_memory_at_o2
#define DRAIN_BUFFER drain_buffer_at_o2
#define NAME(contender) contender " -O2"
#else
#define IN_MEMORY in_memory
#define DRAIN_BUFFER drain_buffer
#define NAME(contender) contender
#endif

namespace perfring::bench {
namespace {

// The floors with which a drain is compared: loops that no real consumer could use, because they
// check nothing, cannot wrap, and ignore data_head and data_tail. Each calls visit(const std::byte*
// raw, std::size_t size) with the raw data of the records from `at` to `end`. All must be sound
// samples. The raw size is computed from header.size, which saves a load that a consumer must do.

constexpr std::size_t kRawAt = sizeof(perf_event_header) + sizeof(__u32);

// LB-ptr follows header.size from record to record. Each load waits for the previous one, so this
// is the minimum cost of following the records.
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

// Hides the origin of a value. The compiler could otherwise replace a confirmed guess by the header
// with which it was compared, and the loop would wait for that load.
std::size_t opaque(std::size_t value) {
  asm("" : "+r"(value));
  return value;
}

// LB-spec assumes that each header equals the previous one, then checks. Nothing waits for a load,
// which is the minimum cost of following records that are all alike (at least one). If they differ,
// each surprise costs a branch misprediction.
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

// Drains a Ring or PerfBuffer once through its public for_each. The tally is a local that does not
// escape (a returned object may be visible to the caller), so that it stays in registers. In
// memory, each event would wait for the previous event's store of the count.
template <Callback kCallback, class Drainable>
[[gnu::always_inline]] inline Tally drain_once(Drainable& ring) {
  Tally tally;
  ring.for_each([&tally](const PerfEvent& event) {
    if (const auto* const sample = std::get_if<Sample>(&event)) {
      if constexpr (kCallback == Callback::Count) {
        ++tally.events;
        tally.bytes += sample->head.size() + sample->tail.size();
      } else {
        add<kCallback>(tally, sample->head.data(), sample->head.size());
        tally.odd += !sample->tail.empty();  // no record in the measured rings straddles
      }
    } else {
      ++tally.odd;
    }
  });
  return Tally{tally};
}

#ifndef AT_O2
// The same with for_each_while and an overload set.
template <Callback kCallback, class Drainable>
[[gnu::always_inline]] inline Tally drain_by_overloads(Drainable& ring) {
  Tally tally;
  const bool finished = ring.for_each_while(
      Overloaded{[&tally](const Sample& sample) {
                   if constexpr (kCallback == Callback::Count) {
                     ++tally.events;
                     tally.bytes += sample.head.size() + sample.tail.size();
                   } else {
                     add<kCallback>(tally, sample.head.data(), sample.head.size());
                     tally.odd += !sample.tail.empty();
                   }
                   return true;
                 },
                 [&tally](const auto&) {
                   ++tally.odd;
                   return true;
                 }});
  tally.odd += !finished;
  return Tally{tally};
}
#endif

template <Callback kCallback>
auto adder(Tally& tally) {
  return [&tally](const std::byte* raw, std::size_t size) { add<kCallback>(tally, raw, size); };
}

template <Callback kCallback>
Tally guess_all(const std::byte* begin, const std::byte* end, unsigned passes) {
  Tally tally;
  for (; passes != 0; --passes) {
    benchmark::ClobberMemory();  // forces a new read of the bytes
    guess_unchecked(begin, end, adder<kCallback>(tally));
  }
  return Tally{tally};
}

template <Callback kCallback>
std::vector<Contender> contenders(const Workload& workload, const MappedRing& memory) {
  perf_event_mmap_page& page = memory.page();
  const std::span<std::byte> data = memory.data();
  const std::byte* const begin = data.data();
  const std::byte* const end = begin + workload.used_bytes;
  auto ring = Ring<>::over(page, data).value();

  std::vector<Contender> all;
  all.push_back({NAME("perfring"), [ring, &page](unsigned passes) mutable {
                   Tally tally;
                   for (; passes != 0; --passes) {
                     page.data_tail = 0;
                     tally += drain_once<kCallback>(ring);
                   }
                   return Tally{tally};
                 }});
  all.push_back({NAME("LB-spec"), [begin, end](unsigned passes) {
                   return guess_all<kCallback>(begin, end, passes);
                 }});
#ifndef AT_O2
  all.push_back({"overloads", [ring, &page](unsigned passes) mutable {
                   Tally tally;
                   for (; passes != 0; --passes) {
                     page.data_tail = 0;
                     tally += drain_by_overloads<kCallback>(ring);
                   }
                   return Tally{tally};
                 }});
  all.push_back({"LB-ptr", [begin, end](unsigned passes) {
                   Tally tally;
                   for (; passes != 0; --passes) {
                     benchmark::ClobberMemory();
                     chase_by_pointer(begin, end, adder<kCallback>(tally));
                   }
                   return Tally{tally};
                 }});
  // Delivers nothing itself: the cost of moving the bytes.
  std::vector<std::byte> copy(workload.used_bytes);
  const Tally expected = workload.tally(kCallback);
  all.push_back({"memcpy", [begin, copy, expected](unsigned passes) mutable {
                   for (unsigned i = 0; i < passes; ++i) {
                     std::memcpy(copy.data(), begin, copy.size());
                     benchmark::ClobberMemory();
                   }
                   return times(expected, passes);
                 }});
#endif
  return all;
}

template <Callback kCallback>
Tally drain_buffer(PerfEventArrayBuffer& buffer, perf_event_mmap_page& page, unsigned passes) {
  Tally tally;
  for (; passes != 0; --passes) {
    __atomic_store_n(&page.data_tail, 0, __ATOMIC_RELEASE);
    tally += drain_once<kCallback>(buffer);
  }
  return Tally{tally};
}

}  // namespace

std::vector<Contender> IN_MEMORY(const Workload& workload, const MappedRing& memory,
                                 Callback callback) {
  return callback == Callback::Count ? contenders<Callback::Count>(workload, memory)
                                     : contenders<Callback::Sum>(workload, memory);
}

Tally DRAIN_BUFFER(PerfEventArrayBuffer& buffer, perf_event_mmap_page& page, Callback callback,
                   unsigned passes) {
  return callback == Callback::Count ? drain_buffer<Callback::Count>(buffer, page, passes)
                                     : drain_buffer<Callback::Sum>(buffer, page, passes);
}

#ifndef AT_O2
Tally guess_records(const std::byte* begin, const std::byte* end, Callback callback,
                    unsigned passes) {
  return callback == Callback::Count ? guess_all<Callback::Count>(begin, end, passes)
                                     : guess_all<Callback::Sum>(begin, end, passes);
}
#endif

}  // namespace perfring::bench
