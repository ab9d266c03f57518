// S1 to S6, S9 and S11, as cursor.h restates them. (S8: cursor_test.cc, S10: ring_once_test.cc.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/cursor_splits.h"
#include "perfring/testing/fake_ring.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::copy;
using testing::cursor_over;
using testing::drain;
using ::testing::ElementsAre;
using testing::events;
using testing::FakeRing;
using ::testing::IsEmpty;
using testing::payload;
using testing::ring_over;
using testing::take;

constexpr std::size_t kSize = 65536;

// Records each access to a position, and each fence.
struct TracingMemory : DefaultMemory {
  static inline std::vector<std::string> trace;

  static Position read_once(const SharedPosition& field) {
    trace.push_back("read head");
    return DefaultMemory::read_once(field);
  }
  static void write_once(SharedPosition& field, SharedPosition value) {
    trace.push_back("write tail " + std::to_string(value));
    DefaultMemory::write_once(field, value);
  }
  static void fence_after_read_of(const SharedPosition& field) {
    trace.push_back("fence after read");
    DefaultMemory::fence_after_read_of(field);
  }
  static void fence_before_write_of(const SharedPosition& field) {
    trace.push_back("fence before write");
    DefaultMemory::fence_before_write_of(field);
  }
};

TEST(CursorS1Test, ARecordThatArrivesAfterALookWaitsForTheNext) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 3; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  EXPECT_EQ(cursor.look(), 72U);
  fake.sample(payload(12, 3));
  EXPECT_EQ(take(cursor).size(), 3U);
  EXPECT_EQ(cursor.unread(), 72U);
  EXPECT_EQ(cursor.look(), 96U);
  EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12, 3))));
}

TEST(CursorS1Test, TheNextLookContinuesAfterTheRecordsHandedOut) {
  FakeRing fake{kSize, kSize - 56};
  Cursor<> cursor = cursor_over(fake);
  for (unsigned i = 0; i < 6; ++i) {
    fake.sample(payload(12, i));
    cursor.look();
    ASSERT_EQ(cursor.unread(), 24 * (i + 1));
    const auto record = cursor.next();
    ASSERT_TRUE(record);
    CopiedEvent event = copy(record->event());
    EXPECT_EQ(event.bytes, payload(12, i));
    EXPECT_FALSE(cursor.next());
  }
  cursor.release();
  EXPECT_EQ(fake.page().data_tail, fake.head());
}

TEST(CursorS2Test, EachCallMakesOneFencedPositionAccess) {
  FakeRing fake{kSize, 48};
  for (unsigned i = 0; i < 4; ++i) fake.sample(payload(12, i));
  Cursor<TracingMemory> cursor = cursor_over<TracingMemory>(fake);
  TracingMemory::trace.clear();
  cursor.look();
  const auto records = take(cursor);
  ASSERT_EQ(records.size(), 4U);
  for (const auto& record : records) static_cast<void>(record.event());
  EXPECT_THAT(TracingMemory::trace, ElementsAre("read head", "fence after read"));
  cursor.release(records[1].end());
  cursor.release();
  EXPECT_THAT(TracingMemory::trace,
              ElementsAre("read head", "fence after read", "fence before write", "write tail 96",
                          "fence before write", "write tail 144"));
}

TEST(CursorS2Test, AReleaseThatGivesNoRoomBackWritesNothing) {
  FakeRing fake{kSize, 48};
  fake.sample(payload(12));
  fake.sample(payload(12));
  Cursor<TracingMemory> cursor = cursor_over<TracingMemory>(fake);
  cursor.look();
  const auto record = cursor.next();
  ASSERT_TRUE(record);
  cursor.release(record->end());
  TracingMemory::trace.clear();
  cursor.release();
  cursor.release(record->end());
  cursor.release(record->begin());
  cursor.release_bytes(0);
  cursor.release_bytes(7);
  EXPECT_THAT(TracingMemory::trace, IsEmpty());
}

// Records of every kind; the second sample straddles the ring's end.
class CursorS3Test : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kStart = kSize - 32;

  CursorS3Test() {
    fake_.sample(payload(12, 0)), end();
    fake_.sample(payload(12, 1)), end();
    fake_.lost(5), end();
    fake_.sample(payload(4), 8), end();
    fake_.raw_record(PERF_RECORD_COMM, 32, payload(24), 32), end();
    fake_.sample(payload(100, 2)), end();
    cursor_.look();
    records_ = take(cursor_);
  }

  // Checks that all records are handed out, each where it was written, so that a test that iterates
  // over them covers each.
  void SetUp() override {
    ASSERT_EQ(records_.size(), ends_.size());
    for (std::size_t i = 0; i < records_.size(); ++i) {
      ASSERT_EQ(static_cast<std::uint64_t>(records_[i].begin()), i == 0 ? kStart : ends_[i - 1]);
      ASSERT_EQ(static_cast<std::uint64_t>(records_[i].end()), ends_[i]);
    }
  }

  void end() { ends_.push_back(fake_.head()); }
  std::uint64_t tail() const { return fake_.page().data_tail; }

  FakeRing fake_{kSize, kStart};
  std::vector<std::uint64_t> ends_;  // of each record
  Cursor<> cursor_ = cursor_over(fake_);
  std::vector<Cursor<>::Record> records_;
};

