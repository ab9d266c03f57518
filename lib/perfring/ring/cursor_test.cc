// A Cursor's looks, places and releases, and the rules S1 to S9 as cursor.h restates them. Its
// events are tested beside Ring's: ring_hostile_test.cc, ring_exhaustive_test.cc,
// ring_reference_test.cc and, S10, ring_once_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"
#include "perfring/ring/testing/fake_ring.h"
#include "perfring/ring/testing/ring_over.h"
#include "perfring/ring/testing/seen.h"

namespace perfring {
namespace {

using testing::copy;
using testing::drain;
using ::testing::ElementsAre;
using testing::FakeRing;
using ::testing::IsEmpty;
using testing::payload;
using testing::ring_over;
using testing::Seen;

constexpr std::size_t kSize = 65536;

template <class M = DefaultMemory>
Cursor<M> cursor_over(const FakeRing& fake) {
  return *Cursor<M>::over(fake.page(), fake.data());
}

// All that next() hands out; nothing is released.
template <class M>
std::vector<typename Cursor<M>::Record> take(Cursor<M>& cursor) {
  std::vector<typename Cursor<M>::Record> records;
  while (const auto record = cursor.next()) records.push_back(*record);
  return records;
}

template <class M>
std::vector<Seen> events(Cursor<M>& cursor) {
  std::vector<Seen> seen;
  for (const auto& record : take(cursor)) seen.push_back(copy(record.event()));
  return seen;
}

// Writes down each access to a position, and each fence.
struct Tracing : DefaultMemory {
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

TEST(CursorTest, NothingIsUnreadBeforeTheFirstLook) {
  FakeRing fake{kSize, 4096};
  fake.sample(payload(12));
  Cursor<> cursor = cursor_over(fake);
  EXPECT_EQ(cursor.unread(), 0U);
  EXPECT_TRUE(cursor.bytes().first.empty());
  EXPECT_TRUE(cursor.bytes().second.empty());
  EXPECT_FALSE(cursor.next());
  cursor.release();
  cursor.release_bytes(24);
  EXPECT_EQ(fake.page().data_tail, 4096U);
}

TEST(CursorTest, MemoryThatIsNoRingIsRefused) {
  perf_event_mmap_page page{};
  alignas(8) static std::byte bytes[64];
  EXPECT_FALSE(Cursor<>::over(page, Bytes{bytes, 24}));
  EXPECT_FALSE(Cursor<>::over(page, Bytes{bytes + 4, 32}));
  EXPECT_TRUE(Cursor<>::over(page, Bytes{bytes, 32}));
  EXPECT_FALSE(Cursor<>::over(std::as_writable_bytes(std::span{bytes}), 64));
}

TEST(CursorTest, AMappingIsAPageAndTheDataBehindIt) {
  alignas(perf_event_mmap_page) static std::byte mapping[sizeof(perf_event_mmap_page) + 64];
  Cursor<> cursor = *Cursor<>::over(mapping, sizeof(perf_event_mmap_page));
  reinterpret_cast<perf_event_mmap_page*>(mapping)->data_head = 8;
  EXPECT_EQ(cursor.look(), 8U);
  EXPECT_EQ(cursor.bytes().first.data(), mapping + sizeof(perf_event_mmap_page));
}

TEST(CursorTest, ThePositionsAreAsTheyAreWithoutALook) {
  FakeRing fake{kSize, 4096};
  const Cursor<> cursor = cursor_over(fake);
  fake.sample(payload(12));
  EXPECT_EQ(cursor.data_head(), 4120U);
  EXPECT_EQ(cursor.data_tail(), 4096U);
  EXPECT_EQ(cursor.unread(), 0U);
}

TEST(CursorS1Test, ARecordThatArrivesAfterALookWaitsForTheNext) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 3; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  EXPECT_EQ(cursor.look(), 72U);
  fake.sample(payload(12, 3));
  EXPECT_EQ(take(cursor).size(), 3U);
  EXPECT_EQ(cursor.unread(), 72U);
  EXPECT_EQ(cursor.look(), 96U);
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12, 3))));
}

