// A Cursor before its first look, its releases by bytes, and next to another consumer. Its rules:
// cursor_rules_test.cc. Its events, compared with Ring's: ring_hostile_test.cc,
// ring_exhaustive_test.cc and, for S10, ring_once_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
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
using testing::payload;
using testing::ring_over;
using testing::take;

constexpr std::size_t kCursorSize = 65536;

TEST(CursorTest, NothingIsUnreadBeforeTheFirstLook) {
  FakeRing fake{kCursorSize, 4096};
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
  EXPECT_FALSE(Cursor<>::over(page, Bytes{static_cast<std::byte*>(nullptr), 32}));
  EXPECT_TRUE(Cursor<>::over(page, Bytes{bytes, 32}));
  EXPECT_FALSE(Cursor<>::over(std::as_writable_bytes(std::span{bytes}), 64));
}

TEST(CursorTest, DataFollowsPageInMapping) {
  alignas(perf_event_mmap_page) static std::byte mapping[sizeof(perf_event_mmap_page) + 64];
  Cursor<> cursor = *Cursor<>::over(mapping, sizeof(perf_event_mmap_page));
  reinterpret_cast<perf_event_mmap_page*>(mapping)->data_head = 8;
  EXPECT_EQ(cursor.look(), 8U);
  EXPECT_EQ(cursor.bytes().first.data(), mapping + sizeof(perf_event_mmap_page));
}

TEST(CursorTest, ThePositionsAreAsTheyAreWithoutALook) {
  FakeRing fake{kCursorSize, 4096};
  const Cursor<> cursor = cursor_over(fake);
  fake.sample(payload(12));
  EXPECT_EQ(cursor.data_head(), 4120U);
  EXPECT_EQ(cursor.data_tail(), 4096U);
  EXPECT_EQ(cursor.unread(), 0U);
}

TEST(CursorReleaseBytesTest, ReleasesBytesEvenIfNotHandedOut) {
  FakeRing fake{kCursorSize, kCursorSize - 32};
  for (unsigned i = 0; i < 6; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_TRUE(cursor.next());
  cursor.release_bytes(48);
  EXPECT_EQ(fake.page().data_tail, kCursorSize - 32 + 48);
  EXPECT_EQ(cursor.unread(), 96U);
  EXPECT_EQ(cursor.bytes().first.data(), fake.data().data() + 16);
  EXPECT_EQ(copy(cursor.next()->event()), CopiedEvent::sample(payload(12, 2)));
  cursor.release_bytes(24 + 7);
  EXPECT_EQ(fake.page().data_tail, kCursorSize - 32 + 72) << "a position stays on the grid";
  EXPECT_EQ(copy(cursor.next()->event()), CopiedEvent::sample(payload(12, 3)));
  cursor.release_bytes(1'000'000);
  EXPECT_EQ(fake.page().data_tail, fake.head());
  EXPECT_FALSE(cursor.next());
}

TEST(CursorReleaseBytesTest, ReleasingFewerKeepsTheOthersHeld) {
  FakeRing fake{kCursorSize};
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

TEST(CursorReleaseBytesTest, ReleasingBadPositionsMovesTailToHead) {
  FakeRing fake{kCursorSize, 64};
  fake.advance(2 * kCursorSize + 8);
  Cursor<> cursor = cursor_over(fake);
  EXPECT_EQ(cursor.look(), kCursorSize);
  cursor.release_bytes(kCursorSize);
  EXPECT_EQ(fake.page().data_tail, fake.head());
}

TEST(CursorTwoConsumersTest, RecordsConsumedElsewhereStayConsumed) {
  FakeRing fake{kCursorSize};
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
  EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12, 9))));
}

TEST(CursorTwoConsumersTest, CopyResumesWhereOriginalStands) {
  FakeRing fake{kCursorSize};
  for (unsigned i = 0; i < 4; ++i) fake.sample(payload(12, i));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  ASSERT_TRUE(cursor.next());
  Cursor<> ahead = cursor;
  EXPECT_EQ(copy(ahead.next()->event()), CopiedEvent::sample(payload(12, 1)));
  EXPECT_EQ(copy(cursor.next()->event()), CopiedEvent::sample(payload(12, 1)));
  cursor.release();
  EXPECT_EQ(fake.page().data_tail, 48U);
  ahead.release();
  ahead.look();
  EXPECT_EQ(copy(ahead.next()->event()), CopiedEvent::sample(payload(12, 2)));
}

