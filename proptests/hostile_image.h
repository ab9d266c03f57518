#ifndef PROPTESTS_HOSTILE_IMAGE_H_
#define PROPTESTS_HOSTILE_IMAGE_H_

// Generates rings that a kernel might never write: mostly sound records, some with false sizes, at
// arbitrary positions.

#include <linux/perf_event.h>
#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "perfring/testing/fake_ring.h"

namespace perfring::proptests {

// A header and the u32 after it, `times` times in a row.
struct HostileRecord {
  std::uint32_t type = 9;
  std::uint16_t size = 16;    // header.size
  std::uint32_t raw = 4;      // raw size
  std::uint32_t length = 16;  // distance to the next record
  unsigned times = 1;
};

struct HostileImage {
  std::size_t size = 4096;
  std::uint64_t tail = 0;
  std::uint64_t distance = 0;  // from tail to head
  std::uint64_t high = 0;      // added to head above its lowest 32 bits, which alone count (S9)
  std::uint32_t noise = 0;     // seed of the bytes between the records; 0: zeros
  std::vector<HostileRecord> records;

  std::uint64_t head() const { return tail + distance + (high << 32); }
  void write_to(perf_event_mmap_page& page, std::span<std::byte> data) const;
};

std::ostream& operator<<(std::ostream& out, const HostileRecord& record);
std::ostream& operator<<(std::ostream& out, const HostileImage& ring);

// `sizes` generates the rings' sizes in bytes: powers of two, at least 8.
rc::Gen<HostileImage> hostile_images(const rc::Gen<std::size_t>& sizes);

}  // namespace perfring::proptests

#endif  // PROPTESTS_HOSTILE_IMAGE_H_