TEST_F(CursorS3Test, TheTailNeverPassesARecordThatIsNotReleased) {
  EXPECT_EQ(tail(), kStart);
  std::uint64_t begin = kStart;
  for (const auto& record : records_) {
    const std::uint64_t end = begin + record.size();
    cursor_.release(record.begin());
    EXPECT_EQ(tail(), begin);
    cursor_.release(record.end());
    EXPECT_EQ(tail(), end);
    EXPECT_EQ(cursor_.unread(), fake_.head() - end);
    begin = end;
  }
  EXPECT_EQ(tail(), fake_.head());
}

TEST_F(CursorS3Test, ReleaseFreesRecordsThroughGivenOne) {
  for (std::size_t last = 0; last < records_.size(); ++last) {
    fake_.page().data_tail = kStart;
    Cursor<> cursor = cursor_over(fake_);
    cursor.look();
    const auto records = take(cursor);
    ASSERT_EQ(records.size(), records_.size());
    cursor.release(records[last].end());
    std::vector<CopiedEvent> rest;
    for (std::size_t i = last + 1; i < records.size(); ++i) {
      rest.push_back(copy(records[i].event()));
    }
    EXPECT_EQ(drain(ring_over(fake_)), rest);
  }
}

TEST_F(CursorS3Test, TheTailNeverGoesBack) {
  cursor_.release(records_[3].end());
  const std::uint64_t released = tail();
  for (const std::size_t older : {0U, 1U, 2U}) {
    cursor_.release(records_[older].begin());
    cursor_.release(records_[older].end());
    EXPECT_EQ(tail(), released);
  }
  cursor_.release(records_[4].end());
  EXPECT_EQ(tail(), released + records_[4].size());
}

TEST_F(CursorS3Test, APlaceThatWasNotHandedOutReleasesNothing) {
  Cursor<> lagging = cursor_over(fake_);
  lagging.look();
  ASSERT_TRUE(lagging.next());
  for (std::size_t i = 1; i < records_.size(); ++i) lagging.release(records_[i].end());
  EXPECT_EQ(tail(), kStart);
  lagging.release(records_[1].begin());
  EXPECT_EQ(tail(), kStart + 24);
}

// Another cursor's place may be anywhere.
TEST_F(CursorS3Test, APlaceInsideOfARecordIsTakenAsItIs) {
  const std::uint64_t inside = kStart + 4;
  cursor_.release(Cursor<>::Place{inside});
  EXPECT_EQ(tail(), inside);
  cursor_.release(Cursor<>::Place{kStart});
  cursor_.release(Cursor<>::Place{fake_.head() + 8});
  cursor_.release(Cursor<>::Place{~std::uint64_t{0}});
  EXPECT_EQ(tail(), inside) << "it does not go back, nor beyond what was handed out";
  const std::vector<CopiedEvent> events = drain(ring_over(fake_));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].defect, Defect::BadPositions);
  EXPECT_EQ(tail(), fake_.head());
}

TEST_F(CursorS3Test, ARecordThatWasNotHandedOutIsNotReleased) {
  Cursor<> cursor = cursor_over(fake_);
  cursor.look();
  for (const auto& record : records_) {
    cursor.release();
    EXPECT_EQ(tail(), static_cast<std::uint64_t>(record.begin()));
    ASSERT_TRUE(cursor.next());
  }
}

TEST(CursorS4Test, RecordPointsAtRingBytesIncludingHeader) {
  FakeRing fake{kSize, kSize - 32};
  fake.raw_record(PERF_RECORD_COMM, 24, payload(16), 24);
  fake.raw_record(PERF_RECORD_SAMPLE, 40, payload(32, 7), 40);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  const auto whole = cursor.next();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->header().type, PERF_RECORD_COMM);
  EXPECT_EQ(whole->header().misc, PERF_RECORD_MISC_KERNEL);
  EXPECT_EQ(whole->header().size, 24);
  EXPECT_EQ(whole->head().data(), fake.data().data() + kSize - 32);
  EXPECT_EQ(whole->head().size(), 24U);
  EXPECT_TRUE(whole->tail().empty());
  const auto straddling = cursor.next();
  ASSERT_TRUE(straddling);
  EXPECT_EQ(straddling->head().data(), fake.data().data() + kSize - 8);
  EXPECT_EQ(straddling->head().size(), 8U);
  EXPECT_EQ(straddling->tail().data(), fake.data().data());
  EXPECT_EQ(straddling->tail().size(), 32U);
  EXPECT_EQ(straddling->size(), 40U);
}

