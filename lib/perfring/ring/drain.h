#ifndef PERFRING_RING_DRAIN_H_
#define PERFRING_RING_DRAIN_H_

// One drain of a ring, from the read of data_head to the write of data_tail. Internal to Ring,
// whose header states the rules (S1 to S10) cited here.
//
//            data_tail                    data_head
//               |<------- available_ ------->|
//   ring: ......[record|record|record|record ]......    addresses are positions modulo the size
//               |<- passed ->at_
//
// A drain has three gears. Following header.size from record to record is a chain of loads that no
// processor can shorten: that is chase(). Once the same header has come several times, guess()
// takes the next one for granted and only checks it, so that the loads run ahead. Whatever is not
// a sound sample in one piece (the wrap, LOST, damage) goes to inspect(), one record at a time.
// Each header is loaded once, so every gear starts with the header of the record at at_ and
// leaves with that of the next.
//
// All of it is inlined into the caller's loop: with the drain's own state in registers, chase()
// costs what the bare chain of loads does; g++ keeps it in memory once a member is called.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"

namespace perfring::internal {

// data_tail, which nobody but the consumer writes.
template <Memory M>
SharedPosition own_tail(const perf_event_mmap_page& page) {
  return M::template read<std::uint64_t>(reinterpret_cast<const std::byte*>(&page.data_tail));
}

// Sizes in the wire format (include/uapi/linux/perf_event.h at v6.18, enum perf_event_type).
inline constexpr std::size_t kRawAt = sizeof(perf_event_header);     // SAMPLE: u32 size of raw
inline constexpr std::size_t kPayloadAt = kRawAt + sizeof(__u32);    // SAMPLE: raw
inline constexpr std::size_t kSampleSizeMin = 16;                    // 12, on 8-byte boundaries
inline constexpr std::size_t kLostCountAt = kRawAt + sizeof(__u64);  // LOST: u64 id, u64 count
inline constexpr std::size_t kLostSizeMin = kLostCountAt + sizeof(__u64);
inline constexpr std::size_t kAlignment = 8;

template <Memory M>
class Drain {
 public:
  // `data` is a power of two long, at most 2 GiB, and 8-aligned.
  [[gnu::always_inline]] Drain(perf_event_mmap_page& page, Bytes data)
      : page_{page}, data_{data.data()}, size_{data.size()}, tail_{own_tail<M>(page)} {
    const Position head = M::read_once(page.data_head);
    M::fence_after_read_of(page.data_head);
    available_ = static_cast<Position>(head - static_cast<Position>(tail_));
    sound_ = available_ <= size_ && (head | tail_) % kAlignment == 0;
  }

  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Passes each event to visit(const PerfEvent&) -> bool until it says false.
  template <class Visit>
  [[gnu::always_inline]] void run(Visit visit) {
    if (available_ == 0) return;
    Cursor cursor = start();
    const Commit commit{*this, cursor};
    if (!sound_) {
      visit(PerfEvent{all(Defect::BadPositions, cursor)});
      return;
    }
    std::uint64_t header = header_at(cursor.at);
    while (chase(cursor, header, visit) && inspect(cursor, header, visit)) {
    }
  }

 private:
  // What is left of a drain: from `at` to `end`, which is in one piece, then rest_ bytes from
  // data_ on. Apart from the Drain and in its hands only as a copy, so that it lives in registers.
  struct Cursor {
    const std::byte* at;
    const std::byte* end;
    std::size_t piece() const noexcept { return static_cast<std::size_t>(end - at); }
  };

  // Runs when the callback throws, too.
  struct Commit {
    Drain& drain;
    const Cursor& cursor;
    [[gnu::always_inline]] ~Commit() {
      M::fence_before_write_of(drain.page_.data_tail);
      M::write_once(drain.page_.data_tail, drain.tail_ + (drain.available_ - drain.left(cursor)));
    }
  };

  // A guess that fails is a branch misprediction, which costs about as much as is saved on this
  // many records that are guessed right.
  static constexpr std::size_t kRunMin = 8;
  static constexpr unsigned kPatienceMax = 255;

  static perf_event_header decode(std::uint64_t header) noexcept {
    return std::bit_cast<perf_event_header>(header);
  }
  static constexpr std::uint64_t encode(perf_event_header header) noexcept {
    return std::bit_cast<std::uint64_t>(header);
  }
  static std::size_t size_of(std::uint64_t header) noexcept {
    return std::endian::native == std::endian::little ? header >> 48 : header & 0xffff;
  }

