#ifndef HARNESS_CONFORMANCE_VECTOR_H_
#define HARNESS_CONFORMANCE_VECTOR_H_

// A case as data, for consumers in any language: what the producer does to the ring before each of
// the consumer's turns, and the events that it must bring.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/cases.h"
#include "harness/conformance/producer.h"
#include "harness/kernel/ring_memory.h"

namespace perfring::conformance {

struct Write {
  std::uint64_t at = 0;  // in the data pages
  std::vector<std::byte> bytes;
};

// One CPU's turn and ring; with several CPUs each has its own.
struct Turn {
  std::size_t cpu = 0;
  std::uint64_t head = 0;
  std::vector<Write> writes;
  std::vector<Event> expected;
};

struct Vector {
  const Case* of = nullptr;
  std::vector<Turn> turns;

  // One more turn on each CPU, with nothing new.
  std::vector<Turn> once_more() const;
};

// The case, played on the simulated kernel with a consumer that releases everything at each turn.
Vector vector_of(const Case& one);

// All of them, as the file vectors/index.json has it.
std::string index_of(const std::vector<Vector>& vectors);

// Bytes as text: pairs of hexadecimal digits; a space, and after it XX*N, N times that byte.
std::string to_text(std::span<const std::byte> bytes);

// A ring in a file, as it is before a turn. One of several CPUs' is changed by its own turns alone.
class RingImage {
 public:
  explicit RingImage(const Vector& vector);
  void apply(const Turn& turn);

  int fd() const { return memory_.fd(); }
  perf_event_mmap_page& page() const {
    return *reinterpret_cast<perf_event_mmap_page*>(memory_.bytes().data());
  }
  std::span<std::byte> data() const { return memory_.bytes().subspan(4096); }

 private:
  kernel::RingMemory memory_;
};

// One for each CPU of the case, absent ones too.
std::vector<RingImage> images_of(const Vector& vector);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_VECTOR_H_
