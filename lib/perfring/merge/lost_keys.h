#ifndef PERFRING_MERGE_LOST_KEYS_H_
#define PERFRING_MERGE_LOST_KEYS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// LostKeys: determines the keys of one ring's LOSTs, which have no keys of their own (M6, in
// merge.h). Internal to Merge.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include <linux/perf_event.h>

#include "perfring/merge/look_clock.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring::internal {

// The offset of PERF_SAMPLE_TIME in a SAMPLE that has one.
inline constexpr std::size_t kTimeAt = sizeof(perf_event_header);

template <Memory M>
class LostKeys {
 public:
  // Starts afresh at `tail`.
  void reset(SharedPosition tail) noexcept {
    scanned_ = waited_to_ = tail;
    found_ = false;
  }

  // Returns the key of a LOST that ends at position `lost_end`, in a look that ends at `end`.
  // Returns nullopt if the LOST must wait for the sample after it.
  template <class RunState>
  std::optional<std::uint64_t> key_of(const RingView& view, SharedPosition lost_end,
                                      SharedPosition end, std::uint64_t key_before,
                                      const LookClock& look_clock, RunState& round) {
    if (scanned_ != lost_end && !is_ahead(scanned_, lost_end, end)) {
      scanned_ = lost_end;
      found_ = false;
    }
    if (!found_) scan(view, end, round);
    if (found_)
      return round.ordering_key(sample_key_, look_clock.published_by(scanned_, end), key_before);
    if (round.is_flush) return key_before;
    if (waited_to_ != lost_end && !is_ahead(waited_to_, lost_end, end)) {
      waited_to_ = end;
      waited_in_ = round.number;
      waited_bound_ = round.bound;
    }
    if (waited_in_ == round.number) return std::nullopt;
    return waited_bound_;
  }

 private:
  // Advances scanned_ to the next sample and takes its key. The records before the sample are read
  // and checked again when it is their turn.
  template <class RunState>
  void scan(const RingView& view, SharedPosition end, RunState& round) {
    while (scanned_ != end) {
      Walk<M> walk{view};
      const auto at = walk.start(view, scanned_, static_cast<std::size_t>(end - scanned_));
      const std::uint64_t header = Walk<M>::header_at(at);
      const std::size_t size = Walk<M>::size_of(header);
      if (!walk.has_valid_size(at, size)) {
        scanned_ = end;
        return;
      }
      const PerfEvent event = walk.interpret(at, Walk<M>::decode(header));
      if (const auto* const sample = std::get_if<Sample>(&event)) {
        sample_key_ = round.key_of(*sample, walk.address(at, kTimeAt));
        found_ = true;
        return;
      }
      scanned_ += size;
    }
  }

  // If found_, the position and the key of the next sample. Otherwise scanned_ is the position
  // before which there is no sample.
  SharedPosition scanned_;
  std::uint64_t sample_key_;
  bool found_;
  // The end of the look in which the LOSTs before it first waited, and the number and the bound of
  // that run.
  SharedPosition waited_to_;
  std::uint64_t waited_in_ = 0;
  std::uint64_t waited_bound_ = 0;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_LOST_KEYS_H_
