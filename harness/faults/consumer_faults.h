#ifndef HARNESS_FAULTS_CONSUMER_FAULTS_H_
#define HARNESS_FAULTS_CONSUMER_FAULTS_H_

// Consumers with one fault each, with Ring's interface: over(), readable(), for_each(), fold(),
// try_fold(). Most wrap Ring<M>; the last ones are loops over positions, as consumers commonly have
// them.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::faults {

// What Ring has beside try_fold(), by the try_fold() of `Faulty`.
template <class Faulty>
class ByTryFold {
 public:
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{page, data};
  }
  template <class F>
  void for_each(F f) {
    static_cast<void>(self().try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      std::invoke(f, event);
      return Continue{};
    }));
  }
  template <class C, class F>
  C fold(C init, F f) {
    static_cast<void>(self().try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      C next = std::invoke(f, std::move(init), event);
      init = std::move(next);
      return Continue{};
    }));
    return init;
  }

 private:
  Faulty& self() { return static_cast<Faulty&>(*this); }
};

// Ring, around which something goes wrong.
template <class Faulty, class M>
class AroundRing : public ByTryFold<Faulty> {
 public:
  AroundRing(perf_event_mmap_page& page, Bytes data)
      : page_{&page}, ring_{*Ring<M>::over(page, data)} {}
  bool readable() const { return ring_.readable(); }

 protected:
  perf_event_mmap_page* page_;
  Ring<M> ring_;
};

// Takes the first slice for the whole sample.
template <class M>
struct ForgetsTheTail : AroundRing<ForgetsTheTail<M>, M> {
  using AroundRing<ForgetsTheTail, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return this->ring_.try_fold(init, [&](Unit, PerfEvent event) -> ControlFlow<> {
      if (auto* sample = std::get_if<Sample>(&event)) sample->tail = {};
      return f(Unit{}, event);
    });
  }
};

inline std::uint64_t record_bytes(const PerfEvent& event) {
  if (const auto* sample = std::get_if<Sample>(&event)) {
    return 12 + sample->head.size() + sample->tail.size();
  }
  if (const auto* bad = std::get_if<Malformed>(&event)) return bad->head.size() + bad->tail.size();
  return 24;
}

// Delivers the event that a drain broke off at once more.
template <class M>
struct RepeatsTheBroken : AroundRing<RepeatsTheBroken<M>, M> {
  using AroundRing<RepeatsTheBroken, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    std::uint64_t last = 0;
    const auto flow = this->ring_.try_fold(init, [&](Unit, const PerfEvent& event) {
      last = record_bytes(event);
      return f(Unit{}, event);
    });
    if (flow.is_break()) this->page_->data_tail -= last;
    return flow;
  }
};

// Commits everything, also when a drain breaks off.
template <class M>
struct DropsTheRest : AroundRing<DropsTheRest<M>, M> {
  using AroundRing<DropsTheRest, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    const std::uint64_t head = this->page_->data_head;
    const auto flow = this->ring_.try_fold(init, f);
    if (flow.is_break()) this->page_->data_tail = head;
    return flow;
  }
};

// Commits nothing when the callback throws.
template <class M>
struct ForgetsOnThrow : AroundRing<ForgetsOnThrow<M>, M> {
  using AroundRing<ForgetsOnThrow, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    const std::uint64_t tail = this->page_->data_tail;
    try {
      return this->ring_.try_fold(init, f);
    } catch (...) {
      this->page_->data_tail = tail;
      throw;
    }
  }
};

// Lets go of what it delivers before the callback has seen it.
template <class M>
struct CommitsEarly : AroundRing<CommitsEarly<M>, M> {
  using AroundRing<CommitsEarly, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return this->ring_.try_fold(init, [&](Unit, const PerfEvent& event) {
      this->page_->data_tail = this->page_->data_head;
      return f(Unit{}, event);
    });
  }
};

template <class M>
struct ForgetsLost : AroundRing<ForgetsLost<M>, M> {
  using AroundRing<ForgetsLost, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return this->ring_.try_fold(init, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      if (std::holds_alternative<Lost>(event)) return Continue{};
      return f(Unit{}, event);
    });
  }
};

template <class M>
struct IgnoresBreak : AroundRing<IgnoresBreak<M>, M> {
  using AroundRing<IgnoresBreak, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return this->ring_.try_fold(init, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      static_cast<void>(f(Unit{}, event));
      return Continue{};
    });
  }
};

template <class M>
struct DropsTheLast : AroundRing<DropsTheLast<M>, M> {
  using AroundRing<DropsTheLast, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    std::optional<PerfEvent> held;
    return this->ring_.try_fold(init, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      const std::optional<PerfEvent> before = std::exchange(held, event);
      if (!before) return Continue{};
      return f(Unit{}, *before);
    });
  }
};

template <class M>
struct DeliversTwice : AroundRing<DeliversTwice<M>, M> {
  using AroundRing<DeliversTwice, M>::AroundRing;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return this->ring_.try_fold(init, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      if (const ControlFlow<> flow = f(Unit{}, event); flow.is_break()) return flow;
      return f(Unit{}, event);
    });
  }
};

// As aya and libbpf do it: positions of 64 bits, and whatever the ring says is believed. (But it
// stays in the ring, so that it can be told.)
template <class M>
class Believes : public ByTryFold<Believes<M>> {
 public:
  Believes(perf_event_mmap_page& page, Bytes data) : page_{&page}, data_{data} {}
  bool readable() const { return page_->data_head != page_->data_tail; }

  template <class F>
  ControlFlow<> try_fold(Unit, F f) {
    const std::uint64_t head = page_->data_head;
    std::uint64_t tail = page_->data_tail;
    ControlFlow<> flow = Continue{};
    std::uint64_t steps = 0;
    while (tail != head && flow.is_continue()) {
      perf_event_header header{};
      std::uint32_t raw = 0;
      std::uint64_t count = 0;
      copy(&header, tail, sizeof(header));
      copy(&raw, tail + 8, sizeof(raw));
      copy(&count, tail + 16, sizeof(count));
      const auto at = static_cast<std::size_t>((tail + 12) % data_.size());
      const std::size_t in_head = std::min<std::size_t>(raw, data_.size() - at);
      tail += header.size;
      if (header.type == PERF_RECORD_SAMPLE) {
        flow = f(Unit{}, Sample{{data_.data() + at, in_head}, {data_.data(), raw - in_head}});
      } else if (header.type == PERF_RECORD_LOST) {
        flow = f(Unit{}, Lost{count});
      }
      if (++steps > data_.size()) break;
    }
    page_->data_tail = tail;
    return flow;
  }

 private:
  void copy(void* to, std::uint64_t position, std::size_t length) const {
    for (std::size_t i = 0; i < length; ++i) {
      static_cast<std::byte*>(to)[i] =
          data_[static_cast<std::size_t>((position + i) % data_.size())];
    }
  }

  perf_event_mmap_page* page_;
  Bytes data_;
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_CONSUMER_FAULTS_H_
