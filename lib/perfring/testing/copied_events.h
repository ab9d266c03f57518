#ifndef PERFRING_TESTING_COPIED_EVENTS_H_
#define PERFRING_TESTING_COPIED_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"

namespace perfring::testing {

// A copy of a delivered event.
struct CopiedEvent {
  enum class Kind { Sample, Lost, Malformed } kind;
  std::vector<std::byte> bytes;  // of both slices
  std::size_t head_size = 0;     // of the first slice
  std::uint64_t count = 0;       // of a Lost
  Defect defect{};               // of a Malformed

  bool operator==(const CopiedEvent&) const = default;

  // The expected event: all bytes are in the first slice unless head_size is given.
  static CopiedEvent sample(std::vector<std::byte> raw) { return sample(raw, raw.size()); }
  static CopiedEvent sample(std::vector<std::byte> raw, std::size_t head_size) {
    return {Kind::Sample, std::move(raw), head_size};
  }
  static CopiedEvent lost(std::uint64_t count) { return {Kind::Lost, {}, 0, count}; }
  static CopiedEvent malformed(Defect defect, std::vector<std::byte> bytes) {
    return malformed(defect, bytes, bytes.size());
  }
  static CopiedEvent malformed(Defect defect, std::vector<std::byte> bytes, std::size_t head_size) {
    return {Kind::Malformed, std::move(bytes), head_size, 0, defect};
  }
};

inline CopiedEvent copy(const PerfEvent& event) {
  const auto joined = [](const auto& slices) {
    std::vector<std::byte> bytes(slices.size());
    slices.copy_to(bytes);
    return bytes;
  };
  if (const auto* sample = std::get_if<Sample>(&event)) {
    return CopiedEvent::sample(joined(*sample), sample->head.size());
  }
  if (const auto* lost = std::get_if<Lost>(&event)) return CopiedEvent::lost(lost->count);
  const auto& malformed = std::get<Malformed>(event);
  return CopiedEvent::malformed(malformed.defect, joined(malformed), malformed.head.size());
}

// Returns everything that one drain delivers. Cuts off a drain that does not end, so that it shows.
template <class AnyRing>
std::vector<CopiedEvent> drain(AnyRing&& ring, std::size_t most = 1'000'000) {
  std::vector<CopiedEvent> events;
  using Flow = ControlFlow<Unit, Unit>;
  static_cast<void>(ring.try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> Flow {
    events.push_back(copy(event));
    if (events.size() > most) return Break{};
    return Continue{};
  }));
  return events;
}

inline std::ostream& operator<<(std::ostream& out, const CopiedEvent& event) {
  if (event.kind == CopiedEvent::Kind::Lost) {
    out << "Lost " << event.count;
    return out;
  }
  out << (event.kind == CopiedEvent::Kind::Sample ? "Sample" : to_string(event.defect)) << " of "
      << event.bytes.size() << " bytes (" << event.head_size << " before the end):";
  for (std::size_t i = 0; i < event.bytes.size() && i < 16; ++i) {
    out << ' ' << static_cast<unsigned>(event.bytes[i]);
  }
  return out;
}

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_COPIED_EVENTS_H_
