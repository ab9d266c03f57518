// For each invariant, a hand-made history that breaks it is reported under its name.

#include "harness/oracle/checker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/oracle/hand_ring.h"

namespace perfring::oracle {
namespace {

TEST_F(CheckerTest, AFaultlessHistoryHasNoViolation) {
  ring_.write(36);
  ring_.write(3);
  ring_.drain_to(64, ring_.sample_at(0, 36), ring_.sample_at(48, 3));
  ring_.refuse();
  ring_.write(4, 1);
  ring_.write(20);
  ring_.drain_to(88, Lost{1});
  ring_.drain_to(136, ring_.sample_at(88, 4), ring_.sample_at(104, 20));
  ring_.drain_to(136);
  ring_.refuse();
  expect_good();
  EXPECT_EQ(ring_.checker.received().delivered, 4U);
  EXPECT_EQ(ring_.checker.received().lost, 1U);
  EXPECT_EQ(ring_.checker.received().bytes, 136U);
}

TEST_F(CheckerTest, AFaultlessHistoryMayWrap) {
  std::uint64_t at = 0;
  for (int i = 0; i < 500; ++i) {
    ring_.write(100);
    ring_.drain_to(at + 112, ring_.sample_at(at, 100));
    at += 112;
  }
  expect_good();
}

TEST_F(CheckerTest, ASampleOfAnEmptyRingViolatesNoInvention) {
  ring_.drain_to(48, ring_.sample_at(0, 36));
  expect(Invariant::no_invention);
}

TEST_F(CheckerTest, AnUnpublishedSampleViolatesNoInvention) {
  ring_.ledger.note_publication(0);
  ring_.write(36);
  ring_.data[30] ^= std::byte{1};
  ring_.drain_to(48, ring_.sample_at(0, 36));
  expect(Invariant::no_invention);
}

// The record was published, but data_head had gone back by the time the drain began.
TEST_F(CheckerTest, SamplePastHeadThatWentBackViolatesNoInvention) {
  ring_.write(36);
  ring_.write(36);
  ring_.ledger.note_publication(96);
  ring_.ledger.note_publication(48);
  ring_.drain_to(48, ring_.sample_at(0, 36));
  EXPECT_FALSE(ring_.checker.violation().has_value());
  ring_.drain_to(96, ring_.sample_at(48, 36));
  expect(Invariant::no_invention);
}

// data_head goes back after the drain has read it: the drain still delivers the records up to the
// old value.
TEST_F(CheckerTest, HeadThatGoesBackDuringDrainLosesNothing) {
  ring_.write(36);
  ring_.write(36);
  ring_.ledger.note_publication(96);
  ring_.checker.begin_drain();
  ring_.checker.check_delivery(ring_.sample_at(0, 36));
  ring_.ledger.note_publication(48);
  ring_.checker.check_delivery(ring_.sample_at(48, 36));
  ring_.page.data_tail = 96;
  ring_.checker.end_drain();
  EXPECT_EQ(ring_.checker.violation(), std::nullopt);
  EXPECT_EQ(ring_.checker.received().delivered, 2U);
}

// The two counts are equal once they are truncated to 32 bits.
TEST_F(CheckerTest, A64BitLostIsComparedInFull) {
  ring_.refuse();
  ring_.write(4, 1);
  ring_.drain_to(40, Lost{(std::uint64_t{1} << 32) + 1}, ring_.sample_at(24, 4));
  expect(Invariant::no_loss, "a LOST of 4294967297 was delivered, but 1 were lost");
}

TEST_F(CheckerTest, ALostThatWasNotWrittenViolatesNoInvention) {
  ring_.write(36);
  ring_.drain_to(72, Lost{1}, ring_.sample_at(0, 36));
  expect(Invariant::no_invention);
}

TEST_F(CheckerTest, ASkippedRecordBetweenOthersViolatesNoLoss) {
  for (int i = 0; i < 3; ++i) ring_.write(36);
  ring_.drain_to(144, ring_.sample_at(0, 36), ring_.sample_at(96, 36));
  expect(Invariant::no_loss);
}

TEST_F(CheckerTest, ASkippedFirstRecordViolatesNoLoss) {
  for (int i = 0; i < 3; ++i) ring_.write(36);
  ring_.drain_to(144, ring_.sample_at(48, 36), ring_.sample_at(96, 36));
  expect(Invariant::no_loss, "stream 0 sequence 0 of 36 bytes was skipped");
}

TEST_F(CheckerTest, ARecordLeftInTheRingViolatesNoLoss) {
  ring_.write(36);
  expect(Invariant::no_loss, "records are still in it: 1, the first of them stream 0 sequence 0");
}

TEST_F(CheckerTest, ARefusalOutsideAnyAttemptViolatesNoLoss) {
  ring_.ledger.note_refusal(true);
  expect(Invariant::no_loss, "0 were refused, but 0 reported as lost and 1 not yet");
}

TEST_F(CheckerTest, ARecordThatVanishedViolatesNoLoss) {
  ring_.write(36);
  ring_.ledger.pop();
  expect(Invariant::no_loss, "1 were accepted, but 0 delivered, 0 malformed and 0 overwritten");
}

TEST_F(CheckerTest, ASkippedLostViolatesNoLoss) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, ring_.sample_at(24, 36));
  expect(Invariant::no_loss, "the LOST before stream 0 sequence 1");
}

