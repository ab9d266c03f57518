#ifndef HARNESS_FAULTS_CONSUMER_FAULTS_H_
#define HARNESS_FAULTS_CONSUMER_FAULTS_H_

// Consumers with one fault each, over any perfring::Memory, with Ring's interface. The consumers
// here wrap Ring; loop_faults.h has loops over positions.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "harness/faults/memory_faults.h"
#include "harness/faults/ring_wrappers.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::faults {

inline std::uint64_t record_bytes(const PerfEvent& event) {
  if (const auto* sample = std::get_if<Sample>(&event)) {
    return 12 + sample->size();
  }
  if (const auto* bad = std::get_if<Malformed>(&event)) return bad->size();
  return 24;
}

template <class M>
struct DropsSecondSlice : AroundRing<DropsSecondSlice<M>, M> {
  using AroundRing<DropsSecondSlice, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    return this->sound_drain([&](PerfEvent event) {
      if (auto* sample = std::get_if<Sample>(&event)) sample->tail = {};
      return visit(event);
    });
  }
};

template <class M>
struct RedeliversAfterBreak : AroundRing<RedeliversAfterBreak<M>, M> {
  using AroundRing<RedeliversAfterBreak, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    std::uint64_t last = 0;
    const auto flow = this->sound_drain([&](const PerfEvent& event) {
      last = record_bytes(event);
      return visit(event);
    });
    if (flow.is_break()) this->positions_.commit(this->positions_.tail() - last);
    return flow;
  }
};

template <class M>
struct CommitsAllOnBreak : AroundRing<CommitsAllOnBreak<M>, M> {
  using AroundRing<CommitsAllOnBreak, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    const SharedPosition end = this->positions_.tail() + this->positions_.unread();
    const auto flow = this->sound_drain(visit);
    if (flow.is_break()) this->positions_.commit(end);
    return flow;
  }
};

template <class M>
struct NoCommitOnThrow : AroundRing<NoCommitOnThrow<M>, M> {
  using AroundRing<NoCommitOnThrow, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    const SharedPosition tail = this->positions_.tail();
    try {
      return this->sound_drain(visit);
    } catch (...) {
      this->positions_.commit(tail);
      throw;
    }
  }
};

template <class M>
struct CommitsEarly : AroundRing<CommitsEarly<M>, M> {
  using AroundRing<CommitsEarly, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    SharedPosition tail = this->positions_.tail();
    return this->sound_drain([&](const PerfEvent& event) {
      tail += record_bytes(event);
      this->positions_.commit(tail);
      return visit(event);
    });
  }
};

template <class M>
struct CommitsEach : OneByOne<CommitsEach<M>, M> {
  using OneByOne<CommitsEach, M>::OneByOne;
  ControlFlow<> drain(const Visit& visit) {
    return this->for_each_there([&] {
      ControlFlow<> flow = Continue{};
      static_cast<void>(this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
        flow = visit(event);
        return Break{};
      }));
      return flow;
    });
  }
};

// CommitsEach without edge D.
template <class M>
using CommitsEachUnfenced = CommitsEach<NoFullFence<M>>;

template <class M>
struct ReadsAfterDrain : OneByOne<ReadsAfterDrain<M>, M> {
  using OneByOne<ReadsAfterDrain, M>::OneByOne;
  ControlFlow<> drain(const Visit& visit) {
    return this->for_each_there([&]() -> ControlFlow<> {
      std::optional<PerfEvent> one;
      static_cast<void>(this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
        one = event;
        return Break{};
      }));
      if (!one) return Break{};
      return visit(*one);
    });
  }
};

template <class M>
struct ForgetsLost : AroundRing<ForgetsLost<M>, M> {
  using AroundRing<ForgetsLost, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    return this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      if (std::holds_alternative<Lost>(event)) return Continue{};
      return visit(event);
    });
  }
};

template <class M>
struct IgnoresBreak : AroundRing<IgnoresBreak<M>, M> {
  using AroundRing<IgnoresBreak, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    return this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      static_cast<void>(visit(event));
      return Continue{};
    });
  }
};

// A drain ends after its first event, as if it were the last one.
template <class M>
struct TakesOneAtATime : AroundRing<TakesOneAtATime<M>, M> {
  using AroundRing<TakesOneAtATime, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    ControlFlow<> flow = Continue{};
    static_cast<void>(this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      flow = visit(event);
      return Break{};
    }));
    return flow;
  }
};

template <class M>
struct DropsLastEvent : AroundRing<DropsLastEvent<M>, M> {
  using AroundRing<DropsLastEvent, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    std::optional<PerfEvent> held_event;
    return this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      const std::optional<PerfEvent> before = std::exchange(held_event, event);
      if (!before) return Continue{};
      return visit(*before);
    });
  }
};

template <class M>
struct DeliversTwice : AroundRing<DeliversTwice<M>, M> {
  using AroundRing<DeliversTwice, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    return this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      if (const ControlFlow<> flow = visit(event); flow.is_break()) return flow;
      return visit(event);
    });
  }
};

template <class M>
struct SwapsTwo : AroundRing<SwapsTwo<M>, M> {
  using AroundRing<SwapsTwo, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    std::uint64_t left = this->positions_.unread();
    std::optional<PerfEvent> held_event;
    return this->sound_drain([&](const PerfEvent& event) -> ControlFlow<> {
      left -= std::min(left, record_bytes(event));
      if (!held_event && left == 0) return visit(event);  // there may be no second event
      if (!held_event) {
        held_event = event;
        return Continue{};
      }
      const PerfEvent first = *std::exchange(held_event, std::nullopt);
      if (const ControlFlow<> flow = visit(event); flow.is_break()) return flow;
      return visit(first);
    });
  }
};

template <class M>
struct KeepsSlices : AroundRing<KeepsSlices<M>, M> {
  using AroundRing<KeepsSlices, M>::AroundRing;
  ControlFlow<> drain(const Visit& visit) {
    if (kept_) {
      if (const ControlFlow<> flow = visit(*kept_); flow.is_break()) return flow;
    }
    return this->sound_drain([&](const PerfEvent& event) {
      kept_ = event;
      return visit(event);
    });
  }

 private:
  std::optional<PerfEvent> kept_;
};

// The wait loop assumes that the ring is empty after each drain, even after one that broke off.
template <class M>
struct SleepsAfterBreak : Ring<M> {
  explicit SleepsAfterBreak(Ring<M> ring) : Ring<M>{std::move(ring)} {}
  static std::optional<SleepsAfterBreak> over(perf_event_mmap_page& page, Bytes data) {
    return SleepsAfterBreak{*Ring<M>::over(page, data)};
  }
  static bool readable() { return false; }
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_CONSUMER_FAULTS_H_
