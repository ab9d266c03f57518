#ifndef PERFRING_RINGS_PENDING_EVENT_H_
#define PERFRING_RINGS_PENDING_EVENT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Builds the event of a record that was read earlier (Held, in window.h). Internal to Merge.

#include <cstddef>
#include <cstdint>

#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"
#include "perfring/rings/window.h"

namespace perfring::internal {

inline std::uint32_t kind_of(Defect defect) noexcept {
  return Held::kMalformed + static_cast<std::uint32_t>(defect);
}
inline bool is_defect(const Held& held, Defect defect) noexcept {
  return held.kind() == kind_of(defect);
}

inline bool is_sample(const Held& held) noexcept {
  return held.kind() == Held::kSample || held.kind() == Held::kSplit;
}

// Builds the event of any held record except a sample in one piece, which Lane builds itself, and a
// BadPositions, for which the place does not tell which bytes it has.
template <Memory M>
PerfEvent odd_event_of(const RingView& view, const Held& held) {
  Walk<M> walk{view};
  if (held.kind() == Held::kSplit) {
    constexpr std::size_t at_payload = Walk<M>::kPayloadAt;
    const auto at = walk.start(view, held.index(), at_payload + held.length());
    return Sample{walk.head_of(at, at_payload, held.length()),
                  walk.tail_of(at, at_payload, held.length())};
  }
  if (held.kind() == Held::kLost) {
    const auto at = walk.start(view, held.index(), kLostSizeMin);
    return Lost{M::template read<std::uint64_t>(walk.address(at, kLostCountAt))};
  }
  const auto defect = static_cast<Defect>(held.kind() - Held::kMalformed);
  return walk.malformed(defect, walk.start(view, held.index(), held.length()), held.length());
}

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_PENDING_EVENT_H_