TEST_F(CheckerTest, ALostDeliveredTwiceViolatesNoInvention) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, Lost{1}, Lost{1}, ring_.sample_at(24, 36));
  expect(Invariant::no_invention);
}

TEST_F(CheckerTest, ALostOfAnotherCountViolatesNoLoss) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, Lost{2}, ring_.sample_at(24, 36));
  expect(Invariant::no_loss);
}

TEST_F(CheckerTest, SwappedRecordsViolateOrder) {
  for (int i = 0; i < 2; ++i) ring_.write(36);
  ring_.drain_to(96, ring_.sample_at(48, 36), ring_.sample_at(0, 36));
  expect(Invariant::order);
}

// The sample still counts as skipped, not as overwritten, if the callback finishes with it before
// the other sample comes.
TEST_F(CheckerTest, SwappedRecordsViolateOrderEvenIfFinished) {
  for (int i = 0; i < 2; ++i) ring_.write(36);
  ring_.checker.begin_drain();
  ring_.checker.check_delivery(ring_.sample_at(48, 36));
  ring_.checker.check_finished(ring_.sample_at(48, 36));
  ring_.checker.check_delivery(ring_.sample_at(0, 36));
  expect(Invariant::order);
}

TEST_F(CheckerTest, TheSameBytesAtAnotherPlaceViolateOnce) {
  ring_.write(36);
  std::copy_n(ring_.data.begin() + 12, 36, ring_.data.begin() + 1012);
  ring_.drain_to(48, ring_.sample_at(1000, 36));
  expect(Invariant::once, "was delivered from a place other than");
}

TEST_F(CheckerTest, AChangedByteViolatesIntact) {
  ring_.write(36);
  ring_.data[30] ^= std::byte{1};
  ring_.drain_to(48, ring_.sample_at(0, 36));
  expect(Invariant::intact);
}

TEST_F(CheckerTest, AnotherLengthViolatesIntact) {
  ring_.write(36);
  ring_.drain_to(48, ring_.sample_at(0, 28));
  expect(Invariant::intact);
}

TEST_F(CheckerTest, ASoundRecordDeliveredAsBadSizeViolatesIntact) {
  ring_.write(36);
  const Sample bytes = ring_.slices(0, 48);
  ring_.drain_to(48, Malformed{Defect::BadSize, bytes.head, bytes.tail});
  expect(Invariant::intact);
}

TEST_F(CheckerTest, SoundRecordAsBadSampleViolatesIntact) {
  ring_.write(36);
  const Sample bytes = ring_.slices(0, 48);
  ring_.drain_to(48, Malformed{Defect::BadSample, bytes.head, bytes.tail});
  expect(Invariant::intact);
}

