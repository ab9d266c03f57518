#ifndef FUZZ_HOSTILE_RING_H_
#define FUZZ_HOSTILE_RING_H_

// A ring that an adversary has written, partly while a drain runs. As bytes:
//
//   u8   shape; bits 0-2: log2 of the pages (modulo 5), 3-4: number P of pokes,
//        5-6: number S of drains that stop early, 7: the ring's bytes are repeated
//   u64  data_tail
//   u64  data_head - data_tail
//   S x  u8 number of the event at which the drain stops, less 1; from 0xe0 on, the number
//        plus 0xdf, and the drain ends by an exception
//   P x  u8 event in whose callback the poke happens (counted from 0 over all drains),
//        u16 which 8 bytes of the ring (0xffff: data_head), u64 the new value
//   u8   number of copies of the ring's bytes, less 1, if they are repeated
//   ...  the ring's bytes, from data_tail on; the rest of the ring is 0
//
// Numbers are little-endian, and so are the records, as far as they follow one another. On a
// big-endian machine the records are converted, so that an input is the same events everywhere.

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "fuzz/input.h"
#include "perfring/testing/fake_ring.h"

namespace perfring::fuzz {

struct Poke {
  std::uint8_t event = 0;
  std::uint16_t slot = 0;
  std::uint64_t value = 0;
};

// The place where a drain ends early.
struct Stop {
  std::uint64_t event = ~std::uint64_t{0};  // from 1 on
  bool throws = false;
};

struct HostileRing {
  static constexpr std::uint16_t kDataHead = 0xffff;

  explicit HostileRing(Input input) {
    const auto shape = input.take<std::uint8_t>();
    log2_pages = (shape & 7) % 5;
    tail = input.take<std::uint64_t>();
    head = tail + input.take<std::uint64_t>();
    stop_count = shape >> 5 & 3;
    for (std::size_t i = 0; i < stop_count; ++i) {
      const auto code = input.take<std::uint8_t>();
      stops[i] = code < 0xe0 ? Stop{code + 1U, false} : Stop{code - 0xdfU, true};
    }
    poke_count = shape >> 3 & 3;
    for (std::size_t i = 0; i < poke_count; ++i) {
      pokes[i].event = input.take<std::uint8_t>();
      pokes[i].slot = input.take<std::uint16_t>();
      pokes[i].value = input.take<std::uint64_t>();
    }
    if ((shape & 0x80) != 0) times = 1U + input.take<std::uint8_t>();
    bytes = input.rest();
  }

  unsigned log2_pages;
  std::uint64_t tail;
  std::uint64_t head;
  std::size_t stop_count;
  std::array<Stop, 3> stops{};
  std::size_t poke_count;
  std::array<Poke, 3> pokes{};
  std::size_t times = 1;
  std::span<const std::byte> bytes;
};

// Converts little-endian records to the other byte order: headers, raw sizes, and the ids and
// counts of LOSTs. Stops at an invalid size, as a drain does.
inline void turn_records(std::span<std::byte> bytes) {
  while (bytes.size() >= sizeof(perf_event_header)) {
    Input header{bytes};
    const auto type = header.take<std::uint32_t>();
    header.take<std::uint16_t>();
    const auto size = header.take<std::uint16_t>();
    const auto turn = [bytes](std::size_t at, std::size_t length) {
      if (at + length <= bytes.size()) std::ranges::reverse(bytes.subspan(at, length));
    };
    turn(offsetof(perf_event_header, type), sizeof(perf_event_header::type));
    turn(offsetof(perf_event_header, misc), sizeof(perf_event_header::misc));
    turn(offsetof(perf_event_header, size), sizeof(perf_event_header::size));
    if (type == PERF_RECORD_SAMPLE) turn(8, sizeof(__u32));
    if (type == PERF_RECORD_LOST) {
      turn(8, sizeof(__u64));   // id
      turn(16, sizeof(__u64));  // lost
    }
    if (size < sizeof(perf_event_header) || size % 8 != 0 || size > bytes.size()) return;
    bytes = bytes.subspan(size);
  }
}

// Memory for rings of one size, between inaccessible pages. It is kept from one input to the next,
// and only the bytes that were written are wiped.
class HostileMemory {
 public:
  static HostileMemory& of(unsigned log2_pages) {
    static std::array<std::unique_ptr<HostileMemory>, 5> all;
    auto& memory = all[log2_pages];
    if (memory == nullptr)
      memory = std::make_unique<HostileMemory>(std::size_t{4096} << log2_pages);
    return *memory;
  }
  explicit HostileMemory(std::size_t size) : memory_{size}, repeated_(size) {}

  perf_event_mmap_page& page() const { return memory_.page(); }
  std::span<std::byte> data() const { return memory_.data(); }

  void write(const HostileRing& ring) {
    page().data_tail = ring.tail;
    page().data_head = ring.head;
    from_ = static_cast<std::size_t>(ring.tail % data().size());
    written_ = std::min(ring.bytes.size() * ring.times, data().size());
    if (written_ == 0) return;
    std::size_t done = std::min(ring.bytes.size(), written_);
    std::memcpy(repeated_.data(), ring.bytes.data(), done);
    if constexpr (std::endian::native == std::endian::big) {
      turn_records(std::span{repeated_}.first(done));
    }
    for (; done < written_; done *= 2) {
      std::memcpy(&repeated_[done], repeated_.data(), std::min(done, written_ - done));
    }
    const std::size_t before_end = std::min(written_, data().size() - from_);
    std::memcpy(&data()[from_], repeated_.data(), before_end);
    std::memcpy(data().data(), repeated_.data() + before_end, written_ - before_end);
  }

  void poke(const Poke& poke) {
    if (poke.slot == HostileRing::kDataHead) {
      page().data_head = poke.value;
    } else {
      std::memcpy(slot(poke), &poke.value, sizeof(poke.value));
    }
  }

  // Undoes write() and the pokes.
  void wipe(const HostileRing& ring) {
    const std::size_t before_end = std::min(written_, data().size() - from_);
    std::memset(data().data() + from_, 0, before_end);
    std::memset(data().data(), 0, written_ - before_end);
    for (const Poke& each : ring.pokes) std::memset(slot(each), 0, sizeof(each.value));
  }

 private:
  std::byte* slot(const Poke& poke) const {
    return data().data() + std::size_t{poke.slot} * 8 % data().size();
  }
  testing::GuardedMemory memory_;
  std::vector<std::byte> repeated_;
  std::size_t from_ = 0;
  std::size_t written_ = 0;
};

}  // namespace perfring::fuzz

#endif  // FUZZ_HOSTILE_RING_H_
