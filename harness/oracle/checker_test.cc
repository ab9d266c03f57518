// Each invariant: a history that breaks it, made by hand, is reported under its name.

#include "harness/oracle/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "harness/oracle/hand_ring.h"

namespace perfring::oracle {
namespace {

class Checking : public ::testing::Test {
 protected:
  void expect(Invariant invariant, const std::string& message = "") {
    ring_.checker.settle();
    ASSERT_TRUE(ring_.checker.violation().has_value());
    EXPECT_STREQ(to_string(ring_.checker.violation()->invariant), to_string(invariant))
        << ring_.checker.violation()->message;
    EXPECT_THAT(ring_.checker.violation()->message, ::testing::HasSubstr(message));
  }
  void expect_good() {
    ring_.checker.settle();
    const auto& violation = ring_.checker.violation();
    EXPECT_FALSE(violation.has_value())
        << to_string(violation->invariant) << ": " << violation->message;
  }

  HandRing ring_;
};

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

TEST_F(Checking, OversizePayloadsAreMalformed) {
  ring_.write(65533);  // K6: size 16
  const Sample bytes = ring_.slices(0, 16);
  ring_.write(65517);  // K7: nothing
  ring_.write(65525);  // K8: size 8
  const Sample more = ring_.slices(16, 8);
  // In a ring of 4096 all of them spoil everything: no more than that is asked.
  ring_.drain_to(24, Malformed{Defect::BadSample, bytes.head, bytes.tail},
                 Malformed{Defect::BadSample, more.head, more.tail});
  ring_.write(36);
  ring_.drain_to(72, ring_.sample_at(24, 36));
  expect_good();
  EXPECT_EQ(ring_.checker.received().spoiled, 2U);
  EXPECT_EQ(ring_.checker.received().spoiled_events, 2U);
  EXPECT_EQ(ring_.checker.received().delivered, 1U) << "past the spoiled bytes, all is checked";
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
  expect(Invariant::no_loss, "1 were written, but 0 delivered, 0 malformed and 0 spoiled");
}

TEST_F(Checking, LossOfALoss) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(72, ring_.sample_at(24, 36));
  expect(Invariant::no_loss);
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
  expect(Invariant::tail_honest);
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

// K7, K10: a record that is not even seen overwrites the one that the callback has.
TEST_F(Checking, BytesThatASpillOverwritesWhileTheyAreLookedAt) {
  ring_.write(36);
  const PerfEvent event = ring_.sample_at(0, 36);
  ring_.checker.drain_begins();
  ring_.checker.delivered(event);
  ring_.write(65524);
  ring_.checker.finished_with(event);
  ring_.page.data_tail = 48;
  ring_.checker.drain_ends();
  expect_good();
}

TEST_F(Checking, AccessOutsideTheRing) {
  ring_.checker.reads(ring_.data.data() + HandRing::kSize - 4, 8);
  expect(Invariant::in_ring);
}

// In the middle of what a spill has overwritten, anything may be delivered; the tail tells when
// that is over.
TEST_F(Checking, SpoiledBytesAreNotHeldAgainstTheConsumer) {
  ring_.write(36);
  ring_.write(65533);
  const Sample all = ring_.slices(0, 64);
  ring_.drain_to(64, Malformed{Defect::BadSize, all.head, all.tail});
  expect_good();
  ring_.write(36);
  ring_.data[64 + 20] ^= std::byte{1};
  ring_.drain_to(112, ring_.sample_at(64, 36));
  expect(Invariant::intact);
}

// Losses told of by a LOST that is spoiled count as told of.
TEST_F(Checking, ASpoiledLostTellsOfItsLosses) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.write(65533);
  const Sample all = ring_.slices(0, 88);
  ring_.drain_to(88, Malformed{Defect::BadSize, all.head, all.tail});
  expect_good();
  EXPECT_EQ(ring_.checker.received().lost, 0U);
  EXPECT_EQ(ring_.checker.received().spoiled_lost, 1U);
}

// A ring that holds all that a payload spills: nothing is spoiled, and what comes is known exactly.
using LargeRing = HandRingOf<std::size_t{1} << 18>;

std::optional<Violation> violation_of(Defect defect, std::size_t size) {
  const auto ring = std::make_unique<LargeRing>();
  ring->write(65533);  // K6: size 16
  const Sample bytes = ring->slices(0, size);
  ring->drain_to(16, Malformed{defect, bytes.head, bytes.tail});
  ring->checker.settle();
  return ring->checker.violation();
}

TEST(Oversize, IsABadSampleOfItsTruncatedSize) {
  EXPECT_FALSE(violation_of(Defect::BadSample, 16).has_value());
  for (const auto& [defect, size] :
       {std::pair{Defect::BadSample, 8U}, {Defect::BadLost, 16U}, {Defect::UnexpectedType, 16U}}) {
    const auto violation = violation_of(defect, size);
    ASSERT_TRUE(violation.has_value()) << size;
    EXPECT_STREQ(to_string(violation->invariant), to_string(Invariant::intact));
  }
}

// K7: a payload of size 0 behind it leaves the LOST alone.
TEST(Oversize, LeavesALostAlone) {
  for (const std::uint64_t told : {1U, 2U}) {
    const auto ring = std::make_unique<LargeRing>();
    ring->refuse();
    ring->write(65517, 1);
    ring->drain_to(24, Lost{told});
    ring->write(36);
    ring->drain_to(72, ring->sample_at(24, 36));
    ring->checker.settle();
    EXPECT_EQ(ring->checker.violation().has_value(), told == 2);
    EXPECT_EQ(ring->checker.received().delivered, told == 1 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace perfring::oracle
