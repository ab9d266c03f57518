#ifndef HARNESS_BENCH_DRAIN_RING_H_
#define HARNESS_BENCH_DRAIN_RING_H_

#include <variant>

#include "harness/bench/tally.h"
#include "perfring/perf_event.h"

namespace perfring::bench {

// One drain of a Ring or PerfBuffer through its public for_each.
template <Callback kCallback, class Drainable>
[[gnu::always_inline]] inline void drain_into(Tally& tally, Drainable& ring) {
  ring.for_each([&tally](const PerfEvent& event) {
    if (const auto* const sample = std::get_if<Sample>(&event)) {
      if constexpr (kCallback == Callback::Count) {
        ++tally.events;
        tally.bytes += sample->head.size() + sample->tail.size();
      } else {
        add<kCallback>(tally, sample->head.data(), sample->head.size());
        tally.odd += !sample->tail.empty();  // the measured rings have none that straddles
      }
    } else {
      ++tally.odd;
    }
  });
}

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_DRAIN_RING_H_
