#ifndef HARNESS_SIMULATOR_FAULTY_CONSUMERS_H_
#define HARNESS_SIMULATOR_FAULTY_CONSUMERS_H_

// Faults to be planted in a consumer: each is a drain over another (RingDrain), a Memory over
// another, or a loop over positions as consumers commonly have it (over Loop). Each does one thing
// wrong.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "harness/simulator/consumer.h"
#include "harness/simulator/simulated_memory.h"
#include "harness/simulator/site.h"

namespace perfring::simulator {

template <class Base>
struct DropsTheLast : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    std::optional<PerfEvent> held;
    Base::drain([&](const PerfEvent& event) {
      const bool on = !held || visit(*held);
      held = event;
      return on;
    });
  }
};

template <class Base>
struct DeliversTwice : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    Base::drain([&](const PerfEvent& event) { return visit(event) && visit(event); });
  }
};

template <class Base>
struct SwapsTwo : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    constexpr std::uint64_t kOne = 24 + 80;  // bytes, of a LOST and a record
    const perf_event_mmap_page& page = SimulatedMemory::site->page();
    if (page.data_head - page.data_tail <= kOne) return Base::drain(visit);
    std::optional<PerfEvent> held;
    Base::drain([&](const PerfEvent& event) {
      if (!held) {
        held = event;
        return true;
      }
      const PerfEvent first = *held;
      held.reset();
      return visit(event) && visit(first);
    });
    if (held) visit(*held);
  }
};

template <class Base>
struct KeepsSlices : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    if (kept_) visit(*kept_);
    Base::drain([&](const PerfEvent& event) {
      kept_ = event;
      return visit(event);
    });
  }
  std::optional<PerfEvent> kept_;
};

template <class Base>
struct ForgetsLost : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    Base::drain([&](const PerfEvent& event) {
      return std::holds_alternative<Lost>(event) || visit(event);
    });
  }
};

// Waits after each drain, though it may have broken off.
template <class Base>
struct WaitsTooSoon : Base {
  using Base::Base;
  static bool readable() { return false; }
};

// From header to header, until data_tail is data_head.
class Loop {
 public:
  explicit Loop(Site& site) : site_{site} {}
  bool readable() const { return site_.readable(); }

 protected:
  std::uint64_t head() const { return site_.page().data_head; }
  std::uint64_t tail() const { return site_.page().data_tail; }
  void commit(std::uint64_t tail) { SimulatedMemory::write_once(site_.page().data_tail, tail); }
  std::uint64_t mask() const { return site_.data().size() - 1; }

  struct Record {
    PerfEvent event;
    std::uint64_t size;
  };
  Record record_at(std::uint64_t position) const {
    const auto header =
        __builtin_bit_cast(perf_event_header, SimulatedMemory::read<__u64>(address(position)));
    if (header.type == PERF_RECORD_LOST) {
      return {Lost{SimulatedMemory::read<__u64>(address(position + 16))}, 24};
    }
    const std::size_t raw = SimulatedMemory::read<__u32>(address(position + 8));
    const auto from = static_cast<std::size_t>((position + 12) & mask());
    const std::size_t before_end = std::min(raw, site_.data().size() - from);
    return {Sample{site_.data().subspan(from, before_end), site_.data().first(raw - before_end)},
            header.size};
  }
  // Passes on the records from data_tail to `end`, and commits in the end, even if thrown at.
  template <class Take>
  void walk(std::uint64_t end, Take take) {
    struct Commit {
      Loop& loop;
      std::uint64_t at;
      ~Commit() { loop.commit(at); }
    };
    if (tail() == end) return;
    Commit commit{*this, tail()};
    for (bool on = true; on && commit.at != end;) {
      Record record = record_at(commit.at);
      commit.at += record.size;
      on = take(record.event);
    }
  }

  // Rounded down: a faulty consumer may be off the grid, and not every CPU loads unaligned words.
  const std::byte* address(std::uint64_t position) const {
    return site_.data().data() + (position & mask() & ~std::uint64_t{7});
  }

  Site& site_;
};

template <class Base>
struct CommitsEarly : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    std::uint64_t at = this->tail();
    const std::uint64_t end = this->head();
    if (at != end) this->commit(end);
    bool on = true;
    while (on && at != end) {
      const auto record = this->record_at(at);
      at += record.size;
      on = visit(record.event);
    }
  }
};

template <class Base>
struct CommitsEach : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    const std::uint64_t end = this->head();
    bool on = true;
    for (std::uint64_t at = this->tail(); on && at != end;) {
      const auto record = this->record_at(at);
      on = visit(record.event);
      at += record.size;
      this->commit(at);
    }
  }
};

// As most have it: right, until a 32-bit kernel's data_head wraps (K48).
template <class Base>
struct PositionsOf64Bits : Base {
  using Base::Base;
  bool readable() const { return this->head() != this->tail(); }
  template <class Visit>
  void drain(Visit visit) {
    this->walk(this->head(), [&](const PerfEvent& event) { return visit(event); });
  }
};

// Takes data_head for the beginning of the last record, not for its end.
template <class Base>
struct LeavesTheLast : Base {
  using Base::Base;
  bool readable() const { return last() != this->tail(); }
  template <class Visit>
  void drain(Visit visit) {
    this->walk(last(), [&](const PerfEvent& event) { return visit(event); });
  }

 private:
  std::uint64_t last() const {
    const std::uint64_t end = this->head();
    std::uint64_t last = this->tail();
    for (std::uint64_t at = last; at != end; at += this->record_at(at).size) last = at;
    return last;
  }
};

// Takes every record to be in one piece.
template <class Base>
struct IgnoresTheWrap : Base {
  using Base::Base;
  template <class Visit>
  void drain(Visit visit) {
    this->walk(this->head(), [&](PerfEvent& event) {
      if (auto* const sample = std::get_if<Sample>(&event)) {
        *sample = {{sample->head.data(), sample->head.size() + sample->tail.size()}, {}};
      }
      return visit(event);
    });
  }
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_FAULTY_CONSUMERS_H_
