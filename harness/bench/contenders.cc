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
#define NAME(contender) contender " -O2"
#else
#define IN_MEMORY in_memory
#define NAME(contender) contender
#endif

namespace perfring::bench {
namespace {

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
  const auto add_to = [](Tally& tally) {
    return [&tally](const std::byte* raw, std::size_t size) { add<kCallback>(tally, raw, size); };
  };
  all.push_back({NAME("LB-spec"), [begin, end, add_to](unsigned passes) {
                   Tally tally;
                   for (; passes != 0; --passes) {
                     benchmark::ClobberMemory();  // the bytes could have changed: look again
                     guess_unchecked(begin, end, add_to(tally));
                   }
                   return Tally{tally};
                 }});
#ifndef AT_O2
  all.push_back({"LB-ptr", [begin, end, add_to](unsigned passes) {
                   Tally tally;
                   for (; passes != 0; --passes) {
                     benchmark::ClobberMemory();
                     chase_by_pointer(begin, end, add_to(tally));
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

}  // namespace

std::vector<Contender> IN_MEMORY(const Workload& workload, const MappedRing& memory,
                                 Callback callback) {
  return callback == Callback::Count ? contenders<Callback::Count>(workload, memory)
                                     : contenders<Callback::Sum>(workload, memory);
}

}  // namespace perfring::bench
