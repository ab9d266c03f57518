#ifndef HARNESS_ORACLE_DRAIN_WATCH_H_
#define HARNESS_ORACLE_DRAIN_WATCH_H_

// Checks a drain of any bytes at any positions, hostile ones too: bounded, in_ring, tail_honest,
// and which Malformed may be delivered. The only shared memory that it reads is data_tail, which
// the consumer alone writes.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "harness/oracle/invariant.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

// What a drain may take: the bytes from data_tail to data_head, modulo 2^32. None, if it is
// data_head that lies behind, by no more than the ring holds, and both are multiples of 8: so a
// kernel before 5.2 may show it for a moment (K59).
inline std::uint32_t unread(std::size_t ring_size, std::uint64_t tail, std::uint64_t head) {
  const auto ahead = static_cast<std::uint32_t>(head - tail);
  const auto behind = static_cast<std::uint32_t>(tail - head);
  const bool went_back = behind <= ring_size && behind < ahead && tail % 8 == 0 && head % 8 == 0;
  return went_back ? 0 : ahead;
}

// The bytes that a consumer may read: data_tail itself, and the `available` bytes of the ring from
// there on, or none of these if that is more than the ring holds. For one thread that plays all
// parts.
struct Readable {
  const perf_event_mmap_page* page;
  Bytes data;
  std::uint64_t tail = 0;
  std::uint64_t available = 0;

  // From here on, what is unread now.
  void begins() {
    tail = page->data_tail;
    available = unread(data.size(), tail, page->data_head);
  }
  bool holds(const std::byte* address, std::size_t size) const {
    if (address == reinterpret_cast<const std::byte*>(&page->data_tail)) return true;
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(data.data());
    const std::uint64_t from_tail = (offset - tail) & (data.size() - 1);
    const bool inside = offset < data.size() && size <= data.size() - offset;
    return inside && available <= data.size() && from_tail + size <= available;
  }
};

class DrainWatch : private FirstViolation {
 public:
  // Watches the ring over `page` and `data`, which must outlive it.
  DrainWatch(const perf_event_mmap_page& page, Bytes data)
      : page_{page}, data_{data}, tail_{data_tail()} {}

  void begins();
  // Call it first in the drain's callback.
  void event(const PerfEvent& event);
  // Call it when the drain has ended, also by an exception. `available`, if the caller knows it:
  // data_head as the drain has read it, less data_tail, modulo 2^32.
  void ends(std::optional<std::uint32_t> available = {});

  // For a memory policy that sees each access.
  void reads(const std::byte* address, std::size_t size) {
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(data_.data());
    const bool inside = offset <= data_.size() && size <= data_.size() - offset;
    if (!inside && size != 0) outside(address, size);
  }

  // Bytes of ring that the last drain has released.
  std::uint64_t moved() const { return moved_; }
  std::uint64_t tail() const { return tail_; }
  bool in_drain() const { return in_drain_; }
  std::uint64_t data_tail() const;

  using FirstViolation::violation;

 private:
  // The least number of bytes that an event took of the ring.
  std::uint64_t size_of(const PerfEvent& event);
  void in_ring(Bytes head, Bytes tail);
  void outside(const std::byte* address, std::size_t size);
  void malformed(const Malformed& malformed);

  const perf_event_mmap_page& page_;
  const Bytes data_;
  std::uint64_t tail_;
  std::uint64_t moved_ = 0;
  std::uint64_t events_ = 0;    // of this drain
  std::uint64_t at_least_ = 0;  // bytes that they took
  bool in_drain_ = false;
  bool over_ = false;  // nothing may follow in this drain
  bool impossible_ = false;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_DRAIN_WATCH_H_
