#ifndef PERFRING_RING_DRAIN_H_
#define PERFRING_RING_DRAIN_H_

// One drain of a ring, from the read of data_head to the write of data_tail. Internal to Ring,
// whose header states the rules (S1 to S10) cited here.
//
//            data_tail                    data_head
//               |<------- available_ ------->|
//   ring: ......[record|record|record|record ]......    addresses are positions modulo the size
//               |<- consumed_ ->|
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
      : page_{page}, data_{data.data()}, size_{data.size()}, tail_{own_tail<M>(page)} {
    head_ = M::read_once(page.data_head);
    M::fence_after_read_of(page.data_head);
    available_ = static_cast<Position>(head_ - static_cast<Position>(tail_));
  }

  // Runs when the callback throws, too.
  ~Drain() {
    if (consumed_ == 0) return;
    M::fence_before_write_of(page_.data_tail);
    M::write_once(page_.data_tail, tail_ + consumed_);
  }

  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Passes each event to visit(const PerfEvent&) -> bool until it says false.
  template <class Visit>
  [[gnu::always_inline]] void run(Visit visit) {
    if (available_ == 0) return;
    if (available_ > size_ || (head_ | tail_) % kAlignment != 0) {
      // Of positions further apart than the ring, the ring's last lap is what there is to show.
      const std::size_t shown = std::min(available_, size_);
      consumed_ = available_;
      visit(malformed(Defect::BadPositions, available_ - shown, shown));
      return;
    }
    std::uint64_t header = load_header();
    unsigned streak = 0;
    while (chase(header, streak, visit) && inspect(header, visit)) {
    }
  }

 private:
  // How often a header repeats before it is guessed. A failed guess costs a branch misprediction,
  // some ten records; at random sizes guesses must be rare, at fixed ones soon.
  static constexpr unsigned kStreakMin = 8;

  // The rest of the ring that lies in one piece: the byte at `consumed` is data_[consumed + shift].
  struct Stretch {
    std::size_t shift;  // wraps around: an index, not a distance
    std::size_t limit;  // `consumed` at the ring's end, or at data_head if that comes first
  };

  static perf_event_header decode(std::uint64_t header) noexcept {
    return std::bit_cast<perf_event_header>(header);
  }

  // Hides where a value comes from: the compiler could otherwise take a guess, once checked, from
  // the header it was checked against, which puts the load back on the chain.
  static std::size_t opaque(std::size_t value) noexcept {
    asm("" : "+r"(value));
    return value;
  }

  // Of a size that a stretch has room for: whether it is a SAMPLE that can hold its raw size.
  static bool is_sample(const perf_event_header& header) noexcept {
    return (header.type == PERF_RECORD_SAMPLE) & (header.size >= kSampleSizeMin) &
           (header.size % kAlignment == 0);
  }

  std::size_t index_of(std::size_t offset) const noexcept {
    return (static_cast<std::size_t>(tail_) + offset) & (size_ - 1);
  }

  Stretch stretch() const noexcept {
    const std::size_t index = index_of(consumed_);
    const std::size_t length = std::min(size_ - index, available_ - consumed_);
    return {index - consumed_, consumed_ + length};
  }

  std::uint64_t load_header() const {
    return M::template read<std::uint64_t>(data_ + index_of(consumed_));
  }

  // Loads the header of the next record, unless there is none.
  bool next(std::uint64_t& header) const {
    if (consumed_ == available_) return false;
    header = load_header();
    return true;
  }

  // Samples in one piece, from header.size to header.size. Each gear answers false if the drain
  // is over; else `header` is the next record's. This one leaves a record to inspect().
  template <class Visit>
  [[gnu::always_inline]] bool chase(std::uint64_t& header, unsigned& streak, Visit& visit) {
    const Stretch in = stretch();
    for (;;) {
      const perf_event_header decoded = decode(header);
      const std::size_t size = decoded.size;
      if (!is_sample(decoded) || size > in.limit - consumed_) return true;
      if (streak >= kStreakMin) {
        if (!guess(header, streak, in, visit)) return false;
        continue;
      }
      const std::byte* record = data_ + (consumed_ + in.shift);
      const std::size_t raw = M::template read<std::uint32_t>(record + kRawAt);
      if (raw > size - kPayloadAt) return true;
      consumed_ += size;
      if (!visit(PerfEvent{Sample{Bytes{record + kPayloadAt, raw}, Bytes{}}})) return false;
      if (consumed_ == in.limit) return next(header);
      const std::uint64_t last = std::exchange(header, load_header());
      streak = (streak + 1) & -static_cast<unsigned>(header == last);  // no branch to mispredict
    }
  }

  // Samples in one piece whose headers all equal `header`, the first of which is one. Keeps the
  // streak if the stretch ends first; the header that broke it is left to chase().
  template <class Visit>
  [[gnu::always_inline]] bool guess(std::uint64_t& header, unsigned& streak, Stretch in,
                                    Visit& visit) {
    const std::uint64_t guessed = header;
    const std::size_t size = opaque(decode(guessed).size);
    do {
      const std::byte* record = data_ + (consumed_ + in.shift);
      const std::size_t raw = M::template read<std::uint32_t>(record + kRawAt);
      if (raw > size - kPayloadAt) break;
      consumed_ += size;
      if (!visit(PerfEvent{Sample{Bytes{record + kPayloadAt, raw}, Bytes{}}})) return false;
      if (in.limit - consumed_ < size) return next(header);
      header = M::template read<std::uint64_t>(data_ + (consumed_ + in.shift));
    } while (header == guessed);
    streak = 0;
    return true;
  }

  // Any one record, wherever it lies and whatever it is.
  template <class Visit>
  [[gnu::always_inline]] bool inspect(std::uint64_t& header, Visit& visit) {
    const perf_event_header decoded = decode(header);
    const std::size_t at = consumed_;
    const std::size_t left = available_ - consumed_;
    const bool believable =
        decoded.size >= sizeof(header) && decoded.size % kAlignment == 0 && decoded.size <= left;
    consumed_ += believable ? decoded.size : left;
    return visit(believable ? interpret(decoded, at) : malformed(Defect::BadSize, at, left)) &&
           next(header);
  }

  // The record at offset `at`, whose size is believable.
  [[gnu::always_inline]] PerfEvent interpret(const perf_event_header& header,
                                             std::size_t at) const {
    const std::size_t size = header.size;
    if (header.type == PERF_RECORD_SAMPLE) {
      if (size < kSampleSizeMin) return malformed(Defect::BadSample, at, size);
      const std::size_t raw = M::template read<std::uint32_t>(data_ + index_of(at + kRawAt));
      if (raw > size - kPayloadAt) return malformed(Defect::BadSample, at, size);
      return Sample{head_of(at + kPayloadAt, raw), tail_of(at + kPayloadAt, raw)};
    }
    if (header.type == PERF_RECORD_LOST) {
      if (size < kLostSizeMin) return malformed(Defect::BadLost, at, size);
      return Lost{M::template read<std::uint64_t>(data_ + index_of(at + kLostCountAt))};
    }
    return malformed(Defect::UnexpectedType, at, size);
  }

  Malformed malformed(Defect defect, std::size_t at, std::size_t size) const noexcept {
    return {defect, head_of(at, size), tail_of(at, size)};
  }

  // `length` bytes from `offset` on: those before the ring's end, and those after it.
  Bytes head_of(std::size_t offset, std::size_t length) const noexcept {
    const std::size_t index = index_of(offset);
    return {data_ + index, std::min(length, size_ - index)};
  }
  Bytes tail_of(std::size_t offset, std::size_t length) const noexcept {
    const std::size_t before_end = head_of(offset, length).size();
    return before_end == length ? Bytes{} : Bytes{data_, length - before_end};
  }

  perf_event_mmap_page& page_;
  const std::byte* const data_;
  const std::size_t size_;
  const SharedPosition tail_;  // S9: kept whole, so that what is written equals aya's
  Position head_;
  std::size_t available_;     // below 2^32, at most size_ unless the positions are unsound
  std::size_t consumed_ = 0;  // at most available_
};

}  // namespace perfring::internal

#endif  // PERFRING_RING_DRAIN_H_