TEST(CursorS1Test, TheNextLookGoesOnBehindTheRecordsHandedOut) {
  FakeRing fake{kSize, kSize - 56};
  Cursor<> cursor = cursor_over(fake);
  for (unsigned i = 0; i < 6; ++i) {
    fake.sample(payload(12, i));
    cursor.look();
    ASSERT_EQ(cursor.unread(), 24 * (i + 1));
    const auto record = cursor.next();
    ASSERT_TRUE(record);
    Seen seen = copy(record->event());
    EXPECT_EQ(seen.bytes, payload(12, i));
    EXPECT_FALSE(cursor.next());
  }
  cursor.release();
  EXPECT_EQ(fake.page().data_tail, fake.head());
}

TEST(CursorS2Test, ALookReadsHeadOnceAndAReleaseWritesTailOnceWithTheirFences) {
  FakeRing fake{kSize, 48};
  for (unsigned i = 0; i < 4; ++i) fake.sample(payload(12, i));
  Cursor<Tracing> cursor = cursor_over<Tracing>(fake);
  Tracing::trace.clear();
  cursor.look();
  const auto records = take(cursor);
  ASSERT_EQ(records.size(), 4U);
  for (const auto& record : records) static_cast<void>(record.event());
  EXPECT_THAT(Tracing::trace, ElementsAre("read head", "fence after read"));
  cursor.release(records[1].end());
  cursor.release();
  EXPECT_THAT(Tracing::trace, ElementsAre("read head", "fence after read", "fence before write",
                                          "write tail 96", "fence before write", "write tail 144"));
}

TEST(CursorS2Test, AReleaseThatGivesNoRoomBackWritesNothing) {
  FakeRing fake{kSize, 48};
  fake.sample(payload(12));
  fake.sample(payload(12));
  Cursor<Tracing> cursor = cursor_over<Tracing>(fake);
  cursor.look();
  const auto record = cursor.next();
  ASSERT_TRUE(record);
  cursor.release(record->end());
  Tracing::trace.clear();
  cursor.release();
  cursor.release(record->end());
  cursor.release(record->begin());
  cursor.release_bytes(0);
  cursor.release_bytes(7);
  EXPECT_THAT(Tracing::trace, IsEmpty());
}

// Of every kind, the second sample straddling the ring's end.
class CursorS3Test : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kStart = kSize - 32;

  CursorS3Test() {
    fake_.sample(payload(12, 0));
    fake_.sample(payload(12, 1));
    fake_.lost(5);
    fake_.sample(payload(4), 8);
    fake_.raw_record(PERF_RECORD_COMM, 32, payload(24), 32);
    fake_.sample(payload(100, 2));
    cursor_.look();
    records_ = take(cursor_);
  }

  std::uint64_t tail() const { return fake_.page().data_tail; }

  FakeRing fake_{kSize, kStart};
  Cursor<> cursor_ = cursor_over(fake_);
  std::vector<Cursor<>::Record> records_;
};

