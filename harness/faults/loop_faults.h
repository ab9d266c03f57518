#ifndef HARNESS_FAULTS_LOOP_FAULTS_H_
#define HARNESS_FAULTS_LOOP_FAULTS_H_

// Consumers with one fault each, in Ring's place: loops over positions, as consumers commonly have
// them, and lib's Cursor.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "harness/faults/around_ring.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/testing/by_cursor.h"

namespace perfring::faults {

// Its positions have 64 bits, which a Memory need not read. It ends after as many steps as the ring
// has bytes, so that a fault is found as itself and not as a loop without an end.
template <class Faulty, class M>
class Loop : public ByDrain<Faulty> {
 public:
  Loop(perf_event_mmap_page& page, Bytes data) : page_{&page}, data_{data} {}

 protected:
  std::uint64_t head() const {
    const std::uint64_t head = whole(page_->data_head);
    M::fence_after_read_of(page_->data_head);
    return head;
  }
  std::uint64_t tail() const { return whole(page_->data_tail); }
  // data_head as far from data_tail as modulo 2^32, which is right for a 32-bit kernel.
  std::uint64_t end() const {
    const auto head = static_cast<Position>(this->head());
    return tail() + static_cast<Position>(head - static_cast<Position>(tail()));
  }

  struct Record {
    PerfEvent event;
    std::uint64_t size;
    std::size_t raw;  // a sample's
  };
  Record record_at(std::uint64_t position) const {
    const auto header =
        __builtin_bit_cast(perf_event_header, M::template read<std::uint64_t>(address(position)));
    if (header.type == PERF_RECORD_LOST) {
      return {Lost{M::template read<std::uint64_t>(address(position + 16))}, 24, 0};
    }
    const std::size_t raw = M::template read<std::uint32_t>(address(position + 8));
    const auto from = static_cast<std::size_t>((position + 12) & mask());
    const std::size_t in_head = std::min(raw, data_.size() - from);
    return {
        Sample{data_.subspan(from, in_head), data_.first(std::min(raw - in_head, data_.size()))},
        header.size, raw};
  }
  // The records from data_tail to `end`. Commits once, also where `take` throws.
  template <class Take>
  ControlFlow<> walk(std::uint64_t end, Take take) {
    struct Commit {
      Loop& loop;
      std::uint64_t at;
      ~Commit() {
        M::fence_before_write_of(loop.page_->data_tail);
        M::write_once(loop.page_->data_tail, at);
      }
    };
    ControlFlow<> flow = Continue{};
    if (tail() == end) return flow;
    Commit commit{*this, tail()};
    for (std::size_t steps = data_.size(); flow.is_continue() && commit.at != end && steps != 0;) {
      --steps;
      Record record = record_at(commit.at);
      commit.at += record.size;
      flow = take(record);
    }
    return flow;
  }

  perf_event_mmap_page* page_;
  Bytes data_;

 private:
  static std::uint64_t whole(const SharedPosition& field) {
    if constexpr (requires { M::whole(field); }) {
      return M::whole(field);
    } else {
      return __atomic_load_n(&field, __ATOMIC_RELAXED);
    }
  }
  std::uint64_t mask() const { return data_.size() - 1; }
  // Rounded down: data_tail may be off the grid, and not every CPU loads unaligned words.
  const std::byte* address(std::uint64_t position) const {
    return data_.data() + (position & mask() & ~std::uint64_t{7});
  }
};

// Right until a 32-bit kernel's data_head wraps (K48).
template <class M>
struct PositionsOf64Bits : Loop<PositionsOf64Bits<M>, M> {
  using Loop<PositionsOf64Bits, M>::Loop;
  bool readable() const { return this->head() != this->tail(); }
  ControlFlow<> drain(const Visit& visit) {
    return this->walk(this->head(), [&](const auto& record) { return visit(record.event); });
  }
};

// Takes data_head for the beginning of the last record, not for its end.
template <class M>
struct LeavesTheLast : Loop<LeavesTheLast<M>, M> {
  using Loop<LeavesTheLast, M>::Loop;
  bool readable() const { return last() != this->tail(); }
  ControlFlow<> drain(const Visit& visit) {
    return this->walk(last(), [&](const auto& record) { return visit(record.event); });
  }

 private:
  std::uint64_t last() const {
    const std::uint64_t end = this->end();
    std::uint64_t last = this->tail();
    std::size_t steps = this->data_.size();
    for (std::uint64_t at = last; at != end && steps != 0; --steps) {
      last = at;
      at += this->record_at(at).size;
    }
    return last;
  }
};

// Takes every record to be in one piece.
template <class M>
struct IgnoresTheWrap : Loop<IgnoresTheWrap<M>, M> {
  using Loop<IgnoresTheWrap, M>::Loop;
  bool readable() const { return this->end() != this->tail(); }
  ControlFlow<> drain(const Visit& visit) {
    return this->walk(this->end(), [&](auto& record) {
      if (auto* const sample = std::get_if<Sample>(&record.event)) {
        *sample = {{sample->head.data(), sample->size()}, {}};
      }
      return visit(record.event);
    });
  }
};

// As aya and libbpf do it: the sizes of a record are believed, header.size (as by every Loop) and
// the raw size, which may be larger than the ring.
template <class M>
struct Believes : Loop<Believes<M>, M> {
  using Loop<Believes, M>::Loop;
  bool readable() const { return this->end() != this->tail(); }
  ControlFlow<> drain(const Visit& visit) {
    return this->walk(this->end(), [&](auto& record) {
      if (auto* const sample = std::get_if<Sample>(&record.event)) {
        sample->tail = {this->data_.data(), record.raw - sample->head.size()};
      }
      return visit(record.event);
    });
  }
};

// Cursors with one fault each, over any perfring::Memory; and by them, consumers with Ring's
// interface.

template <class Faulty, class M>
struct AroundCursor : Cursor<M> {
  explicit AroundCursor(const Cursor<M>& sound) : Cursor<M>{sound} {}
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{*Cursor<M>::over(page, data)};
  }
};

// A record is released when it is handed out, and not when its user says so.
template <class M>
struct ReleasesEarly : AroundCursor<ReleasesEarly<M>, M> {
  using AroundCursor<ReleasesEarly, M>::AroundCursor;
  auto next() {
    auto record = Cursor<M>::next();
    Cursor<M>::release();
    return record;
  }
};

// A release goes on to the end of what was looked at.
template <class M>
struct ReleasesPast : AroundCursor<ReleasesPast<M>, M> {
  using AroundCursor<ReleasesPast, M>::AroundCursor;
  using Cursor<M>::release;
  void release() { this->release_bytes(this->unread()); }
};

template <class M>
using ByReleasesEarly = testing::ByCursor<ReleasesEarly<M>>;
template <class M>
using ByReleasesPast = testing::ByCursor<ReleasesPast<M>>;

// A consumer's way to wait for its rings: as lib documents it, or with a fault. A wait loop is the
// harness's own (real threads, or steps of a property), and asks in these places.
enum class Waits {
  Documented,        // registers, drains all, waits; takes a report, and then drains all
  NoFirstDrain,      // waits without a drain after it has registered (K28)
  ClearsAfterDrain,  // takes the report after the drain, and with it one that has come since (K26)
  DrainsOneRing,     // of several, after a report
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_LOOP_FAULTS_H_
