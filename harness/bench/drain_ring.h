#ifndef HARNESS_BENCH_DRAIN_RING_H_
#define HARNESS_BENCH_DRAIN_RING_H_

#include <variant>

#include "harness/bench/tally.h"
#include "perfring/perf_event.h"

namespace perfring::bench {

// One drain of a Ring or PerfBuffer through its public for_each. The tally is a local that nobody
// else can see (not even the caller, as a returned object may be), so that it lives in registers:
// in memory, each event would have to wait for the count that the one before it has stored.
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
        tally.odd += !sample->tail.empty();  // the measured rings have none that straddles
      }
    } else {
      ++tally.odd;
    }
  });
  return Tally{tally};
}

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_DRAIN_RING_H_
