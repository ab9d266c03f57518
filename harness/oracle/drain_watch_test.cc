// The rules for a drain of any bytes: each broken rule is reported by name.

#include "harness/oracle/drain_watch.h"

#include <gtest/gtest.h>

#include <memory>

#include "harness/oracle/hand_ring.h"

namespace perfring::oracle {
namespace {

class DrainWatchTest : public ::testing::Test {
 protected:
  template <class... Event>
  void drain(std::uint64_t moved, std::uint32_t available, const Event&... events) {
    watch_.begin_drain();
    (watch_.check_event(PerfEvent{events}), ...);
    ring_.page.data_tail += moved;
    watch_.end_drain(available);
  }
  Malformed malformed(Defect defect, std::size_t size, std::uint64_t at = 0) {
    const Sample bytes = ring_.slices(at, size);
    return {defect, bytes.head, bytes.tail};
  }
  void expect(Invariant invariant) {
    ASSERT_TRUE(watch_.violation().has_value());
    EXPECT_STREQ(to_string(watch_.violation()->invariant), to_string(invariant))
        << watch_.violation()->message;
  }

  HandRing ring_;
  DrainWatch watch_{ring_.page, ring_.data};
};

TEST_F(DrainWatchTest, LegalDrainOfHostileBytesHasNoViolation) {
  drain(40, 4096, ring_.slices(12, 4), Lost{7});
  drain(24, 40, malformed(Defect::BadSample, 16), malformed(Defect::UnexpectedType, 8));
  drain(4096, 4096, malformed(Defect::BadSize, 4096, 64));
  drain(8, 8, malformed(Defect::BadSize, 8));
  drain(0xfffffffd, 0xfffffffd, malformed(Defect::BadPositions, 4096, 128));
  EXPECT_EQ(watch_.moved(), 0xfffffffdU);
  drain(0, 0);
  EXPECT_FALSE(watch_.violation().has_value()) << watch_.violation()->message;
}

TEST_F(DrainWatchTest, MoreEventsThanRingSizeOver8ViolateBounded) {
  watch_.begin_drain();
  for (std::size_t i = 0; i < HandRing::kSize / 8; ++i) {
    watch_.check_event(malformed(Defect::UnexpectedType, 8));
  }
  EXPECT_FALSE(watch_.violation().has_value());
  watch_.check_event(malformed(Defect::UnexpectedType, 8));
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, AnEventAfterABadSizeViolatesBounded) {
  drain(32, 4096, malformed(Defect::BadSize, 8), Lost{1});
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, AnEventBeforeBadPositionsViolatesBounded) {
  drain(100, 100, Lost{1}, malformed(Defect::BadPositions, 76));
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, AnEventAfterBadPositionsViolatesBounded) {
  drain(100, 100, malformed(Defect::BadPositions, 76), Lost{1});
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, AMalformedOfNoBytesViolatesBounded) {
  drain(8, 4096, malformed(Defect::BadSize, 0));
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, AnUnalignedMalformedViolatesBounded) {
  drain(12, 4096, malformed(Defect::BadLost, 12));
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, SlicesLieInTheRing) {
  const Bytes before{ring_.data.data() - 8, 16};
  drain(32, 4096, Sample{before, {}});
  expect(Invariant::in_ring);
}

TEST_F(DrainWatchTest, SlicesAreOnePieceOfTheRing) {
  drain(48, 4096, Sample{Bytes{ring_.data}.subspan(100, 12), Bytes{ring_.data}.first(8)});
  expect(Invariant::in_ring);
}

TEST_F(DrainWatchTest, TheSecondSliceBeginsAtTheRingsStart) {
  drain(32, 4096, Sample{Bytes{ring_.data}.last(12), Bytes{ring_.data}.subspan(8, 8)});
  expect(Invariant::in_ring);
}

TEST_F(DrainWatchTest, SlicesDoNotOverlap) {
  drain(4096, 4096, Sample{Bytes{ring_.data}.subspan(100), Bytes{ring_.data}.first(200)});
  expect(Invariant::in_ring);
}

TEST_F(DrainWatchTest, AnEventBeforeAnyDrainViolatesOnce) {
  watch_.check_event(Lost{1});
  expect(Invariant::once);
}

TEST_F(DrainWatchTest, AnEventAfterADrainViolatesOnce) {
  drain(0, 0);
  watch_.check_event(Lost{1});
  expect(Invariant::once);
}

TEST_F(DrainWatchTest, TheFirstViolationStays) {
  drain(28, 4096, malformed(Defect::BadSize, 8), Lost{1});
  expect(Invariant::bounded);
}

TEST_F(DrainWatchTest, TheTailMovesByWhatWasDeliveredAtTheLeast) {
  drain(16, 4096, Lost{1});
  expect(Invariant::tail_honest);
}

// data_tail must not move in a drain, not even by the events already delivered.
TEST_F(DrainWatchTest, TailMovingBetweenEventsViolatesTailHonest) {
  watch_.begin_drain();
  watch_.check_event(Lost{1});
  EXPECT_FALSE(watch_.violation().has_value());
  ring_.page.data_tail += 24;
  watch_.check_event(Lost{1});
  expect(Invariant::tail_honest);
}

TEST_F(DrainWatchTest, TheTailMovesByWhatWasAvailableAtTheMost) {
  drain(40, 32, Lost{1});
  expect(Invariant::tail_honest);
}

TEST_F(DrainWatchTest, AnUnalignedTailViolatesTailHonest) {
  drain(28, 4096, Lost{1});
  expect(Invariant::tail_honest);
}

// If the caller does not say how much was available, data_tail may end anywhere after BadPositions.
TEST_F(DrainWatchTest, OnlyBadPositionsMayUnalignTheTail) {
  watch_.begin_drain();
  watch_.check_event(malformed(Defect::BadPositions, 4096, 128));
  ring_.page.data_tail += 0xffff'fffd;
  watch_.end_drain();
  EXPECT_FALSE(watch_.violation().has_value()) << watch_.violation()->message;
  drain(27, 4096, Lost{1});
  expect(Invariant::tail_honest);
}

TEST_F(DrainWatchTest, TailMovingWithoutEventViolatesTailHonest) {
  drain(8, 4096);
  expect(Invariant::tail_honest);
}

TEST_F(DrainWatchTest, ATailThatMovesBetweenDrainsViolatesTailHonest) {
  drain(0, 0);
  ring_.page.data_tail = 8;
  watch_.begin_drain();
  expect(Invariant::tail_honest);
}

// header.size has 16 bits.
TEST_F(DrainWatchTest, ASampleIsNoLongerThanARecord) {
  for (const std::size_t raw : {65516U, 65524U}) {
    const auto ring = std::make_unique<HandRingOf<std::size_t{1} << 17>>();
    DrainWatch watch{ring->page, ring->data};
    watch.begin_drain();
    watch.check_event(ring->slices(12, raw));
    EXPECT_EQ(watch.violation().has_value(), raw != 65516);
  }
}

TEST_F(DrainWatchTest, ASkipBeyondOneRecordViolatesBounded) {
  for (const std::size_t size : {65528U, 65536U}) {
    const auto ring = std::make_unique<HandRingOf<std::size_t{1} << 17>>();
    DrainWatch watch{ring->page, ring->data};
    const Sample bytes = ring->slices(0, size);
    watch.begin_drain();
    watch.check_event(Malformed{Defect::BadSample, bytes.head, bytes.tail});
    EXPECT_EQ(watch.violation().has_value(), size != 65528);
  }
}

}  // namespace
}  // namespace perfring::oracle
