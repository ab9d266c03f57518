#ifndef PERFRING_RING_WALK_H_
#define PERFRING_RING_WALK_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Iteration from record to record, shared by Ring's drains, Cursor and Merge: positions, the pieces
// of a ring, records. Internal to them; ring.h and cursor.h state the rules (S1 to S11) cited here.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

// Returns data_tail. Only the consumer writes it, and the kernel reads it in __perf_output_begin()
// (kernel/events/ring_buffer.c at v6.18), so a plain load of the consumer's own store suffices.
template <Memory M>
SharedPosition own_tail(const perf_event_mmap_page& page) {
  return M::template read<std::uint64_t>(reinterpret_cast<const std::byte*>(&page.data_tail));
}

// Reads data_head, once (S1), and orders the reads of the records before it after that read.
template <Memory M>
[[gnu::always_inline]] inline Position read_head(const perf_event_mmap_page& page) {
  const Position head = M::read_once(page.data_head);
  M::fence_after_read_of(page.data_head);
  return head;
}

// The distance from one position to a later one (S9).
inline Position distance(SharedPosition from, Position to) noexcept {
  return to - static_cast<Position>(from);
}

// Whether data_head is behind `from` (S11), by at most the ring's `size`.
inline bool has_gone_back(std::size_t size, SharedPosition from, Position head) noexcept {
  const Position ahead = distance(from, head);
  return ahead > size && Position{0} - ahead <= size && (ahead | head) % kAlignment == 0;
}

// The number of bytes from `from` to data_head; 0 if data_head is behind `from` (S11). More than
// the ring's `size` if the positions are bad (S8).
inline Position available(std::size_t size, SharedPosition from, Position head) noexcept {
  return has_gone_back(size, from, head) ? 0 : distance(from, head);
}

// Whether `place` is in (next, end], modulo 2^64.
inline bool is_ahead(SharedPosition place, SharedPosition next, SharedPosition end) noexcept {
  return place != next && place - next <= end - next;
}

// Whether the unread bytes from `next` on may be records: [tail, end) fits in the ring, and `next`
// and `end` are multiples of 8 (S8).
inline bool are_valid_positions(const RingView& ring, SharedPosition tail, SharedPosition next,
                                SharedPosition end) noexcept {
  return end - tail <= ring.data.size() && (next | end) % kAlignment == 0;
}

// Moves data_tail from `tail` to `to` (S2). Does nothing if data_tail is there already, or if
// another consumer has moved it meanwhile, so that data_tail never goes back (S3).
template <Memory M>
void move_tail(perf_event_mmap_page& page, SharedPosition& tail, SharedPosition to) {
  if (to == tail || own_tail<M>(page) != tail) return;
  M::fence_before_write_of(page.data_tail);
  M::write_once(page.data_tail, to);
  tail = to;
}

// Iterates over the available bytes: one piece, or two if they wrap around the ring's end.
//
//   data()                         at         end_, the ring's end
//     |<- rest_ ->|.................|<- piece ->|
template <Memory M>
struct Walk {
  using At = const std::byte*;

  static constexpr std::size_t kRawAt = internal::kRawAt + kBeforeRaw<M>;
  static constexpr std::size_t kPayloadAt = internal::kPayloadAt + kBeforeRaw<M>;
  static constexpr std::size_t kSampleSizeMin = internal::kSampleSizeMin + kBeforeRaw<M>;

  explicit Walk(const RingView& ring) : ring_{ring} {}

  static perf_event_header decode(std::uint64_t header) noexcept {
    return std::bit_cast<perf_event_header>(header);
  }
  static constexpr std::uint64_t encode(perf_event_header header) noexcept {
    return std::bit_cast<std::uint64_t>(header);
  }
  static std::size_t size_of(std::uint64_t header) noexcept {
    return static_cast<__u16>(std::endian::native == std::endian::little ? header >> 48 : header);
  }

  // Whether the header is that of a SAMPLE with room for its raw size. One comparison checks both
  // type and alignment.
  static bool is_sample(std::uint64_t header) noexcept {
    constexpr std::uint64_t mask = encode({.type = ~__u32{0}, .misc = 0, .size = kAlignment - 1});
    constexpr std::uint64_t sample = encode({.type = PERF_RECORD_SAMPLE, .misc = 0, .size = 0});
    return (header & mask) == sample && size_of(header) >= kSampleSizeMin;
  }

  // Loads struct perf_event_header (include/uapi/linux/perf_event.h at v6.18), in one load. Records
  // start on 8-byte boundaries (perf_sample_save_raw_data() in the kernel's own perf_event.h at
  // v6.18 pads them), so no header straddles the ring's end.
  static std::uint64_t header_at(const std::byte* record) {
    return M::template read<std::uint64_t>(record);
  }
  // Loads the u32 raw size, which follows the header and kBeforeRaw bytes. perf_output_sample()
  // writes only that and the raw bytes for PERF_SAMPLE_RAW alone (kernel/events/core.c at v6.18).
  static std::uint32_t raw_at(const std::byte* record) {
    return M::template read<std::uint32_t>(record + kRawAt);
  }

