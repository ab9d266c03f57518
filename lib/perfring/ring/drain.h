#ifndef PERFRING_RING_DRAIN_H_
#define PERFRING_RING_DRAIN_H_

// One drain of a ring, from the read of data_head to the write of data_tail. Internal to Ring,
// whose header states the rules (S1 to S10) cited here.
//
//            data_tail                    data_head
//               |<------- available_ ------->|
//   ring: ......[record|record|record|record ]......    addresses are positions modulo the size
//               |<- consumed ->at_
//
// A drain has three gears. Following header.size from record to record is a chain of loads that no
// processor can shorten: that is chase(). Once the same header has come several times, guess()
// takes the next one for granted and only checks it, so that the loads run ahead. Whatever is not
// a sound sample in one piece (the wrap, LOST, damage) goes to inspect(), one record at a time.
// Each header is loaded once, so every gear starts with the header of the record at consumed_ and
// leaves with that of the next.

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
  Drain(perf_event_mmap_page& page, Bytes data)
      : page_{page}, data_{data.data()}, tail_{own_tail<M>(page)} {
    const Position head = M::read_once(page.data_head);
    M::fence_after_read_of(page.data_head);
    available_ = static_cast<Position>(head - static_cast<Position>(tail_));
    sound_ = available_ <= data.size() && (head | tail_) % kAlignment == 0;
    // Of positions further apart than the ring, the ring's last lap is what there is to show.
    const std::size_t shown = std::min(available_, data.size());
    const std::size_t index = (head - shown) & (data.size() - 1);
    at_ = data_ + index;
    end_ = at_ + std::min(shown, data.size() - index);
    rest_ = shown - left_in_one_piece();
  }

  // Runs when the callback throws, too.
  ~Drain() {
    const std::size_t consumed = available_ - left();
    if (consumed == 0) return;
    M::fence_before_write_of(page_.data_tail);
    M::write_once(page_.data_tail, tail_ + consumed);
  }

  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Passes each event to visit(const PerfEvent&) -> bool until it says false.
  template <class Visit>
  [[gnu::always_inline]] void run(Visit visit) {
    if (available_ == 0) return;
    if (!sound_) {
      visit(PerfEvent{skip(Defect::BadPositions, left())});
      return;
    }
    std::uint64_t header = M::template read<std::uint64_t>(at_);
    while (chase(header, visit) && inspect(header, visit)) {
    }
  }

 private:
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

  // Hides where a value comes from. Of a size: the compiler could otherwise take a guess, once
  // checked, from the header it was checked against, which puts the load back on the chain. Of an
  // address: it could keep several in step where one will do.
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

  std::size_t left_in_one_piece() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  std::size_t left() const noexcept { return left_in_one_piece() + rest_; }

  // Loads the header of the next record, unless there is none.
  [[gnu::always_inline]] bool next(std::uint64_t& header) {
    if (at_ == end_) [[unlikely]] {
      if (rest_ == 0) return false;
      at_ = data_;
      end_ = data_ + std::exchange(rest_, 0);
    }
    header = M::template read<std::uint64_t>(at_);
    return true;
  }

  // Samples in one piece, from header.size to header.size. Each gear answers false if the drain
  // is over; else `header` is the next record's. This one leaves a record to inspect().
  template <class Visit>
  [[gnu::always_inline]] bool chase(std::uint64_t& header, Visit& visit) {
    unsigned wait = patience_;
    for (;;) {
      const std::size_t size = size_of(header);
      if (!is_sample(header) || size > left_in_one_piece()) [[unlikely]] return true;
      const std::byte* const record = at_;
      const std::size_t raw = M::template read<std::uint32_t>(record + kRawAt);
      if (raw > size - kPayloadAt) [[unlikely]] return true;
      at_ += size;
      if (!visit(PerfEvent{Sample{Bytes{record + kPayloadAt, raw}, Bytes{}}})) return false;
      if (wait != 0) {
        --wait;
        if (!next(header)) return false;
      } else {
        if (!guess(header, visit)) return false;
        wait = patience_;
      }
    }
  }

  // Samples in one piece whose headers all equal `header`, that of the record just passed.
  template <class Visit>
  [[gnu::always_inline]] bool guess(std::uint64_t& header, Visit& visit) {
    const std::uint64_t guessed = header;
    const std::size_t size = opaque(size_of(guessed));
    const std::size_t raw_max = size - kPayloadAt;
    const std::byte* const first = at_;
    const std::byte* const last = end_ - size;  // the last place that has room for such a record
    while (at_ <= last) {
      header = M::template read<std::uint64_t>(at_);
      if (header != guessed) [[unlikely]] {
        const bool paid = static_cast<std::size_t>(at_ - first) >= kRunMin * size;
        patience_ = paid ? 0 : std::min(2 * patience_ + 1, kPatienceMax);
        return true;
      }
      const std::byte* const record = at_;
      const std::size_t raw = M::template read<std::uint32_t>(record + kRawAt);
      if (raw > raw_max) [[unlikely]] return true;
      at_ = opaque(record + size);
      if (!visit(PerfEvent{Sample{Bytes{record + kPayloadAt, raw}, Bytes{}}})) return false;
    }
    return next(header);
  }

  // Any one record, wherever it lies and whatever it is.
  template <class Visit>
  [[gnu::always_inline]] bool inspect(std::uint64_t& header, Visit& visit) {
    const PerfEvent event = interpret(decode(header));
    return visit(event) && next(header);
  }

  // Takes the record at hand.
  [[gnu::always_inline]] PerfEvent interpret(const perf_event_header& header) {
    const std::size_t size = header.size;
    if (size < sizeof(header) || size % kAlignment != 0 || size > left()) {
      return skip(Defect::BadSize, left());
    }
    if (header.type == PERF_RECORD_SAMPLE) {
      if (size < kSampleSizeMin) return skip(Defect::BadSample, size);
      const std::size_t raw = M::template read<std::uint32_t>(address(kRawAt));
      if (raw > size - kPayloadAt) return skip(Defect::BadSample, size);
      const Sample sample{head_of(kPayloadAt, raw), tail_of(kPayloadAt, raw)};
      advance(size);
      return sample;
    }
    if (header.type == PERF_RECORD_LOST) {
      if (size < kLostSizeMin) return skip(Defect::BadLost, size);
      const Lost lost{M::template read<std::uint64_t>(address(kLostCountAt))};
      advance(size);
      return lost;
    }
    return skip(Defect::UnexpectedType, size);
  }

  Malformed skip(Defect defect, std::size_t size) noexcept {
    const Malformed malformed{defect, head_of(0, size), tail_of(0, size)};
    advance(size);
    return malformed;
  }

  // Past `size` bytes, of which there are so many left.
  void advance(std::size_t size) noexcept {
    if (size <= left_in_one_piece()) {
      at_ += size;
    } else {
      const std::size_t beyond = size - left_in_one_piece();
      at_ = data_ + beyond;
      end_ = data_ + std::exchange(rest_, 0);
    }
  }

  // Where the byte `offset` into the record at hand is, and `length` bytes from there on: those
  // before the ring's end, and those after it.
  const std::byte* address(std::size_t offset) const noexcept {
    const std::size_t piece = left_in_one_piece();
    return offset < piece ? at_ + offset : data_ + (offset - piece);
  }
  Bytes head_of(std::size_t offset, std::size_t length) const noexcept {
    const std::size_t piece = left_in_one_piece();
    return {address(offset), offset < piece ? std::min(length, piece - offset) : length};
  }
  Bytes tail_of(std::size_t offset, std::size_t length) const noexcept {
    const std::size_t before_end = head_of(offset, length).size();
    return before_end == length ? Bytes{} : Bytes{data_, length - before_end};
  }

  perf_event_mmap_page& page_;
  const std::byte* const data_;
  const SharedPosition tail_;  // S9: kept whole, so that what is written equals aya's
  std::size_t available_;      // below 2^32, at most the ring's size if the positions are sound
  bool sound_;
  // What is left: from at_ to end_, then rest_ bytes from data_ on.
  const std::byte* at_;
  const std::byte* end_;
  std::size_t rest_;
  unsigned patience_ = 0;  // how many records are chased between guesses
};

}  // namespace perfring::internal

#endif  // PERFRING_RING_DRAIN_H_
