#include "harness/bench/waits.h"

#include <linux/perf_event.h>

#include <span>
#include <vector>

#include "harness/bench/race.h"
#include "harness/bench/workload.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/rings/round.h"

namespace perfring::bench {
namespace {

constexpr std::size_t kRingBytes = 4096;

// A ring as in a round of RingSet.
class RoundRing {
 public:
  explicit RoundRing(const MappedRing& memory)
      : ring_{*Ring<>::over(memory.page(), memory.data())},
        share_{*Cursor<>::over(memory.page(), memory.data()), kRingBytes} {}

  internal::RoundShare<>& share() { return share_; }
  void begin_round() { share_.begin(); }
  template <class F>
  bool for_each_while(F&& f) {
    return ring_.for_each_while(f);
  }

 private:
  Ring<> ring_;
  internal::RoundShare<> share_;
};

template <class F>
Contender contender(const char* name, F pass) {
  return {name, [pass](unsigned passes) {
            Tally tally;
            for (; passes != 0; --passes) pass(tally);
            return tally;
          }};
}

}  // namespace

IdleRings measure_idle_rings(std::size_t count, unsigned rounds) {
  std::vector<MappedRing> memory;
  for (std::size_t i = 0; i != count; ++i) {
    memory.emplace_back(kRingBytes);
    // Not 0, which memory that was never written also holds.
    memory.back().page().data_head = memory.back().page().data_tail = 64 * (i + 1);
  }
  std::vector<Cursor<> > cursors;
  std::vector<RoundRing> rings;
  std::vector<const perf_event_mmap_page*> pages;
  for (const MappedRing& each : memory) {
    cursors.push_back(*Cursor<>::over(each.page(), each.data()));
    rings.emplace_back(each);
    pages.push_back(&each.page());
  }
  std::size_t turn = 0;
  // Counts one event for each ring found empty.
  Race race{{contender("heads",
                       [&](Tally& tally) {
                         for (const Cursor<>& each : cursors) {
                           tally.events +=
                               each.data_head() == static_cast<Position>(each.data_tail());
                         }
                       }),
             contender("round",
                       [&](Tally& tally) {
                         const auto next = [&](std::span<RoundRing> all) {
                           return internal::next_in_turn(all, turn);
                         };
                         const auto visit = [&](const RoundRing&, const PerfEvent&) {
                           ++tally.odd;
                           return true;
                         };
                         std::uint64_t delivered = 0;
                         if (internal::take_turns(std::span{rings}, {}, turn, delivered, next,
                                                  visit) == DrainEnd::Drained) {
                           tally.events += count;
                         }
                       }),
             contender("plain",
                       [&](Tally& tally) {
                         for (const perf_event_mmap_page* const each : pages) {
                           const auto load = [](const __u64& from) {
                             return __atomic_load_n(&from, __ATOMIC_RELAXED);
                           };
                           tally.events += load(each->data_head) == load(each->data_tail);
                         }
                       })},
            {.events = count}};
  for (unsigned i = 0; i != rounds; ++i) race.round();
  const auto rings_ns = [&](const char* name) {
    return race.ns(name) * static_cast<double>(count);
  };
  return {rings_ns("heads"), rings_ns("round"), rings_ns("plain")};
}

}  // namespace perfring::bench