TEST_F(CursorS3Test, TheTailNeverPassesARecordThatIsNotReleased) {
  ASSERT_EQ(records_.size(), 6U);
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

TEST_F(CursorS3Test, ARecordIsReleasedWithAllBeforeItAndNoneAfter) {
  for (std::size_t last = 0; last < records_.size(); ++last) {
    fake_.page().data_tail = kStart;
    Cursor<> cursor = cursor_over(fake_);
    cursor.look();
    const auto records = take(cursor);
    ASSERT_EQ(records.size(), records_.size());
    cursor.release(records[last].end());
    std::vector<Seen> rest;
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
  Cursor<> behind = cursor_over(fake_);
  behind.look();
  ASSERT_TRUE(behind.next());
  for (std::size_t i = 1; i < records_.size(); ++i) behind.release(records_[i].end());
  EXPECT_EQ(tail(), kStart);
  behind.release(records_[1].begin());
  EXPECT_EQ(tail(), kStart + 24);
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

TEST(CursorS4Test, ARecordIsItsBytesInTheRingItselfHeaderIncluded) {
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
  EXPECT_EQ(copy(event), Seen::sample(payload(100), 20));
}

TEST(CursorS5Test, ALostIsTheCountPastTheIdWhereverItLies) {
  for (std::uint64_t before = 0; before <= 48; before += 8) {
    FakeRing fake{kSize, kSize - before};
    fake.lost(0x0102'0304'0506'0708, 24, 77);
    fake.lost(9, 48);  // sample_id_all appends fields
    Cursor<> cursor = cursor_over(fake);
    cursor.look();
    EXPECT_THAT(events(cursor), ElementsAre(Seen::lost(0x0102'0304'0506'0708), Seen::lost(9)));
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
  EXPECT_EQ(cursor.look(), kSize);
}

TEST(CursorS8Test, ASizeThatIsNotBelievableTakesAllThatIsLeftOfTheLook) {
  FakeRing fake{kSize};
  fake.sample(payload(12));
  fake.raw_record(PERF_RECORD_SAMPLE, 12, payload(16), 24);
  fake.sample(payload(12));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  fake.sample(payload(12, 4));
  ASSERT_TRUE(cursor.next());
  const auto bad = cursor.next();
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->header().size, 12);
  EXPECT_EQ(bad->size(), 48U);
  EXPECT_EQ(copy(bad->event()), Seen::malformed(Defect::BadSize, fake.bytes(24, 72)));
  EXPECT_FALSE(cursor.next());
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12, 4))));
}

TEST(CursorS8Test, AZeroedRingIsABadSizeAndNotBadPositions) {
  FakeRing fake{kSize};
  fake.advance(64);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  EXPECT_THAT(events(cursor),
              ElementsAre(Seen::malformed(Defect::BadSize, std::vector<std::byte>(64))));
}

TEST(CursorS8Test, AHeadThatGoesBackBehindRecordsHandedOutIsImpossible) {
  for (const std::uint64_t head : {4096U, 4104U, 4120U, 4136U, 4088U}) {
    FakeRing fake{kSize, 4096};
    for (unsigned i = 0; i < 2; ++i) fake.sample(payload(12, i));
    Cursor<> cursor = cursor_over(fake);
    cursor.look();
    ASSERT_EQ(take(cursor).size(), 2U);
    fake.page().data_head = head;
    EXPECT_EQ(cursor.look(), kSize) << head;
    const auto bad = cursor.next();
    ASSERT_TRUE(bad);
    EXPECT_EQ(copy(bad->event()).defect, Defect::BadPositions);
    EXPECT_EQ(bad->header().size, 0);
    EXPECT_EQ(bad->size(), kSize);
    EXPECT_FALSE(cursor.next());
    cursor.release();
    EXPECT_EQ(static_cast<Position>(fake.page().data_tail), head);
    EXPECT_EQ(cursor.look(), 0U);
  }
}

// The next record would begin 4 bytes off the grid, wherever data_head is by then.
TEST(CursorS8Test, BehindAHeadOffTheGridNoRecordIsReadUntilAllIsHandedOut) {
  FakeRing fake{kSize};
  fake.sample(payload(12));
  fake.advance(4);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_EQ(take(cursor).size(), 1U);
  fake.advance(4);
  cursor.look();
  const auto bad = cursor.next();
  ASSERT_TRUE(bad);
  EXPECT_EQ(copy(bad->event()), Seen::malformed(Defect::BadPositions, fake.bytes(28, 32)));
  cursor.release();
  EXPECT_EQ(fake.page().data_tail, 32U);
  fake.sample(payload(12, 1));
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12, 1))));
}

TEST(CursorS8Test, AHeadMoreThanALapBeyondTheTailIsImpossibleHoweverMuchIsHeld) {
  FakeRing fake{kSize};
  fake.sample(payload(36));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_EQ(take(cursor).size(), 1U);
  fake.advance(kSize);  // more than there was room for
  EXPECT_EQ(cursor.look(), kSize);
  const auto bad = cursor.next();
  ASSERT_TRUE(bad);
  EXPECT_EQ(copy(bad->event()).defect, Defect::BadPositions);
  EXPECT_EQ(bad->size(), kSize);
}

