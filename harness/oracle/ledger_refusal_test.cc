// The ledger judges refusals, and the LOSTs that report them, interrupts included.

#include <gtest/gtest.h>

#include <cerrno>

#include "harness/oracle/hand_ring.h"
#include "harness/oracle/ledger.h"

namespace perfring::oracle {
namespace {

// K12: a record of 16 bytes fits beside 4072 that are unread, not beside 4080.
TEST(LedgerRefusalTest, ARefusalWithFreeSpaceIsUnjustified) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4072}),
            "16 bytes were refused, with 4072 of 4096 unread");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4080}), std::nullopt);
  EXPECT_NE(ledger.unjustified_refusal({.length = 4, .unread = 4072, .paused = true}), std::nullopt)
      << "data_tail was read, so the ring was not paused";
}

// K10: the kernel sees 16 of the 65552 bytes.
TEST(LedgerRefusalTest, ARefusalIsJudgedByTheTruncatedSize) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 65533, .unread = 4072}),
            "16 bytes were refused, with 4072 of 4096 unread");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 65533, .unread = 4080}), std::nullopt);
}

// K14: 24 bytes more, if there are unreported losses; or were, before an interrupt reported them.
TEST(LedgerRefusalTest, ARefusalCountsTheSpaceOfALost) {
  Ledger ledger = ring_of_4096();
  EXPECT_NE(ledger.unjustified_refusal({.length = 4, .unread = 4048, .interrupted = true}),
            std::nullopt);
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4056, .interrupted = true}),
            std::nullopt);
  refuse(ledger);
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4048}),
            "40 bytes were refused, with 4048 of 4096 unread");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4056}), std::nullopt);
}

// K41: an output that has not read data_tail has found the ring paused, though an interrupt may
// resume it.
TEST(LedgerRefusalTest, ARefusalWithoutAReadOfDataTailNeedsAPausedRing) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4}), "refused, though the ring is not paused");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .paused = true}), std::nullopt);
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .interrupted = true}), std::nullopt);
}

// An interrupt may report the losses that the outer LOST was reserved for, which is then a LOST of
// 0: behind the interrupt's own, if that came before the reservation, or in front of it.
TEST(LedgerRefusalTest, AnInterruptMayReportTheLosses) {
  Ledger before = ring_of_4096();
  refuse(before);
  before.begins({1, 0, 4});
  accept(before, 4, 0, 40, 1);
  before.reserved(40, 40, 0);
  before.reported(0);
  before.ends(0);
  EXPECT_EQ(before.violation(), std::nullopt);

  Ledger after = ring_of_4096();
  refuse(after);
  after.begins({1, 0, 4});
  after.reserved(0, 40, 0);
  accept(after, 4, 40, 40, 1);
  after.reported(0);
  after.ends(0);
  EXPECT_EQ(after.violation(), std::nullopt);
  EXPECT_EQ(after.front().lost, 0U);
  after.pop();
  EXPECT_EQ(after.front().lost, 1U);
}

// And the losses of an interrupt after the reservation are reported, too.
TEST(LedgerRefusalTest, AnInterruptMayAddToTheLosses) {
  Ledger ledger = ring_of_4096();
  refuse(ledger);
  ledger.begins({1, 0, 4});
  ledger.reserved(0, 40, 0);
  refuse(ledger);
  ledger.reported(2);
  ledger.ends(0);
  EXPECT_EQ(ledger.violation(), std::nullopt);
  EXPECT_EQ(ledger.front().lost, 2U);
}

// Only a moment without losses, or with, excuses that there is no room for a LOST, or that there
// is.
TEST(LedgerRefusalTest, AnInterruptDoesNotExcuseAnyLost) {
  Ledger all_along = ring_of_4096();
  refuse(all_along);
  all_along.begins({1, 0, 4});
  refuse(all_along);
  all_along.reserved(0, 16, 0);
  EXPECT_EQ(violated(all_along), Invariant::no_loss);

  Ledger not_yet = ring_of_4096();
  not_yet.begins({1, 0, 4});
  refuse(not_yet);
  not_yet.reserved(0, 16, 0);
  EXPECT_EQ(not_yet.violation(), std::nullopt) << "rb->lost was read before";

  Ledger never = ring_of_4096();
  never.begins({1, 0, 4});
  accept(never, 4, 0, 16);
  never.reserved(16, 40, 0);
  EXPECT_EQ(violated(never), Invariant::no_loss);
}

TEST(LedgerRefusalTest, AReservedLostIsWrittenExactlyOnce) {
  Ledger silent = ring_of_4096();
  refuse(silent);
  silent.begins({0, 0, 4});
  silent.reserved(0, 40, 0);
  silent.ends(0);
  EXPECT_EQ(violated(silent), Invariant::no_loss);

  Ledger twice = ring_of_4096();
  refuse(twice);
  twice.begins({0, 0, 4});
  twice.reserved(0, 40, 0);
  twice.reported(1);
  twice.reported(0);
  EXPECT_EQ(violated(twice), Invariant::no_loss);

  Ledger without = ring_of_4096();
  without.begins({0, 0, 4});
  without.reserved(0, 16, 0);
  without.reported(0);
  EXPECT_EQ(violated(without), Invariant::no_loss);
}

}  // namespace
}  // namespace perfring::oracle
