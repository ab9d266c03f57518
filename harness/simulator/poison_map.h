#ifndef HARNESS_SIMULATOR_POISON_MAP_H_
#define HARNESS_SIMULATOR_POISON_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "harness/program/sanitizers.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {

// Under AddressSanitizer, the bytes of a ring that hold no live record, [data_tail, data_head)
// excepted, are poisoned: a read of one ends the program. Otherwise, and where it is off, nothing.
class PoisonMap {
 public:
  PoisonMap(Bytes data, bool on) : data_{data}, on_{on && kPoisons} { released(0, data.size()); }
  ~PoisonMap() { reserved(0, data_.size()); }
  PoisonMap(const PoisonMap&) = delete;
  PoisonMap& operator=(const PoisonMap&) = delete;

  // `size` bytes from `position` on are about to be written.
  void reserved(std::uint64_t position, std::uint64_t size) const {
    if (on_) each_piece(position, size, unpoison);
  }
  // No slice of these is valid any more.
  void released(std::uint64_t position, std::uint64_t size) const {
    if (on_) each_piece(position, size, poison);
  }

 private:
  // Calls `act` for the piece before the ring's end, and for the one that goes on at its beginning.
  template <class Act>
  void each_piece(std::uint64_t position, std::uint64_t size, Act act) const {
    const auto from = static_cast<std::size_t>(position % data_.size());
    const auto all = static_cast<std::size_t>(std::min<std::uint64_t>(size, data_.size()));
    const std::size_t before_end = std::min(all, data_.size() - from);
    act(data_.data() + from, before_end);
    act(data_.data(), all - before_end);
  }

  const Bytes data_;
  const bool on_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_POISON_MAP_H_
