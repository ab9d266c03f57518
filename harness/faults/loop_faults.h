#ifndef HARNESS_FAULTS_LOOP_FAULTS_H_
#define HARNESS_FAULTS_LOOP_FAULTS_H_

// Consumers with one fault each, in place of Ring: loops over positions, as many consumers have
// them, and lib's Cursor.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "harness/faults/ring_wrappers.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring::faults {

// A loop over positions of 64 bits, although a Memory need not read all 64. It ends after as many
// steps as the ring has bytes, so that a fault is found as itself and not as an endless loop.
template <class Faulty, class M>
class Loop : public RingFromDrain<Faulty> {
 public:
  Loop(perf_event_mmap_page& page, Bytes data) : page_{&page}, data_{data} {}

 protected:
  std::uint64_t head() const {
    const std::uint64_t head = whole(page_->data_head);
    M::fence_after_read_of(page_->data_head);
    return head;
  }
  std::uint64_t tail() const { return whole(page_->data_tail); }
  // Returns data_tail plus the distance to data_head modulo 2^32, which is right for a 32-bit
  // kernel.
  std::uint64_t end() const {
    const auto head = static_cast<Position>(this->head());
    return tail() + static_cast<Position>(head - static_cast<Position>(tail()));
  }

  struct Record {
    PerfEvent event;
    std::uint64_t size;
    std::size_t raw;  // for a sample
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
  // Visits the records from data_tail to `end`. Commits once, even if `take` throws.
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
  // Rounds down: data_tail may not be a multiple of 8, and not every CPU loads unaligned words.
  const std::byte* address(std::uint64_t position) const {
    return data_.data() + (position & mask() & ~std::uint64_t{7});
  }
};

// Works until a 32-bit kernel's data_head wraps (K48).
template <class M>
struct PositionsOf64Bits : Loop<PositionsOf64Bits<M>, M> {
  using Loop<PositionsOf64Bits, M>::Loop;
  bool readable() const { return this->head() != this->tail(); }
  ControlFlow<> drain(const Visit& visit) {
    return this->walk(this->head(), [&](const auto& record) { return visit(record.event); });
  }
};

// Treats data_head as the beginning of the last record, not as its end.
template <class M>
struct LeavesLastRecord : Loop<LeavesLastRecord<M>, M> {
  using Loop<LeavesLastRecord, M>::Loop;
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

// Treats every record as one piece.
template <class M>
struct IgnoresWrap : Loop<IgnoresWrap<M>, M> {
  using Loop<IgnoresWrap, M>::Loop;
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

// Trusts the sizes of a record, as aya and libbpf do: header.size (like every Loop), and the raw
// size, which may be larger than the ring.
template <class M>
struct TrustsRecordSizes : Loop<TrustsRecordSizes<M>, M> {
  using Loop<TrustsRecordSizes, M>::Loop;
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

// Cursors with one fault each, over any perfring::Memory; and consumers with Ring's interface built
// on these Cursors.

template <class Faulty, class M>
struct AroundCursor : Cursor<M> {
  explicit AroundCursor(const Cursor<M>& sound) : Cursor<M>{sound} {}
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{*Cursor<M>::over(page, data)};
  }
};

// A record is released when it is handed out, not when its user releases it.
template <class M>
struct ReleasesEarly : AroundCursor<ReleasesEarly<M>, M> {
  using AroundCursor<ReleasesEarly, M>::AroundCursor;
  auto next() {
    auto record = Cursor<M>::next();
    Cursor<M>::release();
    return record;
  }
};

// A release extends to the end of all records that were looked at.
template <class M>
struct ReleasesUndelivered : AroundCursor<ReleasesUndelivered<M>, M> {
  using AroundCursor<ReleasesUndelivered, M>::AroundCursor;
  using Cursor<M>::release;
  void release() { this->release_bytes(this->unread()); }
};

template <class M>
using ReleasesEarlyRing = testing::RingOverCursor<ReleasesEarly<M>>;
template <class M>
using ReleasesUndeliveredRing = testing::RingOverCursor<ReleasesUndelivered<M>>;

// A consumer's way to wait for its rings: as lib documents it, or with a fault. The wait loop
// belongs to the harness (real threads, or steps of a property), and tests this value where the
// ways differ.
enum class Waits {
  Documented,        // registers, drains all, waits; clears a report, and then drains all
  NoFirstDrain,      // waits after registering, without a drain in between (K28)
  ClearsAfterDrain,  // clears the report after the drain, and with it a newer one (K26)
  DrainsOneRing,     // drains only one of several rings after a report
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_LOOP_FAULTS_H_
