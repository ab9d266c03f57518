#ifndef HARNESS_MODEL_RING_RING_CONSUMER_H_
#define HARNESS_MODEL_RING_RING_CONSUMER_H_

// The consumer of ring_program.h: lib's Ring, and checks of every event that it delivers. The
// message of a check begins with the name of its invariant.

#include <linux/perf_event.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/model/engine/program.h"
#include "harness/model/ring/model_memory.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::model {

enum class Consume : std::uint8_t { ForEach, Fold, TryFold, Break, Throw };

struct RingOptions {
  bool atomic_words = true;  // form A; false: form B
  unsigned records = 6;
  unsigned drains = 3;
  std::size_t ring_bytes = 64;
  // Payload sizes, used in turn: each is 4 more than a multiple of 8, so that nothing is padded.
  std::vector<std::uint32_t> payloads = {4, 12};
  Consume consume = Consume::ForEach;
  kernel::Word word = kernel::Word::k64;
  std::uint64_t start = 0;  // the initial value of both positions
  // At this step of the second record's output, an interrupt outputs one more record. 0: no
  // interrupt.
  unsigned interrupted_at = 0;
  // The second record's payload is longer than its size says, and overwrites the ring (K10).
  bool oversize = false;
  // A kernel before 5.2: data_head goes back for a moment (K59).
  bool before_5_2 = false;
};

// The number of steps of an output at which an interrupt can arrive.
inline constexpr unsigned kStepsOfAnOutput = 22;
inline constexpr unsigned kStepsBefore52 = 21;

// Returns the options of a program in the catalogue: "ring/break", "ring/wrap_32".
RingOptions options_of(std::string_view program, RingOptions options);

// Adds an interrupt at this step, on a ring that has room for all records, and wraps.
inline RingOptions nested(RingOptions options, unsigned step) {
  options.ring_bytes = 128;
  options.start = 96;
  options.interrupted_at = step;
  return options;
}

// Does the same, for a kernel before 5.2.
inline RingOptions nested_before_5_2(RingOptions options, unsigned step) {
  options.before_5_2 = true;
  return nested(options, step);
}

// Each word of a payload identifies its record.
constexpr std::uint32_t word_of(std::uint32_t record) {
  return 0x100 + record;
}
inline constexpr std::uint32_t kNestedWord = 0x1ff;

// The events delivered so far.
struct Tally {
  std::uint32_t next = 0;    // the next record, if none is lost
  std::uint32_t nested = 0;  // deliveries of the interrupt's record
  std::uint32_t lost = 0;
  std::uint64_t tail = 0;        // the end of the events so far
  std::uint64_t drain_tail = 0;  // the end of the events before this drain
  std::size_t drain_events = 0;

  std::uint32_t delivered() const { return next - lost + nested; }
};

inline std::uint64_t own_tail() {
  return ModelRing::here->tail().load(std::memory_order_relaxed);
}

// Checks a sample's payload, word by word.
inline void take_sample(Tally& tally, const Sample& sample, const RingOptions& options) {
  bool first = true, nested = false;
  for (const Bytes piece : {sample.head, sample.tail}) {
    for (std::size_t i = 0; i < piece.size(); i += ModelRing::kWordBytes) {
      const auto word = ModelMemory::read<std::uint32_t>(piece.data() + i);
      if (std::exchange(first, false)) {
        nested = options.interrupted_at != 0 && word == kNestedWord;
        const bool is_a_record = word >= word_of(0) && word < word_of(options.records);
        check(nested || is_a_record, kNothingWritten);
        check(nested || word >= word_of(tally.next), kAgain);
      }
      check(word == (nested ? kNestedWord : word_of(tally.next)), kOtherWord);
    }
  }
  const std::size_t size = options.payloads[nested ? 0 : tally.next % options.payloads.size()];
  check(sample.size() == size, kOtherSize);
  nested ? ++tally.nested : ++tally.next;
  check(tally.nested <= 1, kNestedAgain);
  tally.tail += sizeof(perf_event_header) + sizeof(__u32) + size;
}

inline void take(Tally& tally, const PerfEvent& event, const RingOptions& options) {
  check(own_tail() == tally.drain_tail, kMovesBefore);
  check(++tally.drain_events <= options.ring_bytes / sizeof(std::uint64_t), kTooMany);
  if (const auto* const lost = std::get_if<Lost>(&event)) {
    tally.next += static_cast<std::uint32_t>(lost->count);
    tally.lost += static_cast<std::uint32_t>(lost->count);
    tally.tail += sizeof(perf_event_header) + 2 * sizeof(__u64);
    return;
  }
  const auto* const sample = std::get_if<Sample>(&event);
  check(sample != nullptr, kMalformed);
  if (sample != nullptr) take_sample(tally, *sample, options);
}

