#include "harness/bench/contenders.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "harness/bench/drain_ring.h"
#include "harness/bench/floors.h"
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

template <Callback kCallback>
auto adder(Tally& tally) {
  return [&tally](const std::byte* raw, std::size_t size) { add<kCallback>(tally, raw, size); };
}

template <Callback kCallback>
Tally guess_all(const std::byte* begin, const std::byte* end, unsigned passes) {
  Tally tally;
  for (; passes != 0; --passes) {
    benchmark::ClobberMemory();  // the bytes could have changed: look again
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
  all.push_back({"LB-ptr", [begin, end](unsigned passes) {
                   Tally tally;
                   for (; passes != 0; --passes) {
                     benchmark::ClobberMemory();
                     chase_by_pointer(begin, end, adder<kCallback>(tally));
                   }
                   return Tally{tally};
                 }});
  // Delivers nothing by itself: it is what moving the bytes would cost.
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