  // Hides where a value comes from.
  template <class T>
  static T opaque(T value) noexcept {
    asm("" : "+r"(value));
    return value;
  }

  // Whether it is a SAMPLE that can hold its raw size. One comparison for its type and alignment.
  static bool is_sample(std::uint64_t header) noexcept {
    constexpr std::uint64_t mask = encode({.type = ~__u32{0}, .misc = 0, .size = kAlignment - 1});
    constexpr std::uint64_t sample = encode({.type = PERF_RECORD_SAMPLE, .misc = 0, .size = 0});
    return (header & mask) == sample && size_of(header) >= kSampleSizeMin;
  }

  static std::uint64_t header_at(const std::byte* record) {
    return M::template read<std::uint64_t>(record);
  }
  static std::uint32_t raw_at(const std::byte* record) {
    return M::template read<std::uint32_t>(record + kRawAt);
  }

  Cursor start() {
    const std::size_t index = static_cast<std::size_t>(tail_) & (size_ - 1);
    const std::size_t piece = std::min(available_, size_ - index);
    rest_ = available_ - piece;
    return {data_ + index, data_ + index + piece};
  }

  [[gnu::always_inline]] std::size_t left(const Cursor& cursor) const noexcept {
    return cursor.piece() + rest_;
  }

  // Loads the header of the next record, unless there is none.
  [[gnu::always_inline]] bool next(Cursor& cursor, std::uint64_t& header) {
    if (cursor.at == cursor.end) [[unlikely]] {
      if (rest_ == 0) return false;
      cursor = {data_, data_ + std::exchange(rest_, 0)};
    }
    header = header_at(cursor.at);
    return true;
  }

  // Samples in one piece, from header.size to header.size. Each gear answers false if the drain
  // is over; else `header` is the next record's. This one leaves a record to inspect().
  template <class Visit>
  [[gnu::always_inline]] bool chase(Cursor& cursor, std::uint64_t& header, Visit& visit) {
    unsigned wait = patience_;
    for (;;) {
      const std::size_t size = size_of(header);
      if (!is_sample(header) || size > cursor.piece()) [[unlikely]]
        return true;
      const std::uint32_t raw = raw_at(cursor.at);
      if (raw > size - kPayloadAt) [[unlikely]]
        return true;
      if (!pass(cursor, size, raw, visit)) return false;
      if (wait != 0) {
        --wait;
        if (!next(cursor, header)) return false;
      } else {
        if (!guess(cursor, header, visit)) return false;
        wait = patience_;
      }
    }
  }

  // Samples in one piece that all have the header and the raw size of the record just passed. Two
  // at a time, which halves what is not looking at them; chase() gets the odd one that ends a
  // piece.
  template <class Visit>
  [[gnu::always_inline]] bool guess(Cursor& cursor, std::uint64_t& header, Visit& visit) {
    const std::uint64_t guessed = header;
    const std::size_t size = opaque(size_of(guessed));
    const std::size_t raw = size - kPayloadAt;
    if (cursor.piece() < 2 * size) return next(cursor, header);
    const std::byte* const first = cursor.at;
    const std::byte* const last = cursor.end - 2 * size;  // where there is still room for two
    do {
      header = header_at(cursor.at);
      if (header != guessed || raw_at(cursor.at) != raw) [[unlikely]]
        return surprised(first, cursor.at, size);
      header = header_at(cursor.at + size);
      if (header != guessed || raw_at(cursor.at + size) != raw) [[unlikely]] {
        return pass(cursor, size, raw, visit) && surprised(first, cursor.at, size);
      }
      if (!pass(cursor, size, raw, visit) || !pass(cursor, size, raw, visit)) [[unlikely]]
        return false;
    } while (cursor.at <= last);
    return next(cursor, header);
  }

  [[gnu::always_inline]] bool surprised(const std::byte* first, const std::byte* at,
                                        std::size_t size) {
    const bool paid = static_cast<std::size_t>(at - first) >= kRunMin * size;
    patience_ = paid ? 0 : std::min(2 * patience_ + 1, kPatienceMax);
    return true;
  }

