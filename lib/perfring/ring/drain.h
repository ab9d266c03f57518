#ifndef PERFRING_RING_DRAIN_H_
#define PERFRING_RING_DRAIN_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// One drain of a ring, from the read of data_head to the write of data_tail. Internal to Ring,
// whose header states the rules (S1 to S10) cited here.
//
//            data_tail                    data_head
//               |<------- available -------->|
//   ring: ......[record|record|record|record ]......    addresses are positions modulo the size
//               |<- consumed ->at
//
// A drain has three gears. Following header.size from record to record is a chain of loads that no
// processor can shorten: that is chase(). guess() assumes that the next header equals the last one
// and checks that afterwards, so that the loads run ahead; the less it pays, the less often it is
// tried. Whatever is not a sound sample in one piece (the wrap, LOST, damage) goes to
// inspect(), one record at a time. Each header is loaded once, so every gear starts with the header
// of the record at `at` and leaves with that of the next.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

// data_tail. Only the consumer writes it: the kernel reads it in __perf_output_begin()
// (kernel/events/ring_buffer.c at v6.18), so a plain load of one's own store will do.
template <Memory M>
SharedPosition own_tail(const perf_event_mmap_page& page) {
  return M::template read<std::uint64_t>(reinterpret_cast<const std::byte*>(&page.data_tail));
}

template <Memory M>
class Drain {
 public:
  explicit Drain(const RingView& ring) : ring_{ring} {}

  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Passes each event to visit(const PerfEvent&) -> bool until it says false.
  template <class Visit>
  [[gnu::always_inline]] void run(Visit visit) {
    const RingView ring = ring_;  // a copy: no store can alias it, so it stays in registers
    const SharedPosition tail = own_tail<M>(*ring.page);
    const Position head = M::read_once(ring.page->data_head);
    M::fence_after_read_of(ring.page->data_head);
    const Position distance = head - static_cast<Position>(tail);
    const std::size_t available = distance;
    if (available == 0) return;

    stop_ = tail + available;
    At at = start(ring, tail, available);
    const Commit commit{*this, at};
    if (available > ring.data.size() || (head | tail) % kAlignment != 0) [[unlikely]] {
      visit(PerfEvent{bad_positions(at, available)});
      return;
    }
    std::uint64_t header = header_at(at);
    while (chase(at, header, visit) && inspect(at, header, visit)) {
    }
  }

 private:
  using At = const std::byte*;

  // Runs when the callback throws, too.
  struct Commit {
    const Drain& drain;
    const At& at;
    [[gnu::always_inline]] ~Commit() {
      perf_event_mmap_page& page = *drain.ring_.page;
      M::fence_before_write_of(page.data_tail);
      M::write_once(page.data_tail, drain.stop_ - drain.left(at));
    }
  };

  // A guess that fails is a branch misprediction, which costs about as much as is saved on this
  // many records that are guessed right.
  static constexpr std::size_t kRunMin = 8;
  static constexpr unsigned kBackoffMax = 255;

  static perf_event_header decode(std::uint64_t header) noexcept {
    return std::bit_cast<perf_event_header>(header);
  }
  static constexpr std::uint64_t encode(perf_event_header header) noexcept {
    return std::bit_cast<std::uint64_t>(header);
  }
  static std::size_t size_of(std::uint64_t header) noexcept {
    return static_cast<__u16>(std::endian::native == std::endian::little ? header >> 48 : header);
  }

  // Keeps the compiler from deriving a guess from the header that was just loaded, which would
  // restore the chain of loads.
  template <class T>
  static T opaque(T value) noexcept {
    asm("" : "+r"(value));
    return value;
  }

  // Whether the header is that of a SAMPLE that has room for its raw size. Type and alignment are
  // one comparison.
  static bool is_sample(std::uint64_t header) noexcept {
    constexpr std::uint64_t mask = encode({.type = ~__u32{0}, .misc = 0, .size = kAlignment - 1});
    constexpr std::uint64_t sample = encode({.type = PERF_RECORD_SAMPLE, .misc = 0, .size = 0});
    return (header & mask) == sample && size_of(header) >= kSampleSizeMin;
  }

  // struct perf_event_header (include/uapi/linux/perf_event.h at v6.18), in one load. Records start
  // on 8-byte boundaries (perf_sample_save_raw_data() there in the kernel's own perf_event.h pads
  // them), so that no header straddles the ring's end.
  static std::uint64_t header_at(const std::byte* record) {
    return M::template read<std::uint64_t>(record);
  }
  // The u32 in front of the raw bytes, which is all that perf_output_sample() writes for
  // PERF_SAMPLE_RAW alone (kernel/events/core.c at v6.18).
  static std::uint32_t raw_at(const std::byte* record) {
    return M::template read<std::uint32_t>(record + kRawAt);
  }

  // Puts end_ and rest_ around `length` bytes from position `tail` on, and returns where they
  // start.
  At start(const RingView& ring, SharedPosition tail, std::size_t length) noexcept {
    const std::size_t size = ring.data.size();
    const std::size_t index = static_cast<std::size_t>(tail) & (size - 1);
    const std::size_t piece = smaller(length, size - index);
    const At at = ring.data.data() + index;
    end_ = at + piece;
    rest_ = length - piece;
    return at;
  }

