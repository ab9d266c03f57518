// Rings of any bytes: every drain ends, stays in the ring, and agrees with the reference consumer.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/oracle/drain_watch.h"
#include "harness/rig/watched_cpu.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/reference_drain.h"
#include "perfring/testing/ring_over_cursor.h"
#include "proptests/hostile_image.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::CopiedEvent;
using testing::ReferenceDrain;
using Core = Ring<rig::CheckedMemory>;
using CursorCore = testing::RingOverCursor<Cursor<rig::CheckedMemory>>;

class Accesses final : public rig::MemoryObserver {
 public:
  Accesses(const perf_event_mmap_page& page, oracle::DrainWatch& watch)
      : page_{page}, watch_{watch} {}

  void on_commit(SharedPosition) override { ++commits_; }
  void on_read(const std::byte* address, std::size_t size) override {
    if (address != reinterpret_cast<const std::byte*>(&page_.data_tail)) {
      watch_.check_read(address, size);
    }
  }
  unsigned commits() const { return commits_; }

 private:
  const perf_event_mmap_page& page_;
  oracle::DrainWatch& watch_;
  unsigned commits_ = 0;
};

// The ring lies between inaccessible pages, and every byte of every slice is read.
template <class Consumer>
void stays_inside() {
  const HostileImage hostile = *hostile_images(one_of<std::size_t>({4096, 8192, 16384}));
  const testing::GuardedMemory memory{hostile.size};
  hostile.write_to(memory.page(), memory.data());
  oracle::DrainWatch watch{memory.page(), memory.data()};
  Accesses accesses{memory.page(), watch};
  const rig::ObserverScope observing{accesses};
  Consumer consumer = *Consumer::over(memory.page(), memory.data());
  const auto available = oracle::unread(hostile.size, hostile.tail, hostile.head());
  std::uint64_t bytes = 0;
  watch.begin_drain();
  const auto visit = [&](Unit, const PerfEvent& event) -> ControlFlow<> {
    watch.check_event(event);
    if (watch.violation()) return Break{};
    bytes += testing::copy(event).bytes.size();
    return Continue{};
  };
  static_cast<void>(consumer.try_fold(Unit{}, visit));
  watch.end_drain(available);
  if (watch.violation()) fail(*watch.violation());
  RC_ASSERT(bytes <= available);
  RC_ASSERT_INVARIANT(bounded, !consumer.readable());
  RC_ASSERT_INVARIANT(tail_honest, accesses.commits() == (available == 0 ? 0U : 1U));
}

TEST(HostileRingTest, DrainOfAnyBytesStaysInRing) {
  always(stays_inside<Core>, 1000);
}
TEST(HostileRingTest, CursorOverAnyBytesStaysInRing) {
  always(stays_inside<CursorCore>, 1000);
}
TEST(HostileRingTest, FindsAConsumerThatTrustsRecordSizes) {
  EXPECT_TRUE(counterexample([] { stays_inside<faults::TrustsRecordSizes<rig::CheckedMemory>>(); },
                             Invariant::bounded));
}
TEST(HostileRingTest, FindsAMemoryThatOverreads) {
  EXPECT_TRUE(counterexample([] { stays_inside<Ring<faults::Overreads<rig::CheckedMemory>>>(); },
                             Invariant::in_ring));
}

// The core delivers the same events as the reference and leaves data_tail in the same place, in
// drains that stop early as well as in complete ones.
template <class Consumer>
void agrees() {
  const HostileImage hostile =
      *hostile_images(one_of<std::size_t>({256, 8, 16, 64, 1024, 4096, 16384}));
  perf_event_mmap_page page{};
  std::vector<std::uint64_t> words(hostile.size / 8);
  const auto data = std::as_writable_bytes(std::span{words});
  hostile.write_to(page, data);
  Consumer consumer = *Consumer::over(page, data);
  const auto stops =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 200));
  for (std::size_t i = 0; i <= stops.size(); ++i) {
    const std::size_t stop = i < stops.size() ? stops[i] : hostile.size;  // at last, all events
    auto expected = ReferenceDrain{data, page.data_tail, page.data_head}.drain();
    RC_ASSERT(consumer.readable() == !expected.empty());
    if (expected.size() > stop) expected.resize(stop);
    const std::uint64_t tail = expected.empty() ? page.data_tail : expected.back().end;
    std::size_t events = 0;
    static_cast<void>(consumer.try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      RC_ASSERT_INVARIANT(no_invention, events < expected.size());
      RC_ASSERT_INVARIANT(intact, testing::copy(event) == expected[events].event);
      if (++events == stop) return Break{};
      return Continue{};
    }));
    RC_ASSERT_INVARIANT(no_loss, events == expected.size());
    RC_ASSERT_INVARIANT(tail_honest, page.data_tail == tail);
  }
}

TEST(ReferenceConsumerTest, TheCoreDeliversWhatTheReferenceDelivers) {
  always(agrees<Core>, 2000);
}
TEST(ReferenceConsumerTest, ACursorHandsOutWhatTheReferenceDelivers) {
  always(agrees<CursorCore>, 2000);
}
TEST(ReferenceConsumerTest, FindsAConsumerThatIgnoresTheTopSizeBit) {
  EXPECT_TRUE(counterexample(agrees<Ring<faults::IgnoresTopSizeBit<rig::CheckedMemory>>>,
                             Invariant::intact));
}
TEST(ReferenceConsumerTest, FindsAConsumerThatRedeliversAfterABreak) {
  EXPECT_TRUE(counterexample(agrees<faults::RedeliversAfterBreak<rig::CheckedMemory>>,
                             Invariant::tail_honest));
}

}  // namespace
}  // namespace perfring::proptests
