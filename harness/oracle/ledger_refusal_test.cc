// How the ledger judges refusals and the LOSTs that report them, also with interrupts.

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "harness/oracle/hand_ring.h"
#include "harness/oracle/ledger.h"

namespace perfring::oracle {
namespace {

// K12: a record of 16 bytes fits if 4072 bytes are unread, but not if 4080 are.
TEST(LedgerRefusalTest, ARefusalWithFreeSpaceIsUnjustified) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4072}),
            "16 bytes were refused, with 4072 of 4096 unread");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .unread = 4080}), std::nullopt);
  EXPECT_NE(ledger.unjustified_refusal({.length = 4, .unread = 4072, .paused = true}), std::nullopt)
      << "data_tail was read, so the ring was not paused";
}

// K10: the kernel reserves 16 of the 65552 bytes.
TEST(LedgerRefusalTest, ARefusalIsJudgedByTheTruncatedSize) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 65533, .unread = 4072}),
            "16 bytes were refused, with 4072 of 4096 unread");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 65533, .unread = 4080}), std::nullopt);
}

// K14: 24 bytes more if there are unreported losses, or if an interrupt may have just reported
// some.
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

// K41: an output that has not read data_tail found the ring paused. An interrupt may have resumed
// the ring since.
TEST(LedgerRefusalTest, ARefusalWithoutAReadOfDataTailNeedsAPausedRing) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4}), "refused, though the ring is not paused");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .paused = true}), std::nullopt);
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .interrupted = true}), std::nullopt);
}

// Refuses the attempt under way, which the ledger judges by the last data_tail that the attempt
// read. Returns the message of the violation, or "".
std::string found_of_a_refusal(Ledger& ledger, bool paused = false) {
  ledger.refused(paused);
  ledger.ends(-ENOSPC);
  return ledger.violation() ? ledger.violation()->message : "";
}

TEST(LedgerRefusalTest, AnAttemptRefusedWithFreeSpaceViolatesNoLoss) {
  Ledger empty = ring_of_4096();
  empty.begins({0, 0, 4});
  empty.reads_tail(0);
  EXPECT_EQ(found_of_a_refusal(empty), "16 bytes were refused, with 0 of 4096 unread");
  EXPECT_EQ(violated(empty), Invariant::no_loss);

  Ledger emptied = ring_of_4096();
  accept(emptied, 4068, 0, 4080);
  emptied.begins({1, 0, 4});
  emptied.reads_tail(0);
  emptied.reads_tail(4080);
  EXPECT_NE(found_of_a_refusal(emptied), "");

  Ledger not_read = ring_of_4096();
  not_read.begins({0, 0, 4});
  EXPECT_EQ(found_of_a_refusal(not_read), "refused, though the ring is not paused");
}

TEST(LedgerRefusalTest, AnAttemptRefusedByAFullOrPausedRingIsNoViolation) {
  Ledger full = ring_of_4096();
  accept(full, 4068, 0, 4080);
  full.begins({1, 0, 4});
  full.reads_tail(0);
  EXPECT_EQ(found_of_a_refusal(full), "");

  Ledger paused = ring_of_4096();
  paused.begins({0, 0, 4});
  EXPECT_EQ(found_of_a_refusal(paused, true), "");

  Ledger resumed = ring_of_4096();
  resumed.begins({0, 0, 4});
  resumed.interrupted();
  EXPECT_EQ(found_of_a_refusal(resumed), "");

  // A 32-bit kernel truncates data_tail.
  Ledger crossing = ring_of_4096(0xffff'f800, 32);
  accept(crossing, 4068, 0xffff'f800, 4080, 0, 0xffff'f800);
  crossing.begins({1, 0, 4});
  crossing.reads_tail(0xffff'f800);
  EXPECT_EQ(found_of_a_refusal(crossing), "");

  // A data_tail past the head is the consumer's fault.
  Ledger past = ring_of_4096();
  past.begins({0, 0, 4});
  past.reads_tail(8);
  EXPECT_EQ(found_of_a_refusal(past), "");
}

// Only an interrupt during an attempt excuses the attempt.
TEST(LedgerRefusalTest, AnInterruptExcusesTheAttemptsUnderWayOnly) {
  Ledger ledger = ring_of_4096();
  ledger.begins({0, 0, 4});
  accept(ledger, 4, 0, 16);
  ledger.reserved(16, 16, 0);
  ledger.ends(0);
  ledger.interrupted();
  ledger.begins({1, 0, 4});
  EXPECT_EQ(found_of_a_refusal(ledger), "refused, though the ring is not paused");

  Ledger outer = ring_of_4096();
  outer.begins({0, 0, 4});
  accept(outer, 4, 0, 16);
  EXPECT_EQ(found_of_a_refusal(outer), "") << "it may have found the ring paused";
}

// An interrupt may report the losses for which the outer output reserved a LOST. The outer LOST
// then has count 0. It is after the interrupt's LOST if the interrupt came before the reservation,
// else in front of it.
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

// A LOST also reports losses that an interrupt adds after the LOST's reservation.
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

// A reservation without a LOST needs a moment without losses during the attempt; one with a LOST
// needs a moment with losses.
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
