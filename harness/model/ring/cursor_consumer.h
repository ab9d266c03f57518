#ifndef HARNESS_MODEL_RING_CURSOR_CONSUMER_H_
#define HARNESS_MODEL_RING_CURSOR_CONSUMER_H_

// A consumer for ring_program.h in Ring's place: lib's Cursor. Each of its drains looks twice, and
// holds a record across the second look: what it gives back is checked once more.

#include <cstdint>
#include <optional>

#include "harness/model/ring/model_memory.h"
#include "harness/model/ring/ring_consumer.h"
#include "perfring/ring/cursor.h"

namespace perfring::model {

template <class C = Cursor<ModelMemory>>
class Puller {
 public:
  static std::optional<Puller> over(perf_event_mmap_page& page, Bytes data) {
    return Puller{*C::over(page, data)};
  }

  bool readable() const { return cursor_.data_head() != static_cast<Position>(own_tail()); }

  void pull(Tally& tally, const RingOptions& options) {
    std::optional<Held> held;
    for (int look = 0; look < 2; ++look) {
      cursor_.look();
      while (const auto record = cursor_.next()) {
        if (held) give_back(*held, tally, options);
        held = Held{*record, tally};
        take_either(tally, record->event(), options);
      }
    }
    if (held) give_back(*held, tally, options);
  }

 private:
  using Record = typename C::Record;

  struct Held {
    Record record;
    Tally before;  // it was taken
  };

  explicit Puller(const C& cursor) : cursor_{cursor} {}

  // It is what it was, and data_tail moves to where it ends.
  void give_back(const Held& held, Tally& tally, const RingOptions& options) {
    Tally again = held.before;
    again.drain_tail = tally.drain_tail;
    take_either(again, held.record.event(), options);
    cursor_.release(held.record.end());
    tally.drain_tail = options.oversize ? own_tail() : again.tail;
    check(own_tail() == tally.drain_tail, "tail_honest: data_tail is not where the record ends");
  }

  C cursor_;
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_CURSOR_CONSUMER_H_
