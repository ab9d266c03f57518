#include "harness/model/engine/rc11.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "harness/model/engine/step.h"

namespace perfring::model {
namespace {

bool read_by_an_update(const Execution& x, EventId write) {
  const EventId later = x.events[write].later;
  return later != kNone && x.events[later].reads_from == write;
}

// Returns each access's rank in eco. In modification order, the i-th write to a location has rank
// 2i, and the reads from it have rank 2i + 1. a eco b exactly if a's rank is less than b's; two
// reads from the same write have equal ranks.
std::vector<std::uint32_t> eco_ranks(const Execution& x) {
  std::vector<std::uint32_t> ranks(x.events.size(), 0);
  for (EventId initial = 0; initial < x.latest.size(); ++initial) {
    std::uint32_t rank = 0;
    for (EventId w = initial; w != kNone; w = x.events[w].later, rank += 2) ranks[w] = rank;
  }
  for (std::size_t i = 0; i < x.events.size(); ++i) {
    const Event& event = x.events[i];
    if (event.reads_from != kNone && !event.writes) ranks[i] = ranks[event.reads_from] + 1;
  }
  return ranks;
}

bool happens_before(const Event& a, const Event& b) {
  return &a != &b && b.clock.events[a.thread] >= a.index;
}

// Whether f ; hb ; eco ; hb ; g holds through some location: from the first access after f to the
// last one before g.
bool eco_between(const Execution& x, const std::vector<std::uint32_t>& ranks, const Event& f,
                 const Event& g) {
  constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> first(x.latest.size(), kNever);
  for (std::size_t i = 0; i < x.events.size(); ++i) {
    const Event& a = x.events[i];
    if (a.is_initial() || a.step->kind == Step::Kind::Fence) continue;
    if (happens_before(f, a)) first[a.location] = std::min(first[a.location], ranks[i]);
  }
  for (std::size_t i = 0; i < x.events.size(); ++i) {
    const Event& b = x.events[i];
    if (b.is_initial() || b.step->kind == Step::Kind::Fence) continue;
    if (happens_before(b, g) && first[b.location] < ranks[i]) return true;
  }
  return false;
}

// Whether the relation, given as rows of successors, has a cycle.
bool cyclic(std::vector<std::vector<bool>> before) {
  const std::size_t n = before.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (before[i][k] && before[k][j]) before[i][j] = true;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (before[i][i]) return true;
  }
  return false;
}

}  // namespace

// Walks from the newest write back to the newest one that the thread knows of; to read from an
// older write would violate coherence (hb ; eco). A non-atomic access that does not race can read
// only from the newest known write.
std::vector<EventId> readable(const Execution& x, std::size_t thread) {
  const Thread& at = x.threads[thread];
  const Step& step = at.next();
  std::vector<EventId> from;
  for (EventId w = x.latest[step.location];; w = x.events[w].earlier) {
    const bool known = x.knows(at.known, w);
    const bool taken = step.writes(x.events[w].written) && read_by_an_update(x, w);
    if (!taken && (known || step.order != Order::NonAtomic)) from.push_back(w);
    if (known) return from;
  }
}

std::vector<EventId> places(const Execution& x, std::size_t thread) {
  const Thread& at = x.threads[thread];
  std::vector<EventId> after;
  for (EventId w = x.latest[at.next().location];; w = x.events[w].earlier) {
    if (!read_by_an_update(x, w)) after.push_back(w);
    if (x.knows(at.known, w)) return after;
  }
}

bool sc_consistent(const Execution& x) {
  // sb orders the fences of one thread; a cycle through them would violate COHERENCE first.
  if (std::has_single_bit(x.sc_threads) || x.sc_threads == 0) return true;
  std::vector<const Event*> fences;
  for (const Event& event : x.events) {
    if (event.order == Order::SequentiallyConsistent) fences.push_back(&event);
  }
  const std::vector<std::uint32_t> ranks = eco_ranks(x);
  std::vector<std::vector<bool>> before(fences.size(), std::vector<bool>(fences.size(), false));
  for (std::size_t i = 0; i < fences.size(); ++i) {
    for (std::size_t j = 0; j < fences.size(); ++j) {
      if (i == j) continue;
      before[i][j] =
          happens_before(*fences[i], *fences[j]) || eco_between(x, ranks, *fences[i], *fences[j]);
    }
  }
  return !cyclic(std::move(before));
}

}  // namespace perfring::model
