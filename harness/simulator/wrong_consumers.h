#ifndef HARNESS_SIMULATOR_WRONG_CONSUMERS_H_
#define HARNESS_SIMULATOR_WRONG_CONSUMERS_H_

// Consumers with one thing wrong: lib's drain behind a wrapper or over a faulty Memory, or a loop
// over positions as consumers commonly have it.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "harness/simulator/consumer.h"
#include "harness/simulator/simulated_memory.h"
#include "harness/simulator/site.h"

namespace perfring::simulator {

struct DropsTheLast : RingDrain<> {
  using RingDrain<>::RingDrain;
  template <class Visit>
  void drain(Visit visit) {
    std::optional<PerfEvent> held;
    RingDrain<>::drain([&](const PerfEvent& event) {
      const bool on = !held || visit(*held);
      held = event;
      return on;
    });
  }
};

struct DeliversTwice : RingDrain<> {
  using RingDrain<>::RingDrain;
  template <class Visit>
  void drain(Visit visit) {
    RingDrain<>::drain([&](const PerfEvent& event) { return visit(event) && visit(event); });
  }
};

struct SwapsTwo : RingDrain<> {
  using RingDrain<>::RingDrain;
  template <class Visit>
  void drain(Visit visit) {
    constexpr std::uint64_t kOne = 24 + 80;  // bytes, of a LOST and a record
    const perf_event_mmap_page& page = SimulatedMemory::site->page();
    if (page.data_head - page.data_tail <= kOne) return RingDrain<>::drain(visit);
    std::optional<PerfEvent> held;
    RingDrain<>::drain([&](const PerfEvent& event) {
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

struct KeepsSlices : RingDrain<> {
  using RingDrain<>::RingDrain;
  template <class Visit>
  void drain(Visit visit) {
    if (kept_) visit(*kept_);
    RingDrain<>::drain([&](const PerfEvent& event) {
      kept_ = event;
      return visit(event);
    });
  }
  std::optional<PerfEvent> kept_;
};

struct ForgetsLost : RingDrain<> {
  using RingDrain<>::RingDrain;
  template <class Visit>
  void drain(Visit visit) {
    RingDrain<>::drain([&](const PerfEvent& event) {
      return std::holds_alternative<Lost>(event) || visit(event);
    });
  }
};

// Waits after each drain, though it may have broken off.
struct WaitsTooSoon : RingDrain<> {
  using RingDrain<>::RingDrain;
  static bool readable() { return false; }
};

struct TailBehind : SimulatedMemory {
  static void write_once(SharedPosition& field, SharedPosition value) {
    SimulatedMemory::write_once(field, value - 8);
  }
};

struct NeverCommits : SimulatedMemory {
  static void write_once(SharedPosition&, SharedPosition) { step(); }
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

  // Rounded down, for who has gone astray: not every processor reads 8 bytes from anywhere.
  const std::byte* address(std::uint64_t position) const {
    return site_.data().data() + (position & mask() & ~std::uint64_t{7});
  }

  Site& site_;
};

struct CommitsEarly : Loop {
  using Loop::Loop;
  template <class Visit>
  void drain(Visit visit) {
    std::uint64_t at = tail();
    const std::uint64_t end = head();
    if (at != end) commit(end);
    bool on = true;
    while (on && at != end) {
      const Record record = record_at(at);
      at += record.size;
      on = visit(record.event);
    }
  }
};

struct CommitsEach : Loop {
  using Loop::Loop;
  template <class Visit>
  void drain(Visit visit) {
    const std::uint64_t end = head();
    bool on = true;
    for (std::uint64_t at = tail(); on && at != end;) {
      const Record record = record_at(at);
      on = visit(record.event);
      at += record.size;
      commit(at);
    }
  }
};

// As most have it: right, until a 32-bit kernel's data_head wraps (K48).
struct PositionsOf64Bits : Loop {
  using Loop::Loop;
  bool readable() const { return head() != tail(); }
  template <class Visit>
  void drain(Visit visit) {
    walk(head(), [&](const PerfEvent& event) { return visit(event); });
  }
};

// Takes data_head for the beginning of the last record, not for its end.
struct LeavesTheLast : Loop {
  using Loop::Loop;
  bool readable() const { return last() != tail(); }
  template <class Visit>
  void drain(Visit visit) {
    walk(last(), [&](const PerfEvent& event) { return visit(event); });
  }

 private:
  std::uint64_t last() const {
    const std::uint64_t end = head();
    std::uint64_t last = tail();
    for (std::uint64_t at = last; at != end; at += record_at(at).size) last = at;
    return last;
  }
};

// Takes every record to be in one piece.
struct IgnoresTheWrap : Loop {
  using Loop::Loop;
  template <class Visit>
  void drain(Visit visit) {
    walk(head(), [&](PerfEvent& event) {
      if (auto* const sample = std::get_if<Sample>(&event)) {
        *sample = {{sample->head.data(), sample->head.size() + sample->tail.size()}, {}};
      }
      return visit(event);
    });
  }
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_WRONG_CONSUMERS_H_
