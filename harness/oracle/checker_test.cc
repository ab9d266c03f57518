// Each invariant: a history that breaks it, made by hand, is reported under its name.

#include "harness/oracle/checker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/oracle/checking.h"

namespace perfring::oracle {
namespace {

TEST_F(Checking, AGoodHistoryIsGood) {
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

TEST_F(Checking, AGoodHistoryMayWrap) {
  std::uint64_t at = 0;
  for (int i = 0; i < 500; ++i) {
    ring_.write(100);
    ring_.drain_to(at + 112, ring_.sample_at(at, 100));
    at += 112;
  }
  expect_good();
}

TEST_F(Checking, InventionOfASample) {
  ring_.drain_to(48, ring_.sample_at(0, 36));
  expect(Invariant::no_invention);
}

TEST_F(Checking, InventionOfWhatIsNotPublished) {
  ring_.ledger.published(0);
  ring_.write(36);
  ring_.data[30] ^= std::byte{1};
  ring_.drain_to(48, ring_.sample_at(0, 36));
  expect(Invariant::no_invention);
}

TEST_F(Checking, InventionOfALoss) {
  ring_.write(36);
  ring_.drain_to(72, Lost{1}, ring_.sample_at(0, 36));
  expect(Invariant::no_invention);
}

TEST_F(Checking, LossOfARecordBetweenOthers) {
  for (int i = 0; i < 3; ++i) ring_.write(36);
  ring_.drain_to(144, ring_.sample_at(0, 36), ring_.sample_at(96, 36));
  expect(Invariant::no_loss);
}

TEST_F(Checking, LossOfARecordBeforeOthers) {
  for (int i = 0; i < 3; ++i) ring_.write(36);
  ring_.drain_to(144, ring_.sample_at(48, 36), ring_.sample_at(96, 36));
  expect(Invariant::no_loss, "stream 0 sequence 0 of 36 bytes was passed over");
}

TEST_F(Checking, LossOfARecordThatNobodyAskedFor) {
  ring_.write(36);
  expect(Invariant::no_loss, "1 records are still in it, the first stream 0 sequence 0");
}

TEST_F(Checking, LossesThatNobodyCounted) {
  ring_.ledger.refused();
  expect(Invariant::no_loss, "0 were refused, but 0 reported as lost and 1 not yet");
}

TEST_F(Checking, LossOfARecordThatIsInNoRing) {
  ring_.write(36);
  ring_.ledger.pop();
  expect(Invariant::no_loss, "1 were written, but 0 delivered, 0 malformed and 0 overwritten");
}

TEST_F(Checking, LossOfALoss) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, ring_.sample_at(24, 36));
  expect(Invariant::no_loss, "the LOST in front of stream 0 sequence 1");
}

TEST_F(Checking, ALossTwice) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, Lost{1}, Lost{1}, ring_.sample_at(24, 36));
  expect(Invariant::no_invention);
}

TEST_F(Checking, ALossOfAnotherCount) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, Lost{2}, ring_.sample_at(24, 36));
  expect(Invariant::no_loss);
}

TEST_F(Checking, Order) {
  for (int i = 0; i < 2; ++i) ring_.write(36);
  ring_.drain_to(96, ring_.sample_at(48, 36), ring_.sample_at(0, 36));
  expect(Invariant::order);
}

// Nor is it held to be overwritten, if the callback is finished with it before the other comes.
TEST_F(Checking, OrderOfWhatIsLookedAt) {
  for (int i = 0; i < 2; ++i) ring_.write(36);
  ring_.checker.drain_begins();
  ring_.checker.delivered(ring_.sample_at(48, 36));
  ring_.checker.finished_with(ring_.sample_at(48, 36));
  ring_.checker.delivered(ring_.sample_at(0, 36));
  expect(Invariant::order);
}