  // Sets end_ and rest_ for the `length` bytes from position `tail` on. Returns the address of the
  // first byte.
  At start(const RingView& ring, SharedPosition tail, std::size_t length) noexcept {
    const std::size_t size = ring.data.size();
    const std::size_t index = static_cast<std::size_t>(tail) & (size - 1);
    const std::size_t piece = smaller(length, size - index);
    const At at = ring.data.data() + index;
    end_ = at + piece;
    rest_ = length - piece;
    return at;
  }

  // Does the same for bytes that are in two pieces already; the second begins at ring_'s data.
  At within(Bytes first, Bytes second) noexcept {
    end_ = first.data() + first.size();
    rest_ = second.size();
    return first.data();
  }

  const std::byte* data() const noexcept { return ring_.data.data(); }
  std::size_t piece(At at) const noexcept { return static_cast<std::size_t>(end_ - at); }
  std::size_t left(At at) const noexcept { return piece(at) + rest_; }

  // Loads the header of the next record. Returns false if there is none. Only this function,
  // advance(), start() and within() change end_ and rest_.
  [[gnu::always_inline]] bool next(At& at, std::uint64_t& header) {
    if (at == end_) [[unlikely]] {
      if (rest_ == 0) return false;
      at = data();
      end_ = data() + std::exchange(rest_, 0);
    }
    header = header_at(at);
    return true;
  }

  bool has_valid_size(At at, std::size_t size) const noexcept {
    return size >= sizeof(perf_event_header) && size % kAlignment == 0 && size <= left(at);
  }

  // Classifies the record at `at`. Consumes nothing.
  [[gnu::noinline]] PerfEvent interpret(At at, perf_event_header header) const {
    const std::size_t size = header.size;
    if (!has_valid_size(at, size)) return malformed(Defect::BadSize, at, left(at));
    if (header.type == PERF_RECORD_SAMPLE) {
      if (size < kSampleSizeMin) return malformed(Defect::BadSample, at, size);
      const std::size_t raw = M::template read<std::uint32_t>(address(at, kRawAt));
      if (raw > size - kPayloadAt) return malformed(Defect::BadSample, at, size);
      return Sample{head_of(at, kPayloadAt, raw), tail_of(at, kPayloadAt, raw)};
    }
    if (header.type == PERF_RECORD_LOST) {
      if (size < kLostSizeMin) return malformed(Defect::BadLost, at, size);
      return Lost{M::template read<std::uint64_t>(address(at, kLostCountAt))};
    }
    return malformed(Defect::UnexpectedType, at, size);
  }

  Malformed malformed(Defect defect, At at, std::size_t size) const noexcept {
    return {defect, head_of(at, 0, size), tail_of(at, 0, size)};
  }

  // Returns everything up to data_head as one Malformed, and moves `at` past it. If the positions
  // are further apart than the ring's size, the Malformed is the last lap before data_head.
  Malformed bad_positions(At& at, std::size_t available) noexcept {
    const std::size_t shown = smaller(available, ring_.data.size());
    at = start(ring_, stop_ - shown, shown);
    const Malformed all = malformed(Defect::BadPositions, at, shown);
    at = advance(at, shown);
    return all;
  }

  // Advances by `size`. Precondition: size <= left(at).
  At advance(At at, std::size_t size) noexcept {
    const std::size_t in_piece = piece(at);
    if (size <= in_piece) return at + size;
    end_ = data() + std::exchange(rest_, 0);
    return data() + (size - in_piece);
  }

  // address() is that of byte `offset` of the record at `at`. Of the `length` bytes from there on,
  // head_of() returns those before the ring's end and tail_of() those that wrap to its beginning.
  const std::byte* address(At at, std::size_t offset) const noexcept {
    return offset < piece(at) ? at + offset : data() + (offset - piece(at));
  }
  Bytes head_of(At at, std::size_t offset, std::size_t length) const noexcept {
    return {address(at, offset), offset < piece(at) ? smaller(length, piece(at) - offset) : length};
  }
  Bytes tail_of(At at, std::size_t offset, std::size_t length) const noexcept {
    const std::size_t before_end = head_of(at, offset, length).size();
    return before_end == length ? Bytes{} : Bytes{data(), length - before_end};
  }

  const RingView& ring_;
  SharedPosition stop_;  // where the available bytes end. S9: all 64 bits, because aya commits all
  At end_;               // where the piece that contains `at` ends: data_head, or the ring's end
  std::size_t rest_;     // how many of the available bytes are in the second piece
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RING_WALK_H_