TEST(CursorS8Test, ATailOffTheGridIsImpossibleUntilItsBytesAreHandedOut) {
  FakeRing fake{kSize, 4};
  fake.advance(20);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  EXPECT_THAT(events(cursor),
              ElementsAre(Seen::malformed(Defect::BadPositions, fake.bytes(4, 24))));
  fake.sample(payload(12));
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12))));
}

TEST(CursorS8Test, AHeadThatIsMendedBeforeAnythingIsHandedOutIsBelieved) {
  FakeRing fake{kSize};
  fake.sample(payload(12));
  Cursor<> cursor = cursor_over(fake);
  fake.page().data_head = 20;
  cursor.look();
  fake.page().data_head = 24;
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12))));
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

// A 32-bit kernel shows its head as 32 bits, while the tail that was committed keeps all 64.
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

TEST(CursorReleaseBytesTest, GivesBackThatManyOfBytesWhetherHandedOutOrNot) {
  FakeRing fake{kSize, kSize - 32};
  for (unsigned i = 0; i < 6; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_TRUE(cursor.next());
  cursor.release_bytes(48);
  EXPECT_EQ(fake.page().data_tail, kSize - 32 + 48);
  EXPECT_EQ(cursor.unread(), 96U);
  EXPECT_EQ(cursor.bytes().first.data(), fake.data().data() + 16);
  EXPECT_EQ(copy(cursor.next()->event()), Seen::sample(payload(12, 2)));
  cursor.release_bytes(24 + 7);
  EXPECT_EQ(fake.page().data_tail, kSize - 32 + 72) << "a position stays on the grid";
  EXPECT_EQ(copy(cursor.next()->event()), Seen::sample(payload(12, 3)));
  cursor.release_bytes(1'000'000);
  EXPECT_EQ(fake.page().data_tail, fake.head());
  EXPECT_FALSE(cursor.next());
}

TEST(CursorReleaseBytesTest, FewerThanWereHandedOutLeaveTheOthersHeld) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 3; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  const auto records = take(cursor);
  cursor.release_bytes(24);
  EXPECT_EQ(fake.page().data_tail, 24U);
  EXPECT_FALSE(cursor.next()) << "handed out already";
  cursor.release(records[1].end());
  EXPECT_EQ(fake.page().data_tail, 48U);
}

TEST(CursorReleaseBytesTest, OfImpossiblePositionsAllAreThoseUpToDataHead) {
  FakeRing fake{kSize, 64};
  fake.advance(2 * kSize + 8);
  Cursor<> cursor = cursor_over(fake);
  EXPECT_EQ(cursor.look(), kSize);
  cursor.release_bytes(kSize);
  EXPECT_EQ(fake.page().data_tail, fake.head());
}

TEST(CursorTwoConsumersTest, RecordsThatAnotherHasConsumedAreNeitherHandedOutNorReleasedAgain) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 4; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  const auto first = cursor.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(drain(ring_over(fake)).size(), 4U);
  cursor.release();
  cursor.release(first->end());
  cursor.release_bytes(24);
  EXPECT_EQ(fake.page().data_tail, 96U) << "the tail never goes back";
  fake.sample(payload(12, 9));
  EXPECT_EQ(cursor.look(), 24U);
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12, 9))));
}

TEST(CursorTwoConsumersTest, ACopyGoesOnWhereTheOriginalStandsAndFindsOutAtItsNextLook) {
  FakeRing fake{kSize};
  for (unsigned i = 0; i < 4; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_TRUE(cursor.next());
  Cursor<> ahead = cursor;
  EXPECT_EQ(copy(ahead.next()->event()), Seen::sample(payload(12, 1)));
  EXPECT_EQ(copy(cursor.next()->event()), Seen::sample(payload(12, 1)));
  cursor.release();
  EXPECT_EQ(fake.page().data_tail, 48U);
  ahead.release();
  ahead.look();
  EXPECT_EQ(copy(ahead.next()->event()), Seen::sample(payload(12, 2)));
}

}  // namespace
}  // namespace perfring
