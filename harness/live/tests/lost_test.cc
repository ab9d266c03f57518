// The full ring, and the count of a Lost (K12 to K15, S5).

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "harness/live/live_testing.h"
#include "perfring/control_flow.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"

namespace perfring::live {
namespace {

class LostTest : public LiveTest {
 protected:
  static constexpr std::size_t kPayload = 4;  // 16 bytes a record

  // Emits until the ring of one page is full, and then `refusals` times.
  void overfill(std::uint64_t refusals) {
    const auto room = static_cast<std::uint32_t>(capacity(os::page_size(), kPayload));
    const auto [written, refused, last_rc] =
        emitter().emit_many(cpu(), kPayload, room + static_cast<std::uint32_t>(refusals));
    ASSERT_EQ(written, room);
    ASSERT_EQ(refused, refusals);
    ASSERT_EQ(last_rc, refusals == 0 ? 0 : -ENOSPC);
  }

  // Drains no more than `count` records.
  static std::size_t take(PerfEventArrayBuffer& buffer, std::size_t count) {
    using Flow = ControlFlow<std::size_t, std::size_t>;
    const auto flow =
        buffer.try_fold(std::size_t{0}, [&](std::size_t taken, const PerfEvent&) -> Flow {
          if (++taken == count) return Break{taken};
          return Continue{taken};
        });
    return flow.is_break() ? flow.break_value() : flow.continue_value();
  }
};

// K12, K13. The figures of these facts apply to pages of 4096 bytes.
TEST_F(LostTest, APageHoldsRecordsUpToItsLast8Bytes) {
  struct {
    std::size_t payload;
    std::size_t records;  // in 4096 bytes
  } const counts[] = {{4, 255}, {12, 170}, {20, 127}, {52, 63}};
  for (const auto& [payload, records] : counts) {
    SCOPED_TRACE(payload);
    auto buffer = open(1);
    std::size_t written = 0;
    while (emit(payload) == 0) ++written;
    EXPECT_EQ(emit(payload), -ENOSPC);
    EXPECT_EQ(written, capacity(os::page_size(), payload));
    if (os::page_size() == 4096) {
      EXPECT_EQ(written, records);
    }
    EXPECT_EQ(drain(buffer).size(), written);
  }
}

// K12
TEST_F(LostTest, ARecordAsLargeAsTheRingNeverFits) {
  auto buffer = open(1);
  if (os::page_size() > 32768) GTEST_SKIP() << "no record is as large as a page here";
  EXPECT_EQ(emit(os::page_size() - 12), -ENOSPC);
  EXPECT_EQ(emit(os::page_size() - 8 - 12 - kLostSize), 0);
  EXPECT_EQ(drain(buffer).size(), 2u);
  EXPECT_EQ(emit(os::page_size() - 8 - 12), 0);
  EXPECT_EQ(drain(buffer).size(), 1u);
}

// K13, K14, K15
TEST_F(LostTest, ALostPrecedesTheNextRecordThatFitsOnce) {
  auto buffer = open(1);
  for (const std::uint64_t refusals : std::initializer_list<std::uint64_t>{1, 5, 1000}) {
    SCOPED_TRACE(refusals);
    ASSERT_NO_FATAL_FAILURE(overfill(refusals));
    for (const DeliveredEvent& copied : drain(buffer)) EXPECT_TRUE(copied.is_sample());
    EXPECT_FALSE(buffer.readable());  // draining alone produces nothing
    EXPECT_TRUE(drain(buffer).empty());

    fill_payload(100);
    ASSERT_EQ(emit(100), 0);
    ASSERT_EQ(emit(100), 0);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 3u);
    EXPECT_TRUE(delivered[0].is_lost(refusals)) << testing::PrintToString(delivered);
    EXPECT_TRUE(is_payload(delivered[1], 100));
    EXPECT_TRUE(is_payload(delivered[2], 100));
  }
}

// K15. With n records taken there is room for 16 * n + 15 bytes: n = 1 is too little for 24 + 16.
TEST_F(LostTest, ALostIsWrittenOnlyIfItFitsWithTheRecord) {
  auto buffer = open(1);
  ASSERT_NO_FATAL_FAILURE(overfill(3));
  ASSERT_EQ(take(buffer, 1), 1u);
  EXPECT_EQ(emit(kPayload), -ENOSPC);
  ASSERT_EQ(take(buffer, 1), 1u);
  EXPECT_EQ(emit(kPayload), 0);
  EXPECT_EQ(emit(kPayload), -ENOSPC);

  const auto delivered = drain(buffer);
  const std::size_t before = capacity(os::page_size(), kPayload) - 2;
  ASSERT_EQ(delivered.size(), before + 2);
  for (std::size_t i = 0; i < before; ++i) EXPECT_TRUE(delivered[i].is_sample());
  EXPECT_TRUE(delivered[before].is_lost(4)) << testing::PrintToString(delivered[before]);
  EXPECT_TRUE(delivered[before + 1].is_sample());

  ASSERT_EQ(emit(kPayload), 0);
  EXPECT_TRUE(drain(buffer).at(0).is_lost(1));
}

// A Lost that straddles the end of the ring, at both of its 8-byte boundaries.
TEST_F(LostTest, ALostAcrossTheEndOfTheRingIsDelivered) {
  auto buffer = open(1);
  for (std::size_t lap = 0; lap < os::page_size() / 8; ++lap) {
    ASSERT_NO_FATAL_FAILURE(overfill(lap + 1));
    ASSERT_EQ(drain(buffer).size(), capacity(os::page_size(), kPayload));
    ASSERT_EQ(emit(kPayload), 0);  // 40 more bytes, so that each lap starts elsewhere
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 2u);
    ASSERT_TRUE(delivered[0].is_lost(lap + 1)) << testing::PrintToString(delivered);
  }
}

// A Lost counts the records that are missing between its neighbors.
TEST_F(LostTest, ALostCountsTheGapInTheRecordNumbers) {
  auto buffer = open(1);
  std::uint64_t next = 0;  // the number of the next attempt
  std::uint64_t expected = 0;
  std::uint64_t lost = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint32_t count = round * 7 % 400 + 1;
    const std::size_t size = 12 + round % 60;
    lost += emitter().emit_many(cpu(), size, count, next).refused;
    next += count;
    for (const DeliveredEvent& copied : drain(buffer)) {
      if (copied.kind == DeliveredEvent::Kind::Lost) {
        expected += copied.count;
        lost -= copied.count;
      } else {
        ASSERT_TRUE(copied.is_sample());
        ASSERT_EQ(copied.number(), expected++);
      }
    }
    ASSERT_EQ(expected + lost, next);  // delivered, reported or still to be reported
  }
}

}  // namespace
}  // namespace perfring::live
