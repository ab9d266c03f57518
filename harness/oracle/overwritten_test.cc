// Payloads above 65516 bytes: how they are delivered, and which records they overwrite.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "harness/oracle/checker.h"
#include "harness/oracle/hand_ring.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {
namespace {

using CheckerOverwrittenTest = CheckerTest;

TEST(LedgerOverwrittenTest, ASpillOverwritesUnreadRecords) {
  Ledger ledger{65536, Ledger::Keep::Records};
  accept(ledger, 4, 0, 16);
  accept(ledger, 65525, 16, 8, 0, 16);  // 65544 bytes from 16 on: over itself only
  EXPECT_EQ(ledger.overwritten_until(), 24U);
  Ledger larger{131072, Ledger::Keep::Records};
  accept(larger, 65525, 0, 8);
  EXPECT_EQ(larger.overwritten_until(), 0U) << "there was room for all of it";
  larger.begin_attempt({0, 0, 65525});
  larger.note_reservation(8, 8, 0);
  accept(larger, 4, 16, 16);  // an interrupt, over which the spill continues
  larger.end_attempt(0);
  EXPECT_EQ(larger.overwritten_until(), 32U);
}

// The spill begins after the LOST. The bytes before data_tail may be overwritten.
TEST(LedgerOverwrittenTest, ASpillAfterALostStartsAfterIt) {
  for (const std::uint64_t start : {65504U, 65512U}) {
    Ledger ledger{131072, Ledger::Keep::Records, start};
    refuse(ledger);
    accept(ledger, 65525, start, 24 + 8, 1);  // 65544 bytes from start + 24 on
    EXPECT_EQ(ledger.violation(), std::nullopt);
    EXPECT_EQ(ledger.overwritten_until(), start == 65504 ? start : start + 32);
  }
}

TEST(LedgerOverwrittenTest, ASpillOverwritesNoInterruptPastItsEnd) {
  Ledger ledger{262144, Ledger::Keep::Records};
  ledger.begin_attempt({0, 0, 65525});
  ledger.note_reservation(0, 8, 0);  // 65544 bytes from 0 on
  accept(ledger, 65516, 8, 65528);
  accept(ledger, 4, 65536, 16);
  EXPECT_EQ(ledger.overwritten_until(), 65552U) << "of which it overwrites the first half";
  accept(ledger, 4, 65552, 16);
  EXPECT_EQ(ledger.overwritten_until(), 65552U);
  ledger.end_attempt(0);
}

// The outer spill overwrites the interrupt, and the interrupt's interrupt.
TEST(LedgerOverwrittenTest, ASpillOverwritesInterruptsOfItsInterrupts) {
  Ledger ledger{131072, Ledger::Keep::Records};
  ledger.begin_attempt({0, 0, 65525});
  ledger.note_reservation(0, 8, 0);
  ledger.begin_attempt({1, 0, 4});
  ledger.note_reservation(8, 16, 0);
  EXPECT_EQ(ledger.overwritten_until(), 24U);
  accept(ledger, 4, 24, 16);
  EXPECT_EQ(ledger.overwritten_until(), 40U);
}

TEST_F(CheckerOverwrittenTest, OversizePayloadsAreMalformed) {
  ring_.write(65533);  // K6: size 16
  const Sample bytes = ring_.slices(0, 16);
  ring_.write(65517);  // K7: size 0
  ring_.write(65525);  // K8: size 8
  const Sample more = ring_.slices(16, 8);
  // In a ring of 4096 bytes each of them overwrites everything, so any event is allowed.
  ring_.drain_to(24, Malformed{Defect::BadSample, bytes.head, bytes.tail},
                 Malformed{Defect::BadSample, more.head, more.tail});
  ring_.write(36);
  ring_.drain_to(72, ring_.sample_at(24, 36));
  expect_good();
  EXPECT_EQ(ring_.checker.received().overwritten, 2U);
  EXPECT_EQ(ring_.checker.received().desynchronized_events, 2U);
  EXPECT_EQ(ring_.checker.received().delivered, 1U)
      << "past the overwritten bytes, every event is checked";
}

// K7, K10: a record that is never delivered overwrites the record that the callback is reading.
TEST_F(CheckerOverwrittenTest, SpillDuringCallbackIsNoViolation) {
  ring_.write(36);
  const PerfEvent event = ring_.sample_at(0, 36);
  ring_.checker.begin_drain();
  ring_.checker.check_delivery(event);
  ring_.write(65524);
  ring_.checker.check_finished(event);
  ring_.page.data_tail = 48;
  ring_.checker.end_drain();
  expect_good();
  EXPECT_EQ(ring_.checker.received().delivered, 1u);
}

// In overwritten bytes any event may be delivered. After them the checker is exact again.
TEST_F(CheckerOverwrittenTest, AnyEventIsAllowedInOverwrittenBytes) {
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

// Losses count as reported if an overwritten LOST has reported them.
TEST_F(CheckerOverwrittenTest, AnOverwrittenLostCountsAsReported) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.write(65533);
  const Sample all = ring_.slices(0, 88);
  ring_.drain_to(88, Malformed{Defect::BadSize, all.head, all.tail});
  expect_good();
  EXPECT_EQ(ring_.checker.received().lost, 0U);
  EXPECT_EQ(ring_.checker.received().overwritten_lost, 1U);
}

// The LOST was delivered before its sample was overwritten, and does not count again. The next LOST
// is due as usual.
TEST_F(CheckerOverwrittenTest, ALostBeforeAnOverwrittenSampleCountsOnce) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(24, Lost{1});
  ring_.write(65533);
  const Sample rest = ring_.slices(24, 64);
  ring_.drain_to(88, Malformed{Defect::BadSize, rest.head, rest.tail});
  EXPECT_EQ(ring_.checker.received().overwritten_lost, 0U);
  ring_.refuse();
  ring_.write(36, 1);
  ring_.drain_to(160, Lost{1}, ring_.sample_at(112, 36));
  expect_good();
  EXPECT_EQ(ring_.checker.received().lost, 2U);
}

