#ifndef PERFRING_MERGE_PENDING_EVENT_H_
#define PERFRING_MERGE_PENDING_EVENT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Builds the event of a record that was read earlier (PendingRecord, in window.h). Internal to
// Merge.

#include <cstddef>
#include <cstdint>

#include "perfring/merge/window.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

inline std::uint32_t kind_of(Defect defect) noexcept {
  return PendingRecord::kMalformed + static_cast<std::uint32_t>(defect);
}
inline bool is_defect(const PendingRecord& pending, Defect defect) noexcept {
  return pending.kind() == kind_of(defect);
}

inline bool is_sample(const PendingRecord& pending) noexcept {
  return pending.kind() == PendingRecord::kSample || pending.kind() == PendingRecord::kSplit;
}

// Builds the event of any held record except a sample in one piece, which Lane builds itself, and a
// BadPositions, for which the place does not tell which bytes it has.
template <Memory M>
PerfEvent odd_event_of(const RingView& view, const PendingRecord& pending) {
  Walk<M> walk{view};
  if (pending.kind() == PendingRecord::kSplit) {
    constexpr std::size_t at_payload = Walk<M>::kPayloadAt;
    const auto at = walk.start(view, pending.index(), at_payload + pending.length());
    return Sample{walk.head_of(at, at_payload, pending.length()),
                  walk.tail_of(at, at_payload, pending.length())};
  }
  if (pending.kind() == PendingRecord::kLost) {
    const auto at = walk.start(view, pending.index(), kLostSizeMin);
    return Lost{M::template read<std::uint64_t>(walk.address(at, kLostCountAt))};
  }
  const auto defect = static_cast<Defect>(pending.kind() - PendingRecord::kMalformed);
  return walk.malformed(defect, walk.start(view, pending.index(), pending.length()),
                        pending.length());
}

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_PENDING_EVENT_H_
