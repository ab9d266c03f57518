#ifndef HARNESS_CONFORMANCE_CASES_VECTOR_H_
#define HARNESS_CONFORMANCE_CASES_VECTOR_H_

// A case as data, for consumers in any language: the producer's writes before each of the
// consumer's turns, and the events that the turn must deliver.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/kernel/ring_memory.h"

namespace perfring::conformance {

struct Write {
  std::uint64_t at = 0;  // offset in the data pages
  std::vector<std::byte> bytes;
};

// What the producer has written of a turn when the consumer comes past a place of the drain before
// it. Includes what earlier places have.
struct Early {
  During::Place place = During::Place::HeadRead;
  std::uint64_t head = 0;
  std::vector<Write> writes;
  std::size_t events = 0;  // the turn's first ones
};

// A turn on one CPU's ring. With several CPUs, each has its own turns and ring.
struct Turn {
  std::size_t cpu = 0;
  std::uint64_t head = 0;
  std::vector<Write> writes;
  std::vector<Event> expected;
  std::vector<Early> early{};
};

struct Vector {
  const Case* of = nullptr;
  std::vector<Turn> turns;

  // Returns one more turn for each CPU, with nothing new.
  std::vector<Turn> once_more() const;
};

// Plays the case on the simulated kernel, with a consumer that releases everything at each turn.
Vector vector_of(const Case& one);

// Returns the text of vectors/index.json.
std::string index_of(const std::vector<Vector>& vectors);

// Formats bytes as pairs of hexadecimal digits. After a space, XX*N is N times the byte XX.
std::string to_text(std::span<const std::byte> bytes);

// A ring in a file, before a turn. With several CPUs, only a CPU's own turns change its image.
class RingImage {
 public:
  explicit RingImage(const Vector& vector);
  // Writes a turn. Bytes that were overwritten when they were released have their values again.
  void apply(const Turn& turn);
  void apply(const Early& early);
  // Returns true if there is room for it.
  bool has_room_for(const Early& early) const;

  int fd() const { return memory_.fd(); }
  perf_event_mmap_page& page() const {
    return *reinterpret_cast<perf_event_mmap_page*>(memory_.bytes().data());
  }
  std::span<std::byte> data() const { return memory_.bytes().subspan(4096); }

 private:
  void write(const std::vector<Write>& writes, std::uint64_t head);

  kernel::RingMemory memory_;
  std::vector<std::byte> written_;  // the data as the producer wrote it
};

// Returns an image for each CPU of the case, including absent ones.
std::vector<RingImage> images_of(const Vector& vector);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_CASES_VECTOR_H_