  const std::byte* data() const noexcept { return ring_.data.data(); }
  std::size_t piece(At at) const noexcept { return static_cast<std::size_t>(end_ - at); }
  std::size_t left(At at) const noexcept { return piece(at) + rest_; }

  // Loads the header of the next record. Returns false if there is none. Only this function,
  // advance() and start() change end_ and rest_.
  [[gnu::always_inline]] bool next(At& at, std::uint64_t& header) {
    if (at == end_) [[unlikely]] {
      if (rest_ == 0) return false;
      at = data();
      end_ = data() + std::exchange(rest_, 0);
    }
    header = header_at(at);
    return true;
  }

  // Delivers samples in one piece, from header.size to header.size. Returns false if the drain is
  // over; else `header` is that of a record for inspect().
  template <class Visit>
  [[gnu::always_inline]] bool chase(At& at, std::uint64_t& header, Visit& visit) {
    unsigned wait = backoff_;
    for (;;) {
      const std::size_t size = size_of(header);
      if (!is_sample(header) || size > piece(at)) [[unlikely]]
        return true;
      const std::uint32_t raw = raw_at(at);
      if (raw > size - kPayloadAt) [[unlikely]]
        return true;
      if (!deliver(at, size, raw, visit)) return false;
      if (wait != 0) {
        --wait;
        if (!next(at, header)) return false;
      } else {
        if (!guess(at, header, visit)) return false;
        wait = backoff_;
      }
    }
  }

  // Delivers samples in one piece for as long as they have the header and the raw size of the last
  // one. Two at a time, which halves the cost of the loop; chase() gets the odd one that ends a
  // piece. Returns false if the drain is over; else `header` is the next record's.
  template <class Visit>
  [[gnu::always_inline]] bool guess(At& at, std::uint64_t& header, Visit& visit) {
    const std::uint64_t guessed = header;
    const std::size_t size = opaque(size_of(guessed));
    const std::size_t raw = size - kPayloadAt;
    if (piece(at) < 2 * size) return next(at, header);
    guessed_from_ = at;
    const At last = end_ - 2 * size;  // where there is still room for two
    do {
      header = header_at(at);
      if (header != guessed || raw_at(at) != raw) [[unlikely]]
        return guess_failed(at, size);
      header = header_at(at + size);
      if (header != guessed || raw_at(at + size) != raw) [[unlikely]] {
        return deliver(at, size, raw, visit) && guess_failed(at, size);
      }
      if (!deliver(at, size, raw, visit) || !deliver(at, size, raw, visit)) [[unlikely]]
        return false;
    } while (at <= last);
    return next(at, header);
  }

  // Guesses less often after a failure, unless the run of right guesses has paid for it. Never
  // false: the drain goes on.
  bool guess_failed(At at, std::size_t size) {
    const bool paid = static_cast<std::size_t>(at - guessed_from_) >= kRunMin * size;
    backoff_ = paid ? 0 : smaller(2 * backoff_ + 1, kBackoffMax);
    return true;
  }

  // Delivers the sample at `at`, which is sound and in one piece. (harness/model replaces this
  // member by a fault that reads header.size again: harness/model/ring/ring_faults.cc.)
  template <class Visit>
  [[gnu::always_inline]] bool deliver(At& at, std::size_t size, std::size_t raw, Visit& visit) {
    const Bytes payload{at + kPayloadAt, raw};
    at += size;
    return visit(PerfEvent{Sample{payload, Bytes{}}});
  }

  // Delivers the record at `at`, wherever it lies and whatever it is.
  template <class Visit>
  [[gnu::always_inline]] bool inspect(At& at, std::uint64_t& header, Visit& visit) {
    const PerfEvent event = interpret(at, decode(header));
    at = advance(at, believable(at, size_of(header)) ? size_of(header) : left(at));
    return visit(event) && next(at, header);
  }

  bool believable(At at, std::size_t size) const noexcept {
    return size >= sizeof(perf_event_header) && size % kAlignment == 0 && size <= left(at);
  }

  // Classifies the record at `at`; consumes nothing.
  [[gnu::noinline]] PerfEvent interpret(At at, perf_event_header header) const {
    const std::size_t size = header.size;
    if (!believable(at, size)) return malformed(Defect::BadSize, at, left(at));
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

  // Everything up to data_head; where the positions are further apart than the ring is long, the
  // last lap before data_head.
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

  // The address of the byte `offset` into the record at `at`; and of the `length` bytes from there
  // on, those before the ring's end and those behind it.
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
  SharedPosition stop_;  // data_tail once all is consumed. S9: whole, so that it equals aya's
  At end_;               // of the piece that `at` is in: data_head, or the ring's end
  std::size_t rest_;     // how much of what is available lies in the piece after that
  At guessed_from_;
  unsigned backoff_ = 0;  // how many records are chased between guesses
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RING_DRAIN_H_
