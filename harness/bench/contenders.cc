#include "harness/bench/contenders.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "harness/bench/drain_ring.h"
#include "harness/bench/floors.h"
#include "perfring/ring/ring.h"

namespace perfring::bench {
namespace {

// A contender that runs `pass() -> Tally` again and again.
template <class Pass>
Contender contender(const char* name, Pass pass) {
  return {name, [pass](unsigned passes) mutable {
            Tally tally;
            for (; passes != 0; --passes) {
              benchmark::ClobberMemory();  // the bytes could have changed: read them again
              tally += pass();
            }
            return tally;
          }};
}

template <Callback kCallback>
std::vector<Contender> in_memory(const Workload& workload, const FilledMemory& memory) {
  perf_event_mmap_page& page = memory.page();
  const std::span<std::byte> data = memory.data();
  const std::byte* const begin = data.data();
  const std::byte* const end = begin + workload.used_bytes;
  auto ring = Ring<>::over(page, data).value();

  std::vector<Contender> all;
  all.push_back(contender("perfring", [ring, &page]() mutable {
    page.data_tail = 0;
    return drain_once<kCallback>(ring);
  }));
  all.push_back(contender("LB-spec", [begin, end] {
    Tally tally;
    guess_unchecked(begin, end, [&tally](const std::byte* raw, std::size_t size) {
      add<kCallback>(tally, raw, size);
    });
    return tally;
  }));
  all.push_back(contender("LB-ptr", [begin, end] {
    Tally tally;
    chase_by_pointer(begin, end, [&tally](const std::byte* raw, std::size_t size) {
      add<kCallback>(tally, raw, size);
    });
    return tally;
  }));
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
  return all;
}

}  // namespace

std::vector<Contender> in_memory(const Workload& workload, const FilledMemory& memory,
                                 Callback callback) {
  return callback == Callback::Count ? in_memory<Callback::Count>(workload, memory)
                                     : in_memory<Callback::Sum>(workload, memory);
}

}  // namespace perfring::bench
