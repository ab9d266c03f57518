#ifndef PERFRING_RING_DRAIN_H_
#define PERFRING_RING_DRAIN_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// One drain of a ring, from the read of data_head to the write of data_tail. Internal to Ring;
// ring.h states the rules (S1 to S11) cited here.
//
//            data_tail                    data_head
//               |<------- available -------->|
//   ring: ......[record|record|record|record ]......    addresses are positions modulo the size
//               |<- consumed ->at
//
// A drain has three gears. chase() follows header.size from record to record: a chain of loads that
// no processor can shorten. guess() assumes that the next header equals the last one and checks
// that afterwards, so that the loads run ahead; the less a guess pays, the less often it is tried.
// inspect() takes, one at a time, every record other than a sound sample in one piece: the wrap,
// LOST, damage. Each header is loaded once, so every gear starts with the header of the record at
// `at` and ends with that of the next one.

#include <cstddef>
#include <cstdint>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

template <Memory M>
class Drain : private Walk<M> {
 public:
  explicit Drain(const RingView& ring) : Walk<M>{ring} {}

  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Passes each event to visit(const PerfEvent&) -> bool until that returns false.
  template <class Visit>
  [[gnu::always_inline]] void run(Visit visit) {
    const RingView ring = ring_;  // a copy, which no store can alias, so it stays in registers
    const SharedPosition tail = own_tail<M>(*ring.page);
    const Position head = read_head<M>(*ring.page);
    const std::size_t available = internal::available(ring.data.size(), tail, head);
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
  using At = typename Walk<M>::At;
  using Walk<M>::advance;
  using Walk<M>::bad_positions;
  using Walk<M>::has_valid_size;
  using Walk<M>::decode;
  using Walk<M>::end_;
  using Walk<M>::header_at;
  using Walk<M>::interpret;
  using Walk<M>::is_sample;
  using Walk<M>::kPayloadAt;
  using Walk<M>::left;
  using Walk<M>::next;
  using Walk<M>::piece;
  using Walk<M>::raw_at;
  using Walk<M>::ring_;
  using Walk<M>::size_of;
  using Walk<M>::start;
  using Walk<M>::stop_;

  // Writes data_tail (S2), even if the callback throws.
  struct Commit {
    const Drain& drain;
    const At& at;
    [[gnu::always_inline]] ~Commit() {
      perf_event_mmap_page& page = *drain.ring_.page;
      M::fence_before_write_of(page.data_tail);
      M::write_once(page.data_tail, drain.stop_ - drain.left(at));
    }
  };

  // A failed guess is a branch misprediction, which costs about as much as this many right guesses
  // save.
  static constexpr std::size_t kRunMin = 8;
  static constexpr unsigned kBackoffMax = 255;

  // Keeps the compiler from deriving a guess from the header that was just loaded, which would
  // bring back the chain of loads.
  template <class T>
  static T opaque(T value) noexcept {
    asm("" : "+r"(value));
    return value;
  }

  // Delivers samples in one piece, following header.size. Returns false if the drain is over;
  // otherwise `header` is that of a record for inspect().
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

  // Delivers samples in one piece as long as their header and raw size equal those of the last one.
  // Delivers two at a time, which halves the cost of the loop; chase() takes the odd one at the end
  // of a piece. Returns false if the drain is over; otherwise `header` is the next record's.
  template <class Visit>
  [[gnu::always_inline]] bool guess(At& at, std::uint64_t& header, Visit& visit) {
    const std::uint64_t guessed = header;
    const std::size_t size = opaque(size_of(guessed));
    const std::size_t raw = size - kPayloadAt;
    if (piece(at) < 2 * size) return next(at, header);
    guessed_from_ = at;
    const At last = end_ - 2 * size;  // the last place with room for two
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

  // Makes guesses rarer after a failed one, unless the run of right guesses before it has paid for
  // it. Always returns true: the drain continues.
  bool guess_failed(At at, std::size_t size) {
    const bool paid = static_cast<std::size_t>(at - guessed_from_) >= kRunMin * size;
    backoff_ = paid ? 0 : smaller(2 * backoff_ + 1, kBackoffMax);
    return true;
  }

  // Delivers the sample at `at`, which is sound and in one piece.
  // (harness/model/ring/ring_faults.cc replaces this member by a fault that reads header.size
  // again.)
  template <class Visit>
  [[gnu::always_inline]] bool deliver(At& at, std::size_t size, std::size_t raw, Visit& visit) {
    const Bytes payload{at + kPayloadAt, raw};
    at += size;
    return visit(PerfEvent{Sample{payload, Bytes{}}});
  }

  // Delivers the record at `at`, sound or damaged, in one piece or in two.
  template <class Visit>
  [[gnu::always_inline]] bool inspect(At& at, std::uint64_t& header, Visit& visit) {
    const PerfEvent event = interpret(at, decode(header));
    at = advance(at, has_valid_size(at, size_of(header)) ? size_of(header) : left(at));
    return visit(event) && next(at, header);
  }

  At guessed_from_;
  unsigned backoff_ = 0;  // how many records are chased between guesses
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RING_DRAIN_H_
