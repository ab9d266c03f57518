#ifndef HARNESS_ORACLE_DRAIN_WATCH_H_
#define HARNESS_ORACLE_DRAIN_WATCH_H_

// Checks a drain of any bytes at any positions, hostile ones included: bounded, in_ring,
// tail_honest, and which Malformed events are allowed. Of the shared memory it reads only
// data_tail, which only the consumer writes.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "harness/oracle/invariant.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

// Returns the number of bytes that a drain may take: from data_tail to data_head, modulo 2^32.
// Returns 0 if data_head is behind data_tail by at most the ring's size and both are multiples of
// 8: a kernel before 5.2 may show this for a moment (K59).
inline std::uint32_t unread(std::size_t ring_size, std::uint64_t tail, std::uint64_t head) {
  const auto forward = static_cast<std::uint32_t>(head - tail);
  const auto backward = static_cast<std::uint32_t>(tail - head);
  const bool went_back =
      backward <= ring_size && backward < forward && tail % 8 == 0 && head % 8 == 0;
  return went_back ? 0 : forward;
}

// The bytes that a consumer may read: data_tail itself, and the `available` bytes of the ring from
// `tail` on (none of them if `available` exceeds the ring's size). For tests in which one thread
// plays all parts.
struct Readable {
  const perf_event_mmap_page* page;
  Bytes data;
  std::uint64_t tail = 0;
  std::uint64_t available = 0;

  // Makes the bytes that are unread now readable.
  void begin_drain() {
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

  void begin_drain();
  // Call it first in the drain's callback.
  void check_event(const PerfEvent& event);
  // Call it when the drain has ended, also by an exception. `available`: the data_head that the
  // drain read minus data_tail, modulo 2^32, if the caller has it.
  void end_drain(std::optional<std::uint32_t> available = {});

  // For a memory policy that observes each access.
  void check_read(const std::byte* address, std::size_t size) {
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(data_.data());
    const bool inside = offset <= data_.size() && size <= data_.size() - offset;
    if (!inside && size != 0) outside(address, size);
  }

  // Bytes of the ring that the last drain released.
  std::uint64_t moved() const { return moved_; }
  std::uint64_t tail() const { return tail_; }
  bool in_drain() const { return in_drain_; }
  std::uint64_t data_tail() const;

  using FirstViolation::violation;

 private:
  // Returns the least number of bytes of the ring that the event can have taken.
  std::uint64_t size_of(const PerfEvent& event);
  void in_ring(Bytes head, Bytes tail);
  void outside(const std::byte* address, std::size_t size);
  void malformed(const Malformed& malformed);

  const perf_event_mmap_page& page_;
  const Bytes data_;
  std::uint64_t tail_;
  std::uint64_t moved_ = 0;
  std::uint64_t events_ = 0;    // in this drain
  std::uint64_t at_least_ = 0;  // least number of bytes that these events took
  bool in_drain_ = false;
  bool over_ = false;  // no event may follow in this drain
  bool impossible_ = false;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_DRAIN_WATCH_H_
