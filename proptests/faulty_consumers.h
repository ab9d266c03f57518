#ifndef PROPTESTS_FAULTY_CONSUMERS_H_
#define PROPTESTS_FAULTY_CONSUMERS_H_

// Consumers that do one thing wrong, in the ways of Ring. The properties must find them out.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <variant>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"
#include "proptests/watch.h"

namespace perfring::proptests {

// Ring, around which something goes wrong.
class AroundRing {
 public:
  AroundRing(perf_event_mmap_page& page, Bytes data)
      : page_{&page}, ring_{*Ring<WatchedMemory>::over(page, data)} {}
  bool readable() const { return ring_.readable(); }

 protected:
  perf_event_mmap_page* page_;
  Ring<WatchedMemory> ring_;
};

template <class Faulty>
struct Over : AroundRing {
  using AroundRing::AroundRing;
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{page, data};
  }
};

// Takes the first slice for the whole sample.
struct ForgetsTheTail : Over<ForgetsTheTail> {
  using Over::Over;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return ring_.try_fold(init, [&](Unit, PerfEvent event) -> ControlFlow<> {
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
struct RepeatsTheBroken : Over<RepeatsTheBroken> {
  using Over::Over;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    std::uint64_t last = 0;
    const auto flow = ring_.try_fold(init, [&](Unit, const PerfEvent& event) {
      last = record_bytes(event);
      return f(Unit{}, event);
    });
    if (flow.is_break()) page_->data_tail -= last;
    return flow;
  }
};

// Commits everything, also when a drain breaks off.
struct DropsTheRest : Over<DropsTheRest> {
  using Over::Over;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    const std::uint64_t head = page_->data_head;
    const auto flow = ring_.try_fold(init, f);
    if (flow.is_break()) page_->data_tail = head;
    return flow;
  }
};

// Commits nothing when the callback throws.
struct ForgetsOnThrow : Over<ForgetsOnThrow> {
  using Over::Over;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    const std::uint64_t tail = page_->data_tail;
    try {
      return ring_.try_fold(init, f);
    } catch (...) {
      page_->data_tail = tail;
      throw;
    }
  }
};

// Lets go of what it delivers before the callback has seen it.
struct CommitsEarly : Over<CommitsEarly> {
  using Over::Over;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return ring_.try_fold(init, [&](Unit, const PerfEvent& event) {
      page_->data_tail = page_->data_head;
      return f(Unit{}, event);
    });
  }
};

// Adds up the losses of a drain, and tells of them at its end; of those before a break, never.
struct LosesLosses : Over<LosesLosses> {
  using Over::Over;
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return ring_.try_fold(init, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      if (std::holds_alternative<Lost>(event)) return Continue{};
      return f(Unit{}, event);
    });
  }
};

// Commits the end of the payload, not that of the record.
struct CommitsOffTheGrid : WatchedMemory {
  static void write_once(SharedPosition& field, SharedPosition value) {
    WatchedMemory::write_once(field, value - 4);
  }
};

// Reads an int where a u32 is: large raw sizes pass for small ones.
struct DropsTheSign : WatchedMemory {
  template <class T>
  static T read(const std::byte* address) {
    const T value = WatchedMemory::read<T>(address);
    return sizeof(T) == 4 ? value & 0x7fff'ffff : value;
  }
};

// Looks at what follows, too, wherever the ring ends. (It only says so: nobody may touch that.)
struct ReadsAhead : WatchedMemory {
  template <class T>
  static T read(const std::byte* address) {
    if (watcher != nullptr) watcher->read(address, 2 * sizeof(T));
    return DefaultMemory::read<T>(address);
  }
};

// As aya and libbpf do it: positions of 64 bits, and whatever the ring says is believed. (But it
// stays in the ring, so that it can be told.)
class Believes {
 public:
  static std::optional<Believes> over(perf_event_mmap_page& page, Bytes data) {
    return Believes{page, data};
  }
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
  Believes(perf_event_mmap_page& page, Bytes data) : page_{&page}, data_{data} {}
  void copy(void* to, std::uint64_t position, std::size_t length) const {
    for (std::size_t i = 0; i < length; ++i) {
      static_cast<std::byte*>(to)[i] =
          data_[static_cast<std::size_t>((position + i) % data_.size())];
    }
  }

  perf_event_mmap_page* page_;
  Bytes data_;
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_FAULTY_CONSUMERS_H_
