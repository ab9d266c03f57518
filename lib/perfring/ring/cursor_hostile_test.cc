// S8 of a Cursor, where looks and releases make a difference. (Other hostile rings:
// ring_hostile_test.cc.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "perfring/ring/cursor.h"
#include "perfring/ring/testing/cursor_over.h"
#include "perfring/ring/testing/fake_ring.h"
#include "perfring/ring/testing/seen.h"

namespace perfring {
namespace {

using testing::copy;
using testing::cursor_over;
using ::testing::ElementsAre;
using testing::events;
using testing::FakeRing;
using testing::payload;
using testing::Seen;
using testing::take;

constexpr std::size_t kHostileCursorSize = 65536;

TEST(CursorS8Test, ASizeThatIsNotBelievableTakesAllThatIsLeftOfTheLook) {
  FakeRing fake{kHostileCursorSize};
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
  FakeRing fake{kHostileCursorSize};
  fake.advance(64);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  EXPECT_THAT(events(cursor),
              ElementsAre(Seen::malformed(Defect::BadSize, std::vector<std::byte>(64))));
}

TEST(CursorS8Test, AHeadThatGoesBackBehindRecordsHandedOutIsImpossible) {
  for (const std::uint64_t head : {4096U, 4104U, 4120U, 4136U, 4088U}) {
    FakeRing fake{kHostileCursorSize, 4096};
    for (unsigned i = 0; i < 2; ++i) fake.sample(payload(12, i));
    Cursor<> cursor = cursor_over(fake);
    cursor.look();
    ASSERT_EQ(take(cursor).size(), 2U);
    fake.page().data_head = head;
    EXPECT_EQ(cursor.look(), kHostileCursorSize) << head;
    const auto bad = cursor.next();
    ASSERT_TRUE(bad);
    EXPECT_EQ(copy(bad->event()).defect, Defect::BadPositions);
    EXPECT_EQ(bad->header().size, 0);
    EXPECT_EQ(bad->size(), kHostileCursorSize);
    EXPECT_FALSE(cursor.next());
    cursor.release();
    EXPECT_EQ(static_cast<Position>(fake.page().data_tail), head);
    EXPECT_EQ(cursor.look(), 0U);
  }
}

// The next record would begin 4 bytes off the grid, wherever data_head is by then.
TEST(CursorS8Test, BehindAHeadOffTheGridNoRecordIsReadUntilAllIsHandedOut) {
  FakeRing fake{kHostileCursorSize};
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
  FakeRing fake{kHostileCursorSize};
  fake.sample(payload(36));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_EQ(take(cursor).size(), 1U);
  fake.advance(kHostileCursorSize);  // more than there was room for
  EXPECT_EQ(cursor.look(), kHostileCursorSize);
  const auto bad = cursor.next();
  ASSERT_TRUE(bad);
  EXPECT_EQ(copy(bad->event()).defect, Defect::BadPositions);
  EXPECT_EQ(bad->size(), kHostileCursorSize);
}

TEST(CursorS8Test, ATailOffTheGridIsImpossibleUntilItsBytesAreHandedOut) {
  FakeRing fake{kHostileCursorSize, 4};
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
  FakeRing fake{kHostileCursorSize};
  fake.sample(payload(12));
  Cursor<> cursor = cursor_over(fake);
  fake.page().data_head = 20;
  cursor.look();
  fake.page().data_head = 24;
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(Seen::sample(payload(12))));
}

}  // namespace
}  // namespace perfring
