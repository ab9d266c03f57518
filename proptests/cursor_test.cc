// A Cursor, while the kernel writes: however a ring is split into looks and releases, the events
// are those that the reference consumer finds, and each record is what it was until it is released.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <ostream>
#include <vector>

#include "harness/faults/loop_faults.h"
#include "harness/rig/checked_memory.h"
#include "harness/rig/simulated_kernel.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/testing/reference.h"
#include "perfring/ring/testing/seen.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {

// Write: a payload of so many bytes. Next: so many records are taken. Release: so many of those
// that are held.
struct Move {
  enum class Kind { Write, Look, Next, Release } kind = Kind::Look;
  std::uint64_t number = 0;
};
std::ostream& operator<<(std::ostream& out, const Move& move) {
  constexpr const char* kNames[]{"write ", "look ", "next ", "release "};
  return out << kNames[static_cast<std::size_t>(move.kind)] << move.number;
}

namespace {

using rig::CheckedMemory;
using testing::Reference;
using testing::Seen;

rc::Gen<Move> moves() {
  const auto move = [](Move::Kind kind, const rc::Gen<std::uint64_t>& numbers) {
    return rc::gen::build<Move>(rc::gen::set(&Move::kind, rc::gen::just(kind)),
                                rc::gen::set(&Move::number, numbers));
  };
  const auto few = rc::gen::inRange<std::uint64_t>(1, 6);
  return rc::gen::weightedOneOf<Move>({{6, move(Move::Kind::Write, lengths())},
                                       {2, move(Move::Kind::Look, rc::gen::just<std::uint64_t>(0))},
                                       {3, move(Move::Kind::Next, few)},
                                       {3, move(Move::Kind::Release, few)}});
}

// A ring of the simulated kernel, a Cursor over it, and the events that it owes.
template <class C>
class Pulled {
 public:
  explicit Pulled(const Settings& settings)
      : kernel_{settings}, cursor_{*C::over(page(), data())}, next_{page().data_tail} {}

  void carry_out(const Move& move) {
    switch (move.kind) {
      case Move::Kind::Write:
        kernel_.run(output(move.number));
        break;
      case Move::Kind::Look:
        look();
        break;
      case Move::Kind::Next:
        for (std::uint64_t i = 0; i < move.number; ++i) take();
        break;
      case Move::Kind::Release:
        release(move.number);
    }
    RC_ASSERT(page().data_tail == released());
  }

  void finish() {
    look();
    while (!due_.empty()) take();
    take();
    release(held_.size());
    RC_ASSERT(static_cast<Position>(page().data_tail) == static_cast<Position>(page().data_head));
    RC_ASSERT(cursor_.look() == 0U);
  }

 private:
  struct Held {
    typename C::Record record;
    Reference::Event event;
  };

  perf_event_mmap_page& page() { return kernel_.ring().page(); }
  Bytes data() { return kernel_.ring().data(); }
  // Where the oldest record begins that is held, or the next one.
  std::uint64_t released() const { return held_.empty() ? next_ : begins_.front(); }

  void look() {
    const auto due = Reference{data(), next_, page().data_head}.drain();
    due_.assign(due.begin(), due.end());
    RC_ASSERT(cursor_.look() == static_cast<std::uint32_t>(page().data_head - page().data_tail));
  }

  void take() {
    const auto record = cursor_.next();
    RC_ASSERT(record.has_value() == !due_.empty());
    if (!record) return;
    RC_ASSERT(testing::copy(record->event()) == due_.front().seen);
    begins_.push_back(next_);
    next_ = due_.front().end;
    RC_ASSERT(record->size() == next_ - begins_.back());
    held_.push_back({*record, due_.front()});
    due_.pop_front();
  }

  void release(std::uint64_t count) {
    for (; count != 0 && !held_.empty(); --count) {
      const Held oldest = held_.front();
      RC_ASSERT(testing::copy(oldest.record.event()) == oldest.event.seen);
      held_.pop_front();
      begins_.pop_front();
      held_.empty() ? cursor_.release() : cursor_.release(oldest.record.end());
      RC_ASSERT(page().data_tail == oldest.event.end);
    }
  }

  rig::SimulatedKernel kernel_;
  C cursor_;
  std::uint64_t next_;                // of the next record that is taken
  std::deque<Reference::Event> due_;  // in this look
  std::deque<Held> held_;
  std::deque<std::uint64_t> begins_;  // of each record in held_
};

template <class C>
void hands_out_each_event_once() {
  Pulled<C> pulled{*settings()};
  for (const Move& move : *rc::gen::container<std::vector<Move>>(moves())) pulled.carry_out(move);
  pulled.finish();
}

TEST(CursorSplitTest, AnySplitIntoLooksAndReleasesGivesTheEventsOfADrain) {
  always(hands_out_each_event_once<Cursor<CheckedMemory>>);
}
TEST(CursorSplitTest, FindsACursorThatReleasesEarly) {
  EXPECT_TRUE(counterexample(hands_out_each_event_once<faults::ReleasesEarly<CheckedMemory>>));
}
TEST(CursorSplitTest, FindsACursorThatReleasesPastTheRecordsItHasHandedOut) {
  EXPECT_TRUE(counterexample(hands_out_each_event_once<faults::ReleasesPast<CheckedMemory>>));
}

}  // namespace
}  // namespace perfring::proptests
