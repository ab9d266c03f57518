#include "harness/oracle/ledger.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "harness/oracle/hand_ring.h"

namespace perfring::oracle {
namespace {

TEST(LedgerTest, CountsAttemptsByTheirAnswer) {
  Ledger ledger = ring_of_4096();
  accept(ledger, 4, 0, 16);
  refuse(ledger);
  refuse(ledger);
  accept(ledger, 100, 16, 24 + 112, 2);
  ledger.begin_attempt({0, 0, 4});
  ledger.end_attempt(-EBUSY);
  EXPECT_EQ(ledger.violation(), std::nullopt);
  EXPECT_EQ(ledger.totals().accepted, 2U);
  EXPECT_EQ(ledger.totals().lost, 2U);
  EXPECT_EQ(ledger.totals().failed, 1U);
  EXPECT_EQ(ledger.position(), 152U);
  EXPECT_EQ(ledger.pending(), 2U);
  ledger.pop();
  EXPECT_EQ(ledger.front().sample_at(), 40U);
  EXPECT_EQ(ledger.front().end(), 152U);
}

TEST(LedgerTest, AReservationStartsWhereTheLastEnded) {
  Ledger ledger = ring_of_4096();
  accept(ledger, 4, 0, 16);
  accept(ledger, 4, 8, 16);
  EXPECT_EQ(violated(ledger), Invariant::no_loss);

  Ledger ring_further = ring_of_4096();
  accept(ring_further, 4, 4096, 16);
  EXPECT_EQ(violated(ring_further), Invariant::no_loss);
}

TEST(LedgerTest, PositionsOfA32BitKernelWrap) {
  Ledger ledger = ring_of_4096(0xfffffff0, 32);
  accept(ledger, 4, 0xfffffff0, 16, 0, 0xfffffff0);
  accept(ledger, 4, 0, 16, 0, 0xfffffff0);
  EXPECT_EQ(ledger.violation(), std::nullopt);
  EXPECT_EQ(ledger.position(), 0x100000010U);
  accept(ledger, 4, 0x10, 16, 0, 0x10);  // data_tail truncated to the kernel's word works as well
  EXPECT_EQ(ledger.violation(), std::nullopt);
  ledger.note_publication(0x10);
  EXPECT_EQ(ledger.published(), 0x100000010U);
}

// A faulty kernel may move data_head back. A consumer can then read no further than the new
// data_head.
TEST(LedgerTest, PublishedFollowsADataHeadThatGoesBackward) {
  Ledger ledger = ring_of_4096(0xffffffe0, 32);
  for (std::uint64_t i = 0; i < 4; ++i) accept(ledger, 4, 0xffffffe0 + 16 * i, 16, 0, 0xffffffe0);
  ledger.note_publication(0x10);  // past 4 GiB
  EXPECT_EQ(ledger.published(), 0x100000010U);
  ledger.note_publication(0);
  EXPECT_EQ(ledger.published(), 0x100000000U);
  ledger.note_publication(0xfffffff0);
  EXPECT_EQ(ledger.published(), 0xfffffff0U);
  ledger.note_publication(0x20);
  EXPECT_EQ(ledger.published(), 0x100000020U);
}

TEST(LedgerTest, MisreportedLossViolatesNoLoss) {
  Ledger twice = ring_of_4096();
  refuse(twice);
  accept(twice, 4, 0, 40, 2);
  EXPECT_EQ(violated(twice), Invariant::no_loss);

  Ledger too_few = ring_of_4096();
  refuse(too_few);
  refuse(too_few);
  accept(too_few, 4, 0, 40, 1);
  EXPECT_EQ(violated(too_few), Invariant::no_loss);

  Ledger never = ring_of_4096();
  refuse(never);
  accept(never, 4, 0, 16);
  EXPECT_EQ(violated(never), Invariant::no_loss);
}

// The LOST of an interrupt, or of an interrupt's interrupt, must have the count of all losses so
// far, like an outermost one.
TEST(LedgerTest, ANestedLostOfAnotherCountIsAViolation) {
  for (const unsigned depth : {1U, 2U}) {
    for (const std::uint64_t count : {1U, 2U, 3U}) {
      Ledger ledger = ring_of_4096();
      for (std::uint64_t i = 0; i < depth; ++i) ledger.begin_attempt({i, 0, 4});
      refuse(ledger);
      refuse(ledger);
      accept(ledger, 4, 0, 40, count);
      if (count == 2) {
        EXPECT_EQ(ledger.violation(), std::nullopt) << depth;
      } else {
        EXPECT_EQ(violated(ledger), Invariant::no_loss) << count << " at depth " << depth;
      }
    }
  }
}

TEST(LedgerTest, ReturnCodeMustMatchTracepoints) {
  Ledger accepted = ring_of_4096();
  accepted.begin_attempt({0, 0, 4});
  accepted.end_attempt(0);
  EXPECT_EQ(violated(accepted), Invariant::no_loss);

  Ledger uncounted = ring_of_4096();
  uncounted.begin_attempt({0, 0, 4});
  uncounted.end_attempt(-ENOSPC);
  EXPECT_EQ(violated(uncounted), Invariant::no_loss);

  for (const int rc : {0, -ENOSPC}) {
    Ledger both = ring_of_4096();
    both.begin_attempt({0, 0, 4});
    both.note_reservation(0, 16, 0);
    both.note_refusal(true);
    both.end_attempt(rc);
    EXPECT_EQ(violated(both), Invariant::no_loss) << rc;
  }
}

// K12: at most N - 8 bytes.
TEST(LedgerTest, UnreadBytesAreNotReservedAgain) {
  Ledger full = ring_of_4096();
  accept(full, 4068, 0, 4080);
  EXPECT_EQ(full.violation(), std::nullopt);
  accept(full, 4, 4080, 16);
  EXPECT_EQ(violated(full), Invariant::no_early_release);

  Ledger read = ring_of_4096();
  accept(read, 4068, 0, 4080);
  accept(read, 4, 4080, 16, 0, 8);
  EXPECT_EQ(read.violation(), std::nullopt);

  // A ring in which all N bytes are unread does not count as empty.
  Ledger whole = ring_of_4096(4096);
  accept(whole, 4, 4096, 16);
  EXPECT_EQ(violated(whole), Invariant::no_early_release);
}

TEST(LedgerTest, TheFirstViolationStays) {
  Ledger ledger = ring_of_4096();
  accept(ledger, 4080, 0, 4096);
  accept(ledger, 4, 8, 16, 0, 4096);
  EXPECT_EQ(violated(ledger), Invariant::no_early_release);
}

TEST(LedgerTest, AHeaderSizeOfZeroIsInvisible) {
  Ledger ledger = ring_of_4096();
  accept(ledger, 65517, 0, 0);
  EXPECT_EQ(ledger.violation(), std::nullopt);
  EXPECT_EQ(ledger.totals().invisible, 1U);
  EXPECT_TRUE(ledger.empty());
}

TEST(LedgerTest, KeepsRecordsInOrderHoweverManyThereAre) {
  Ledger ledger{std::uint64_t{1} << 20, Ledger::Keep::Records};
  std::uint64_t popped = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    accept(ledger, 4, 16 * i, 16);
    if (i % 3 == 0) {
      EXPECT_EQ(ledger.front().position, 16 * popped++);
      ledger.pop();
    }
  }
  EXPECT_EQ(ledger.pending(), 1000 - popped);
}

TEST(LedgerTest, ContainsComparesIdentity) {
  Ledger ledger = ring_of_4096();
  ledger.begin_attempt({5, 1, 4});
  ledger.note_reservation(0, 16, 0);
  EXPECT_TRUE(ledger.contains({5, 1, 4}));
  EXPECT_FALSE(ledger.contains({5, 2, 4}));
  EXPECT_FALSE(ledger.contains({6, 1, 4}));
  ledger.pop();
  EXPECT_FALSE(ledger.contains({5, 1, 4}));
}

// A faulty kernel may publish a record before its LOST is written.
TEST(LedgerTest, LostReportedAfterPopChangesNoOtherRecord) {
  Ledger ledger{std::uint64_t{1} << 20, Ledger::Keep::Records};
  refuse(ledger);
  ledger.begin_attempt({0, 0, 4});
  ledger.note_reservation(0, 40, 0);
  ledger.pop();
  accept(ledger, 4, 40, 40, 1);
  for (std::uint64_t i = 0; i < 62; ++i) accept(ledger, 4, 80 + 16 * i, 16);
  refuse(ledger);
  accept(ledger, 4, 80 + 16 * 62, 40, 1);
  ledger.note_report(0);
  ledger.end_attempt(0);
  EXPECT_EQ(ledger.violation(), std::nullopt);
  for (int i = 0; i < 63; ++i) ledger.pop();
  EXPECT_EQ(ledger.front().lost, 1U);
}

TEST(LedgerTest, KeepTotalsKeepsNoRecords) {
  Ledger ledger{4096, Ledger::Keep::Totals};
  accept(ledger, 4, 0, 16);
  EXPECT_TRUE(ledger.empty());
  EXPECT_EQ(ledger.totals().accepted, 1U);
}

}  // namespace
}  // namespace perfring::oracle