TEST_F(CheckerTest, ASampleTwiceInADrainViolatesOnce) {
  ring_.write(36);
  ring_.write(36);
  ring_.drain_to(96, ring_.sample_at(0, 36), ring_.sample_at(0, 36));
  expect(Invariant::once);
}

TEST_F(CheckerTest, ASampleInTwoDrainsViolatesOnce) {
  ring_.write(36);
  ring_.drain_to(48, ring_.sample_at(0, 36));
  ring_.drain_to(96, ring_.sample_at(0, 36));
  expect(Invariant::once);
}

TEST_F(CheckerTest, TailPastDeliveredRecordsViolatesTailHonest) {
  ring_.write(36);
  ring_.write(36);
  ring_.drain_to(96, ring_.sample_at(0, 36));
  expect(Invariant::tail_honest);
}

TEST_F(CheckerTest, ATailThatLagsViolatesTailHonest) {
  ring_.write(36);
  ring_.drain_to(0, ring_.sample_at(0, 36));
  expect(Invariant::tail_honest);
}

TEST_F(CheckerTest, ATailThatMovesDuringADrainViolatesTailHonest) {
  ring_.write(36);
  ring_.checker.begin_drain();
  ring_.page.data_tail = 48;
  ring_.checker.check_delivery(ring_.sample_at(0, 36));
  ring_.checker.check_finished(ring_.sample_at(0, 36));
  expect(Invariant::tail_honest);
}

TEST_F(CheckerTest, TheFirstViolationStays) {
  for (int i = 0; i < 3; ++i) ring_.write(36);
  ring_.drain_to(144, ring_.sample_at(48, 36), Lost{1});  // skips a record, then invents a LOST
  expect(Invariant::no_loss);
}

TEST_F(CheckerTest, ATailThatMovesBetweenDrainsViolatesTailHonest) {
  ring_.write(36);
  ring_.page.data_tail = 48;
  ring_.drain_to(48);
  expect(Invariant::tail_honest);
}

TEST_F(CheckerTest, TheWritersFaultsAreReportedToo) {
  ring_.write(4000);
  ring_.write(100);
  expect(Invariant::no_early_release);
}

TEST_F(CheckerTest, OverwriteDuringCallbackViolatesNoEarlyRelease) {
  ring_.write(36);
  const PerfEvent event = ring_.sample_at(0, 36);
  ring_.checker.begin_drain();
  ring_.checker.check_delivery(event);
  ring_.checker.check_finished(event);
  EXPECT_FALSE(ring_.checker.violation().has_value());
  ring_.data[40] ^= std::byte{1};
  ring_.checker.check_finished(event);
  expect(Invariant::no_early_release);
}

// Checks both slices of the sample.
TEST_F(CheckerTest, OverwritingEitherSliceViolatesNoEarlyRelease) {
  const std::size_t at = HandRing::kSize - 24;  // 12 payload bytes before the ring's end, 24 after
                                                // it
  for (const std::size_t offset : {at + 12, HandRing::kSize - 1, std::size_t{0}, std::size_t{23}}) {
    HandRing ring;
    ring.write(static_cast<std::uint32_t>(at - 12));
    ring.drain_to(at, ring.sample_at(0, static_cast<std::uint32_t>(at - 12)));
    ring.write(36);
    const PerfEvent event = ring.sample_at(at, 36);
    ASSERT_EQ(std::get<Sample>(event).tail.size(), 24U);
    ring.checker.begin_drain();
    ring.checker.check_delivery(event);
    ring.checker.check_finished(event);
    ASSERT_FALSE(ring.checker.violation().has_value()) << ring.checker.violation()->message;
    ring.data[offset] ^= std::byte{1};
    ring.checker.check_finished(event);
    ASSERT_TRUE(ring.checker.violation().has_value()) << offset;
    EXPECT_STREQ(to_string(ring.checker.violation()->invariant),
                 to_string(Invariant::no_early_release));
  }
}

TEST_F(CheckerTest, AnAccessOutsideTheRingViolatesInRing) {
  ring_.checker.check_read(ring_.data.data() + HandRing::kSize - 4, 8);
  expect(Invariant::in_ring);
}

}  // namespace
}  // namespace perfring::oracle
