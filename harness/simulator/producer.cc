#include "harness/simulator/producer.h"

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>

namespace perfring::simulator {

void Intruder::run() {
  Random& random = site_.world().scheduler.random();
  while (!site_.world().writers_end()) {
    if (random.one_in(20)) {
      write_head();
    } else {
      write_header();
    }
    step();
  }
}

void Intruder::step() {
  if (site_.world().scheduler.step()) site_.producer().yield();
}

// Writes a sound record's header, often; else one with one thing wrong, or everything.
void Intruder::write_header() {
  Random& random = site_.world().scheduler.random();
  const auto slots = static_cast<std::uint32_t>(site_.data().size() / 8);
  const std::uint32_t slot = random.below(slots);
  perf_event_header header{};
  const std::uint32_t kind = random.below(8);
  header.type = kind < 5   ? std::uint32_t{PERF_RECORD_SAMPLE}
                : kind < 6 ? std::uint32_t{PERF_RECORD_LOST}
                : kind < 7 ? random.below(200)  // also the raw size of a record before it
                           : static_cast<std::uint32_t>(random.next() >> 32);
  header.misc = static_cast<std::uint16_t>(random.below(4));
  header.size =
      static_cast<std::uint16_t>(random.one_in(16) ? random.below(65536) : 8 * random.below(8));
  std::memcpy(site_.writable_data().data() + 8 * std::size_t{slot}, &header, sizeof(header));
}

void Intruder::write_head() {
  Random& random = site_.world().scheduler.random();
  const auto size = static_cast<std::uint32_t>(site_.data().size());
  const std::uint64_t tail = site_.page().data_tail;
  const std::uint32_t kind = random.below(16);
  std::uint64_t head = tail + 8 * std::uint64_t{random.below(size / 8 + 1)};
  if (kind == 0) head = tail + random.below(2 * size);  // off the grid, or too far
  if (kind == 1) head = random.next();
  if (kind == 2) head = tail - 8 * std::uint64_t{random.below(size / 8)};
  __atomic_store_n(&site_.page().data_head, head, __ATOMIC_RELAXED);
}

}  // namespace perfring::simulator