// S8 for a Cursor, where looks and releases make a difference. (Other hostile rings:
// ring_hostile_test.cc.)

using testing::CopiedEvent;
using testing::copy;
using testing::cursor_over;
using ::testing::ElementsAre;
using testing::events;
using testing::FakeRing;
using testing::payload;
using testing::take;

constexpr std::size_t kHostileCursorSize = 65536;

TEST(CursorS8Test, BadSizeConsumesRestOfLook) {
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
  EXPECT_EQ(copy(bad->event()), CopiedEvent::malformed(Defect::BadSize, fake.bytes(24, 72)));
  EXPECT_FALSE(cursor.next());
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12, 4))));
}

TEST(CursorS8Test, ZeroedRingIsReportedAsBadSize) {
  FakeRing fake{kHostileCursorSize};
  fake.advance(64);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  EXPECT_THAT(events(cursor),
              ElementsAre(CopiedEvent::malformed(Defect::BadSize, std::vector<std::byte>(64))));
}

// A head that is behind by less is S11's case, unless it is not a multiple of 8.
TEST(CursorS8Test, AHeadThatGoesBackMoreThanTheRingIsImpossible) {
  const std::uint64_t start = 4 * kHostileCursorSize;
  for (const std::uint64_t head :
       {start + 48 - kHostileCursorSize - 8, start - 2 * kHostileCursorSize, start + 44}) {
    FakeRing fake{kHostileCursorSize, start};
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

// The next record would begin at an odd multiple of 4, wherever data_head is by then.
TEST(CursorS8Test, RecordsResumeAfterMisalignedHeadIsReported) {
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
  EXPECT_EQ(copy(bad->event()), CopiedEvent::malformed(Defect::BadPositions, fake.bytes(28, 32)));
  cursor.release();
  EXPECT_EQ(fake.page().data_tail, 32U);
  fake.sample(payload(12, 1));
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12, 1))));
}

TEST(CursorS8Test, HeadMoreThanOneLapAheadIsImpossible) {
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

TEST(CursorS8Test, RecordsResumeAfterMisalignedTailIsReported) {
  FakeRing fake{kHostileCursorSize, 4};
  fake.advance(20);
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  EXPECT_THAT(events(cursor),
              ElementsAre(CopiedEvent::malformed(Defect::BadPositions, fake.bytes(4, 24))));
  fake.sample(payload(12));
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12))));
}

TEST(CursorS8Test, CorrectedHeadIsTrustedAtNextLook) {
  FakeRing fake{kHostileCursorSize};
  fake.sample(payload(12));
  Cursor<> cursor = cursor_over(fake);
  fake.page().data_head = 20;
  cursor.look();
  fake.page().data_head = 24;
  cursor.look();
  EXPECT_THAT(events(cursor), ElementsAre(CopiedEvent::sample(payload(12))));
}

TEST(CursorTest, ReleasedRecordDecodesCurrentBytes) {
  FakeRing fake{kCursorSize};
  fake.sample(payload(12, 1));
  Cursor<> cursor = cursor_over(fake);
  cursor.look();
  const auto record = cursor.next();
  ASSERT_TRUE(record);
  cursor.release();
  // Overwrite the record as no kernel would: a raw size beyond the record.
  const std::uint32_t raw = ~std::uint32_t{0};
  fake.put(sizeof(perf_event_header), &raw, sizeof raw);
  const PerfEvent event = record->event();
  const auto* const malformed = std::get_if<Malformed>(&event);
  ASSERT_NE(malformed, nullptr);
  EXPECT_EQ(malformed->defect, Defect::BadSample);
  EXPECT_EQ(malformed->head.data(), record->head().data());
  EXPECT_EQ(malformed->size(), record->size());
}

}  // namespace
}  // namespace perfring