TEST_F(Checking, TheSameBytesAtAnotherPlace) {
  ring_.write(36);
  std::copy_n(ring_.data.begin() + 12, 36, ring_.data.begin() + 1012);
  ring_.drain_to(48, ring_.sample_at(1000, 36));
  expect(Invariant::once, "was delivered from another place");
}

TEST_F(Checking, IntactBytes) {
  ring_.write(36);
  ring_.data[30] ^= std::byte{1};
  ring_.drain_to(48, ring_.sample_at(0, 36));
  expect(Invariant::intact);
}

TEST_F(Checking, IntactLength) {
  ring_.write(36);
  ring_.drain_to(48, ring_.sample_at(0, 28));
  expect(Invariant::intact);
}

TEST_F(Checking, ASoundRecordIsNotMalformed) {
  ring_.write(36);
  const Sample bytes = ring_.slices(0, 48);
  ring_.drain_to(48, Malformed{Defect::BadSize, bytes.head, bytes.tail});
  expect(Invariant::intact);
}

TEST_F(Checking, ASoundRecordIsNoBadSample) {
  ring_.write(36);
  const Sample bytes = ring_.slices(0, 48);
  ring_.drain_to(48, Malformed{Defect::BadSample, bytes.head, bytes.tail});
  expect(Invariant::intact);
}

TEST_F(Checking, OnceInADrain) {
  ring_.write(36);
  ring_.write(36);
  ring_.drain_to(96, ring_.sample_at(0, 36), ring_.sample_at(0, 36));
  expect(Invariant::once);
}

TEST_F(Checking, OnceInTwoDrains) {
  ring_.write(36);
  ring_.drain_to(48, ring_.sample_at(0, 36));
  ring_.drain_to(96, ring_.sample_at(0, 36));
  expect(Invariant::once);
}

TEST_F(Checking, ATailThatIsAheadOfWhatWasDelivered) {
  ring_.write(36);
  ring_.write(36);
  ring_.drain_to(96, ring_.sample_at(0, 36));
  expect(Invariant::tail_honest);
}

TEST_F(Checking, ATailThatStaysBehind) {
  ring_.write(36);
  ring_.drain_to(0, ring_.sample_at(0, 36));
  expect(Invariant::tail_honest);
}

TEST_F(Checking, ATailThatMovesDuringADrain) {
  ring_.write(36);
  ring_.checker.drain_begins();
  ring_.page.data_tail = 48;
  ring_.checker.delivered(ring_.sample_at(0, 36));
  ring_.checker.finished_with(ring_.sample_at(0, 36));
  expect(Invariant::tail_honest);
}

TEST_F(Checking, TheFirstViolationStays) {
  for (int i = 0; i < 3; ++i) ring_.write(36);
  ring_.drain_to(144, ring_.sample_at(48, 36), Lost{1});  // passed over, and invented
  expect(Invariant::no_loss);
}

TEST_F(Checking, ATailThatMovesBetweenDrains) {
  ring_.write(36);
  ring_.page.data_tail = 48;
  ring_.drain_to(48);
  expect(Invariant::tail_honest);
}

TEST_F(Checking, TheWritersFaultsAreReportedToo) {
  ring_.write(4000);
  ring_.write(100);
  expect(Invariant::no_early_release);
}

TEST_F(Checking, BytesThatAreOverwrittenWhileTheyAreLookedAt) {
  ring_.write(36);
  const PerfEvent event = ring_.sample_at(0, 36);
  ring_.checker.drain_begins();
  ring_.checker.delivered(event);
  ring_.checker.finished_with(event);
  EXPECT_FALSE(ring_.checker.violation().has_value());
  ring_.data[40] ^= std::byte{1};
  ring_.checker.finished_with(event);
  expect(Invariant::no_early_release);
}

TEST_F(Checking, AccessOutsideTheRing) {
  ring_.checker.reads(ring_.data.data() + HandRing::kSize - 4, 8);
  expect(Invariant::in_ring);
}

}  // namespace
}  // namespace perfring::oracle