// A drain of an overwritten ring may deliver any events, but their bytes must be in the ring.
inline void take_anything(Tally& tally, const PerfEvent& event, const RingOptions& options) {
  check(++tally.drain_events <= options.ring_bytes / sizeof(std::uint64_t), kTooMany);
  const auto in_ring = [](Bytes bytes) {
    const std::byte* const data = ModelRing::here->begin();
    check(bytes.empty() || (bytes.data() >= data && bytes.size() <= ModelRing::here->size() &&
                            bytes.data() - data + static_cast<std::ptrdiff_t>(bytes.size()) <=
                                static_cast<std::ptrdiff_t>(ModelRing::here->size())),
          kSliceOutside);
  };
  if (const auto* const sample = std::get_if<Sample>(&event)) {
    in_ring(sample->head), in_ring(sample->tail);
  } else if (const auto* const malformed = std::get_if<Malformed>(&event)) {
    in_ring(malformed->head), in_ring(malformed->tail);
  }
}

inline void take_either(Tally& tally, const PerfEvent& event, const RingOptions& options) {
  options.oversize ? take_anything(tally, event, options) : take(tally, event, options);
}

template <class R, class Take>
void drain_by(R& ring, Tally& tally, Consume consume, Take take_event) {
  switch (consume) {
    case Consume::ForEach:
      return ring.for_each([&](const PerfEvent& event) { take_event(tally, event); });
    case Consume::Fold:
      tally = ring.fold(tally, [&](Tally so_far, const PerfEvent& event) {
        take_event(so_far, event);
        return so_far;
      });
      return;
    case Consume::TryFold:
    case Consume::Break: {
      const bool breaks = consume == Consume::Break;
      bool over = false;
      auto flow = ring.try_fold(
          tally, [&](Tally so_far, const PerfEvent& event) -> ControlFlow<Tally, Tally> {
            check(!over, kAfterTheLast);
            take_event(so_far, event);
            over = breaks;
            if (breaks) return Break{so_far};
            return Continue{so_far};
          });
      tally = flow.is_break() ? flow.break_value() : flow.continue_value();
      return;
    }
    case Consume::Throw:
      try {
        ring.for_each([&](const PerfEvent& event) {
          take_event(tally, event);
          throw tally.next;
        });
      } catch (std::uint32_t) {
      }
  }
}

template <class R>
void drain_once(R& ring, Tally& tally, const RingOptions& options) {
  tally.drain_events = 0;
  tally.drain_tail = tally.tail;
  if constexpr (requires { ring.pull(tally, options); }) {
    ring.pull(tally, options);
  } else {
    drain_by(ring, tally, options.consume, [&options](Tally& so_far, const PerfEvent& event) {
      take_either(so_far, event, options);
    });
  }
  const std::uint64_t tail = own_tail();
  if (options.oversize) tally.tail = tail;
  check(tail == tally.tail, kTailElsewhere);
  check(tail - tally.drain_tail <= options.ring_bytes, kSkipsALap);
}

// A consumer for ring_program.h that uses lib's Cursor in place of Ring. Each of its drains looks
// twice, and holds a record across the second look. It checks each record again when it releases
// it.

template <class C = Cursor<ModelMemory>>
class Puller {
 public:
  static std::optional<Puller> over(perf_event_mmap_page& page, Bytes data) {
    return Puller{*C::over(page, data)};
  }

  bool readable() const { return cursor_.data_head() != static_cast<Position>(own_tail()); }

  void pull(Tally& tally, const RingOptions& options) {
    std::optional<UnreleasedRecord> unreleased;
    for (int look = 0; look < 2; ++look) {
      cursor_.look();
      while (const auto record = cursor_.next()) {
        if (unreleased) check_and_release(*unreleased, tally, options);
        unreleased = UnreleasedRecord{*record, tally};
        take_either(tally, record->event(), options);
      }
    }
    if (unreleased) check_and_release(*unreleased, tally, options);
  }

 private:
  using Record = typename C::Record;

  struct UnreleasedRecord {
    Record record;
    Tally before;  // the tally before the record was taken
  };

  explicit Puller(const C& cursor) : cursor_{cursor} {}

  // Checks that the record is unchanged, and releases it: data_tail moves to its end.
  void check_and_release(const UnreleasedRecord& unreleased, Tally& tally,
                         const RingOptions& options) {
    Tally again = unreleased.before;
    again.drain_tail = tally.drain_tail;
    take_either(again, unreleased.record.event(), options);
    cursor_.release(unreleased.record.end());
    tally.drain_tail = options.oversize ? own_tail() : again.tail;
    check(own_tail() == tally.drain_tail, kTailNotReleased);
  }

  C cursor_;
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_RING_CONSUMER_H_