TEST(CursorS4Test, AnEventOutlivesItsRecord) {
  FakeRing fake{kSize, kSize - 32};
  fake.sample(payload(100));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  const PerfEvent event = cursor.next()->event();
  EXPECT_EQ(copy(event), CopiedEvent::sample(payload(100), 20));
}

TEST(CursorS5Test, ALostIsTheCountPastTheIdWhereverItLies) {
  for (std::uint64_t before = 0; before <= 48; before += 8) {
    FakeRing fake{kSize, kSize - before};
    fake.lost(0x0102'0304'0506'0708, 24, 77);
    fake.lost(9, 48);  // sample_id_all appends fields
    Cursor<> cursor = cursor_over(fake);
    cursor.look();
    EXPECT_THAT(events(cursor),
                ElementsAre(CopiedEvent::lost(0x0102'0304'0506'0708), CopiedEvent::lost(9)));
  }
}

TEST(CursorS6Test, UnreadIs0ExactlyIfThePositionsDoNotDiffer) {
  FakeRing fake{kSize, 4096};
  Cursor<> cursor = cursor_over(fake);
  EXPECT_EQ(cursor.look(), 0U);
  fake.advance(8);
  EXPECT_EQ(cursor.look(), 8U);
  fake.page().data_tail = 4104;
  EXPECT_EQ(cursor.look(), 0U);
  fake.page().data_tail = 4112;
  EXPECT_EQ(cursor.look(), 0U) << "S11";
}

TEST(CursorS9Test, PositionsGoOnAcross4GiBAnd2To64) {
  for (const std::uint64_t around :
       {std::uint64_t{1} << 31, std::uint64_t{1} << 32, std::uint64_t{5} << 32, std::uint64_t{0}}) {
    for (std::uint64_t before = 0; before <= 96; before += 8) {
      FakeRing fake{kSize, around - before};
      for (unsigned i = 0; i < 10; ++i) fake.sample(payload(4, i));
      Cursor<> cursor = cursor_over(fake);
      EXPECT_EQ(cursor.look(), 160U);
      const auto records = take(cursor);
      ASSERT_EQ(records.size(), 10U);
      for (std::size_t i = 0; i < records.size(); ++i) {
        cursor.release(records[i].end());
        ASSERT_EQ(fake.page().data_tail, around - before + 16 * (i + 1));
      }
      EXPECT_EQ(cursor.look(), 0U);
    }
  }
}

// A 32-bit kernel shows 32 bits of its head, while data_tail keeps all 64.
TEST(CursorS9Test, AHeadOf32BitsIsFollowedPast4GiB) {
  FakeRing fake{kSize, (std::uint64_t{1} << 32) - 32};
  Cursor<> cursor = cursor_over(fake);
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < 3; ++i) fake.sample(payload(4, 3 * round + i));
    fake.page().data_head = fake.head() & 0xffff'ffff;
    EXPECT_EQ(cursor.look(), round == 0 ? 48U : 64U);
    EXPECT_EQ(take(cursor).size(), 3U);
    cursor.release_bytes(cursor.unread() - 16);  // all but the last
    EXPECT_EQ(fake.page().data_tail, fake.head() - 16);
    EXPECT_FALSE(cursor.next());
  }
}

TEST(CursorS11Test, LookRecoversAfterHeadMovesBack) {
  for (const std::uint64_t start :
       {std::uint64_t{4096}, (std::uint64_t{1} << 32) - 40, std::uint64_t{0} - 40}) {
    for (const std::uint64_t distance : {8U, 24U, 48U, 56U, 65536U}) {
      FakeRing fake{kSize, start};
      for (unsigned i = 0; i < 2; ++i) fake.sample(payload(12, i));
      Cursor<> cursor = cursor_over(fake);
      cursor.look();
      ASSERT_EQ(take(cursor).size(), 2U);
      fake.page().data_head -= distance;
      EXPECT_EQ(cursor.look(), 48U) << "handed out: " << distance;
      EXPECT_THAT(events(cursor), IsEmpty()) << distance;
      EXPECT_EQ(fake.page().data_tail, start);
      cursor.release();
      EXPECT_EQ(fake.page().data_tail, start + 48);
      EXPECT_EQ(cursor.look(), 0U) << distance;
      EXPECT_THAT(cursor.bytes().first, IsEmpty());
      EXPECT_THAT(events(cursor), IsEmpty()) << distance;
      EXPECT_EQ(fake.page().data_tail, start + 48);
      fake.sample(payload(12, 2));
      EXPECT_EQ(cursor.look(), 24U);
      EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12, 2))));
    }
  }
}

}  // namespace
}  // namespace perfring
