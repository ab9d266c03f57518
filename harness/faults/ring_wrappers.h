#ifndef HARNESS_FAULTS_RING_WRAPPERS_H_
#define HARNESS_FAULTS_RING_WRAPPERS_H_

// The parts of faulty consumers: Ring's interface (over(), readable(), for_each(), fold(),
// try_fold()) built on one function drain(), and Ring itself.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::faults {

// A reference to the callback of a drain, like C++26's std::function_ref. (There are hundreds of
// callbacks, and the compiler takes four times as long with std::function.)
class Visit {
 public:
  template <class F>
  Visit(const F& f)  // NOLINT(google-explicit-constructor): as std::function_ref
      : f_{&f}, call_{[](const void* of, const PerfEvent& event) -> ControlFlow<> {
          return (*static_cast<const F*>(of))(event);
        }} {}

  ControlFlow<> operator()(const PerfEvent& event) const { return call_(f_, event); }

 private:
  const void* f_;
  ControlFlow<> (*call_)(const void*, const PerfEvent&);
};

// Ring's drains, built on the drain(const Visit&) of `Faulty`.
template <class Faulty>
class RingFromDrain {
 public:
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{page, data};
  }
  template <class F>
  void for_each(F f) {
    static_cast<void>(self().drain([&](const PerfEvent& event) -> ControlFlow<> {
      std::invoke(f, event);
      return Continue{};
    }));
  }
  template <class C, class F>
  C fold(C init, F f) {
    static_cast<void>(self().drain([&](const PerfEvent& event) -> ControlFlow<> {
      C next = std::invoke(f, std::move(init), event);
      init = std::move(next);
      return Continue{};
    }));
    return init;
  }
  template <class C, class F>
  auto try_fold(C init, F f) -> std::invoke_result_t<F&, C, const PerfEvent&> {
    std::optional<std::invoke_result_t<F&, C, const PerfEvent&>> broken;
    static_cast<void>(self().drain([&](const PerfEvent& event) -> ControlFlow<> {
      auto flow = std::invoke(f, init, event);
      if (flow.is_break()) {
        broken.emplace(std::move(flow));
        return Break{};
      }
      init = std::move(flow).continue_value();
      return Continue{};
    }));
    if (broken) return *std::move(broken);
    return Continue<C>{std::move(init)};
  }

 private:
  Faulty& self() { return static_cast<Faulty&>(*this); }
};

// The two positions, as a consumer accesses them through this Memory.
template <class M>
class Positions {
 public:
  explicit Positions(perf_event_mmap_page& page) : page_{&page} {}

  Position head() const { return M::read_once(page_->data_head); }
  SharedPosition tail() const {
    return M::template read<SharedPosition>(reinterpret_cast<const std::byte*>(&page_->data_tail));
  }
  Position unread() const {
    const Position end = head();
    return end - static_cast<Position>(tail());
  }
  // Stores data_tail, after the fence.
  void commit(SharedPosition tail) const {
    M::fence_before_write_of(page_->data_tail);
    M::write_once(page_->data_tail, tail);
  }

 private:
  perf_event_mmap_page* page_;
};

// A consumer that uses one of Ring's drains only. With a faulty Memory it is a consumer by itself.
// The consumers around Ring use it, too, so that a drain over a Memory is compiled only once.
template <class M>
class RingFromOneDrain : public RingFromDrain<RingFromOneDrain<M>> {
 public:
  RingFromOneDrain(perf_event_mmap_page& page, Bytes data) : ring_{*Ring<M>::over(page, data)} {}
  bool readable() const { return ring_.readable(); }
  ControlFlow<> drain(const Visit& visit) {
    return ring_.try_fold(Unit{}, [&](Unit, const PerfEvent& event) { return visit(event); });
  }

 private:
  Ring<M> ring_;
};

// Ring with a fault in the code around it.
template <class Faulty, class M>
class AroundRing : public RingFromDrain<Faulty> {
 public:
  AroundRing(perf_event_mmap_page& page, Bytes data) : positions_{page}, ring_{page, data} {}
  bool readable() const { return ring_.readable(); }

 protected:
  ControlFlow<> sound_drain(const Visit& visit) { return ring_.drain(visit); }

  Positions<M> positions_;
  RingFromOneDrain<M> ring_;
};

// Several drains that deliver one event each, in place of one that delivers all events.
template <class Faulty, class M>
class OneByOne : public AroundRing<Faulty, M> {
 public:
  using AroundRing<Faulty, M>::AroundRing;

 protected:
  // Calls drain_one() -> ControlFlow<> for each event that is in the ring now.
  template <class DrainOne>
  ControlFlow<> for_each_there(DrainOne drain_one) {
    const Position end = this->positions_.head();
    ControlFlow<> flow = Continue{};
    const auto left = [&] {
      return static_cast<std::int32_t>(end - static_cast<Position>(this->positions_.tail()));
    };
    while (flow.is_continue() && left() > 0) flow = drain_one();
    return flow;
  }
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_RING_WRAPPERS_H_