// A drain that stops after an overwritten LOST, or delivers no event, counts no loss twice.
TEST_F(CheckerOverwrittenTest, ADrainMayEndAfterAnOverwrittenLost) {
  ring_.refuse();
  ring_.write(36, 1);
  ring_.write(65533);
  const Sample lost = ring_.slices(0, 24);
  ring_.drain_to(24, Malformed{Defect::UnexpectedType, lost.head, lost.tail});
  ring_.drain_to(24);
  const Sample rest = ring_.slices(24, 64);
  ring_.drain_to(88, Malformed{Defect::BadSize, rest.head, rest.tail});
  expect_good();
  EXPECT_EQ(ring_.checker.received().overwritten_lost, 1U);
}

// The LOST was overwritten, the sample after it was not: the sample is due.
TEST_F(CheckerOverwrittenTest, ASampleAfterAnOverwrittenLostIsDue) {
  ring_.write(65533);
  ring_.refuse();
  ring_.write(36, 1);
  const Sample bytes = ring_.slices(0, 40);
  ring_.drain_to(40, Malformed{Defect::UnexpectedType, bytes.head, bytes.tail});
  ring_.drain_to(88, ring_.sample_at(40, 36));
  expect_good();
  EXPECT_EQ(ring_.checker.received().overwritten_lost, 1U);
  EXPECT_EQ(ring_.checker.received().delivered, 1U);
}

// A consumer that has lost the record boundaries may skip to the next record.
TEST_F(CheckerOverwrittenTest, DrainFromMidRecordMayStayDesynchronized) {
  ring_.write(65533);
  ring_.write(36);
  const Sample first = ring_.slices(0, 24);
  const Sample rest = ring_.slices(24, 40);
  ring_.drain_to(24, Malformed{Defect::UnexpectedType, first.head, first.tail});
  ring_.drain_to(64, Malformed{Defect::BadSize, rest.head, rest.tail});
  expect_good();
  EXPECT_EQ(ring_.checker.received().overwritten, 2U);
}

// A ring with room for the whole payload: nothing is overwritten, so every event is known.
using LargeRing = HandRingOf<std::size_t{1} << 18>;

std::optional<Violation> violation_of(Defect defect, std::size_t size) {
  const auto ring = std::make_unique<LargeRing>();
  ring->write(65533);  // K6: size 16
  const Sample bytes = ring->slices(0, size);
  ring->drain_to(16, Malformed{defect, bytes.head, bytes.tail});
  ring->checker.settle();
  return ring->checker.violation();
}

TEST(CheckerOversizeTest, OversizePayloadIsBadSampleOfTruncatedSize) {
  EXPECT_FALSE(violation_of(Defect::BadSample, 16).has_value());
  for (const auto& [defect, size] :
       {std::pair{Defect::BadSample, 8U}, {Defect::BadLost, 16U}, {Defect::UnexpectedType, 16U}}) {
    const auto violation = violation_of(defect, size);
    ASSERT_TRUE(violation.has_value()) << size;
    EXPECT_STREQ(to_string(violation->invariant), to_string(Invariant::intact));
  }
}

TEST(CheckerOversizeTest, AnOversizePayloadFollowsItsLost) {
  const auto ring = std::make_unique<LargeRing>();
  ring->refuse();
  ring->write(65533, 1);
  const Sample bytes = ring->slices(24, 16);
  ring->drain_to(40, Malformed{Defect::BadSample, bytes.head, bytes.tail});
  ASSERT_TRUE(ring->checker.violation().has_value());
  EXPECT_STREQ(to_string(ring->checker.violation()->invariant), to_string(Invariant::intact));
}

// K7: a payload with header.size 0 leaves the LOST before it alone.
TEST(CheckerOversizeTest, APayloadOfSizeZeroLeavesItsLostAlone) {
  for (const std::uint64_t reported : {1U, 2U}) {
    const auto ring = std::make_unique<LargeRing>();
    ring->refuse();
    ring->write(65517, 1);
    ring->drain_to(24, Lost{reported});
    ring->write(36);
    ring->drain_to(72, ring->sample_at(24, 36));
    ring->checker.settle();
    EXPECT_EQ(ring->checker.violation().has_value(), reported == 2);
    EXPECT_EQ(ring->checker.received().delivered, reported == 1 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace perfring::oracle