  // The sample at hand, which is sound and in one piece.
  template <class Visit>
  [[gnu::always_inline]] bool pass(Cursor& cursor, std::size_t size, std::size_t raw,
                                   Visit& visit) {
    const Bytes payload{cursor.at + kPayloadAt, raw};
    cursor.at += size;
    return visit(PerfEvent{Sample{payload, Bytes{}}});
  }

  // Any one record, wherever it lies and whatever it is.
  template <class Visit>
  [[gnu::always_inline]] bool inspect(Cursor& cursor, std::uint64_t& header, Visit& visit) {
    Cursor copy = cursor;
    const PerfEvent event = interpret(copy, decode(header));
    cursor = copy;
    return visit(event) && next(cursor, header);
  }

  // Takes the record at hand.
  [[gnu::noinline]] PerfEvent interpret(Cursor& cursor, perf_event_header header) {
    const std::size_t size = header.size;
    if (size < sizeof(header) || size % kAlignment != 0 || size > left(cursor)) {
      return skip(Defect::BadSize, cursor, left(cursor));
    }
    if (header.type == PERF_RECORD_SAMPLE) {
      if (size < kSampleSizeMin) return skip(Defect::BadSample, cursor, size);
      const std::size_t raw = M::template read<std::uint32_t>(address(cursor, kRawAt));
      if (raw > size - kPayloadAt) return skip(Defect::BadSample, cursor, size);
      const Sample sample{head_of(cursor, kPayloadAt, raw), tail_of(cursor, kPayloadAt, raw)};
      advance(cursor, size);
      return sample;
    }
    if (header.type == PERF_RECORD_LOST) {
      if (size < kLostSizeMin) return skip(Defect::BadLost, cursor, size);
      const Lost lost{M::template read<std::uint64_t>(address(cursor, kLostCountAt))};
      advance(cursor, size);
      return lost;
    }
    return skip(Defect::UnexpectedType, cursor, size);
  }

  [[gnu::always_inline]] Malformed skip(Defect defect, Cursor& cursor, std::size_t size) noexcept {
    const Malformed malformed{defect, head_of(cursor, 0, size), tail_of(cursor, 0, size)};
    advance(cursor, size);
    return malformed;
  }

  // Everything up to data_head. Of positions further apart than the ring, the ring's last lap is
  // what there is to show.
  Malformed all(Defect defect, Cursor& cursor) noexcept {
    const std::size_t shown = std::min(available_, size_);
    const std::size_t index = (static_cast<std::size_t>(tail_) + available_ - shown) & (size_ - 1);
    const std::size_t piece = std::min(shown, size_ - index);
    cursor = {data_ + index, data_ + index + piece};
    rest_ = shown - piece;
    return skip(defect, cursor, shown);
  }

  // Past `size` bytes, of which there are so many left.
  [[gnu::always_inline]] void advance(Cursor& cursor, std::size_t size) noexcept {
    if (size <= cursor.piece()) {
      cursor.at += size;
    } else {
      const std::size_t beyond = size - cursor.piece();
      cursor = {data_ + beyond, data_ + std::exchange(rest_, 0)};
    }
  }

  // Where the byte `offset` into the record at hand is, and `length` bytes from there on: those
  // before the ring's end, and those after it.
  [[gnu::always_inline]] const std::byte* address(const Cursor& cursor,
                                                  std::size_t offset) const noexcept {
    const std::size_t piece = cursor.piece();
    return offset < piece ? cursor.at + offset : data_ + (offset - piece);
  }
  [[gnu::always_inline]] Bytes head_of(const Cursor& cursor, std::size_t offset,
                                       std::size_t length) const noexcept {
    const std::size_t piece = cursor.piece();
    return {address(cursor, offset), offset < piece ? std::min(length, piece - offset) : length};
  }
  [[gnu::always_inline]] Bytes tail_of(const Cursor& cursor, std::size_t offset,
                                       std::size_t length) const noexcept {
    const std::size_t before_end = head_of(cursor, offset, length).size();
    return before_end == length ? Bytes{} : Bytes{data_, length - before_end};
  }

  perf_event_mmap_page& page_;
  const std::byte* const data_;
  const std::size_t size_;
  const SharedPosition tail_;  // S9: kept whole, so that what is written equals aya's
  std::size_t available_;      // below 2^32, at most the ring's size if the positions are sound
  std::size_t rest_;
  unsigned patience_ = 0;  // how many records are chased between guesses
  bool sound_;
};

}  // namespace perfring::internal

#endif  // PERFRING_RING_DRAIN_H_
