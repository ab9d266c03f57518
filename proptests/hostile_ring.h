#ifndef PROPTESTS_HOSTILE_RING_H_
#define PROPTESTS_HOSTILE_RING_H_

// Rings that no kernel need have written: mostly sound records, and some that lie; positions that
// may be anything.

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "perfring/testing/fake_ring.h"

namespace perfring::proptests {

// A header and the u32 that follows it, `times` times in the ring.
struct HostileRecord {
  std::uint32_t type = 9;
  std::uint16_t size = 16;    // what header.size says
  std::uint32_t raw = 4;      // what the raw size says
  std::uint32_t length = 16;  // how far away the next one is
  unsigned times = 1;
};

struct HostileImage {
  std::size_t size = 4096;
  std::uint64_t tail = 0;
  std::uint64_t distance = 0;  // from tail to head
  std::uint64_t high = 0;      // added to head: bits above the lowest 32, which do not count (S9)
  std::uint32_t noise = 0;     // what the bytes between are made of
  std::vector<HostileRecord> records;

  std::uint64_t head() const { return tail + distance + (high << 32); }
  void write_to(perf_event_mmap_page& page, std::span<std::byte> data) const;
};

std::ostream& operator<<(std::ostream& out, const HostileRecord& record);
std::ostream& operator<<(std::ostream& out, const HostileImage& ring);

// `sizes` gives the rings' sizes in bytes: powers of two, from 8 on.
rc::Gen<HostileImage> hostile_images(const rc::Gen<std::size_t>& sizes);

}  // namespace perfring::proptests

#endif  // PROPTESTS_HOSTILE_RING_H_
