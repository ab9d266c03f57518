#ifndef PERFRING_TESTING_COPIED_EVENTS_H_
#define PERFRING_TESTING_COPIED_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <variant>
#include <vector>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"

namespace perfring::testing {

// A copy of a delivered event.
struct Seen {
  enum class Kind { Sample, Lost, Malformed } kind;
  std::vector<std::byte> bytes;  // of both slices
  std::size_t head_size = 0;     // of the first slice
  std::uint64_t count = 0;       // of a Lost
  Defect defect{};               // of a Malformed

  bool operator==(const Seen&) const = default;

  // The expected event: all bytes are in the first slice unless head_size is given.
  static Seen sample(std::vector<std::byte> raw) { return sample(raw, raw.size()); }
  static Seen sample(std::vector<std::byte> raw, std::size_t head_size) {
    return {Kind::Sample, std::move(raw), head_size};
  }
  static Seen lost(std::uint64_t count) { return {Kind::Lost, {}, 0, count}; }
  static Seen malformed(Defect defect, std::vector<std::byte> bytes) {
    return malformed(defect, bytes, bytes.size());
  }
  static Seen malformed(Defect defect, std::vector<std::byte> bytes, std::size_t head_size) {
    return {Kind::Malformed, std::move(bytes), head_size, 0, defect};
  }
};

inline Seen copy(const PerfEvent& event) {
  const auto joined = [](const auto& slices) {
    std::vector<std::byte> bytes(slices.size());
    slices.copy_to(bytes);
    return bytes;
  };
  if (const auto* sample = std::get_if<Sample>(&event)) {
    return Seen::sample(joined(*sample), sample->head.size());
  }
  if (const auto* lost = std::get_if<Lost>(&event)) return Seen::lost(lost->count);
  const auto& malformed = std::get<Malformed>(event);
  return Seen::malformed(malformed.defect, joined(malformed), malformed.head.size());
}

// Returns everything that one drain delivers. Cuts off a drain that does not end, so that it shows.
template <class AnyRing>
std::vector<Seen> drain(AnyRing&& ring, std::size_t most = 1'000'000) {
  std::vector<Seen> seen;
  using Flow = ControlFlow<Unit, Unit>;
  static_cast<void>(ring.try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> Flow {
    seen.push_back(copy(event));
    if (seen.size() > most) return Break{};
    return Continue{};
  }));
  return seen;
}

inline std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  if (seen.kind == Seen::Kind::Lost) {
    out << "Lost " << seen.count;
    return out;
  }
  out << (seen.kind == Seen::Kind::Sample ? "Sample" : to_string(seen.defect)) << " of "
      << seen.bytes.size() << " bytes (" << seen.head_size << " before the end):";
  for (std::size_t i = 0; i < seen.bytes.size() && i < 16; ++i) {
    out << ' ' << static_cast<unsigned>(seen.bytes[i]);
  }
  return out;
}

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_COPIED_EVENTS_H_
