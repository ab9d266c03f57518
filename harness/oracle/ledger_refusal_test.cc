// How the ledger judges refusals and the LOSTs that report them, also with interrupts.

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

#include "harness/oracle/hand_ring.h"
#include "harness/oracle/invariant.h"
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
TEST(LedgerRefusalTest, RefusalWithoutTailReadNeedsPausedRing) {
  const Ledger ledger = ring_of_4096();
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4}), "refused, though the ring is not paused");
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .paused = true}), std::nullopt);
  EXPECT_EQ(ledger.unjustified_refusal({.length = 4, .interrupted = true}), std::nullopt);
}

// Refuses the attempt under way, which the ledger judges by the last data_tail that the attempt
// read. Returns the message of the violation, or "".
std::string found_of_a_refusal(Ledger& ledger, bool paused = false) {
  ledger.note_refusal(paused);
  ledger.end_attempt(-ENOSPC);
  return ledger.violation() ? ledger.violation()->message : "";
}

TEST(LedgerRefusalTest, AnAttemptRefusedWithFreeSpaceViolatesNoLoss) {
  Ledger empty = ring_of_4096();
  empty.begin_attempt({0, 0, 4});
  empty.note_tail_read(0);
  EXPECT_EQ(found_of_a_refusal(empty), "16 bytes were refused, with 0 of 4096 unread");
  EXPECT_EQ(violated(empty), Invariant::no_loss);

  Ledger emptied = ring_of_4096();
  accept(emptied, 4068, 0, 4080);
  emptied.begin_attempt({1, 0, 4});
  emptied.note_tail_read(0);
  emptied.note_tail_read(4080);
  EXPECT_NE(found_of_a_refusal(emptied), "");

  Ledger not_read = ring_of_4096();
  not_read.begin_attempt({0, 0, 4});
  EXPECT_EQ(found_of_a_refusal(not_read), "refused, though the ring is not paused");
}

TEST(LedgerRefusalTest, RefusalByFullOrPausedRingIsNoViolation) {
  Ledger full = ring_of_4096();
  accept(full, 4068, 0, 4080);
  full.begin_attempt({1, 0, 4});
  full.note_tail_read(0);
  EXPECT_EQ(found_of_a_refusal(full), "");

  Ledger paused = ring_of_4096();
  paused.begin_attempt({0, 0, 4});
  EXPECT_EQ(found_of_a_refusal(paused, true), "");

  Ledger resumed = ring_of_4096();
  resumed.begin_attempt({0, 0, 4});
  resumed.note_interruption();
  EXPECT_EQ(found_of_a_refusal(resumed), "");

  // A 32-bit kernel truncates data_tail.
  Ledger crossing = ring_of_4096(0xffff'f800, 32);
  accept(crossing, 4068, 0xffff'f800, 4080, 0, 0xffff'f800);
  crossing.begin_attempt({1, 0, 4});
  crossing.note_tail_read(0xffff'f800);
  EXPECT_EQ(found_of_a_refusal(crossing), "");

  // A data_tail past the head is the consumer's fault.
  Ledger past = ring_of_4096();
  past.begin_attempt({0, 0, 4});
  past.note_tail_read(8);
  EXPECT_EQ(found_of_a_refusal(past), "");
}

// Only an interrupt during an attempt excuses the attempt.
TEST(LedgerRefusalTest, AnInterruptExcusesTheAttemptsUnderWayOnly) {
  Ledger ledger = ring_of_4096();
  ledger.begin_attempt({0, 0, 4});
  accept(ledger, 4, 0, 16);
  ledger.note_reservation(16, 16, 0);
  ledger.end_attempt(0);
  ledger.note_interruption();
  ledger.begin_attempt({1, 0, 4});
  EXPECT_EQ(found_of_a_refusal(ledger), "refused, though the ring is not paused");

  Ledger outer = ring_of_4096();
  outer.begin_attempt({0, 0, 4});
  accept(outer, 4, 0, 16);
  EXPECT_EQ(found_of_a_refusal(outer), "") << "it may have found the ring paused";
}

// An interrupt may report the losses for which the outer output reserved a LOST. The outer LOST
// then has count 0. It is after the interrupt's LOST if the interrupt came before the reservation,
// else in front of it.
TEST(LedgerRefusalTest, AnInterruptMayReportTheLosses) {
  Ledger before = ring_of_4096();
  refuse(before);
  before.begin_attempt({1, 0, 4});
  accept(before, 4, 0, 40, 1);
  before.note_reservation(40, 40, 0);
  before.note_report(0);
  before.end_attempt(0);
  EXPECT_EQ(before.violation(), std::nullopt);

  Ledger after = ring_of_4096();
  refuse(after);
  after.begin_attempt({1, 0, 4});
  after.note_reservation(0, 40, 0);
  accept(after, 4, 40, 40, 1);
  after.note_report(0);
  after.end_attempt(0);
  EXPECT_EQ(after.violation(), std::nullopt);
  EXPECT_EQ(after.front().lost, 0U);
  after.pop();
  EXPECT_EQ(after.front().lost, 1U);
}

// A LOST also reports losses that an interrupt adds after the LOST's reservation.
TEST(LedgerRefusalTest, AnInterruptMayAddToTheLosses) {
  Ledger ledger = ring_of_4096();
  refuse(ledger);
  ledger.begin_attempt({1, 0, 4});
  ledger.note_reservation(0, 40, 0);
  refuse(ledger);
  ledger.note_report(2);
  ledger.end_attempt(0);
  EXPECT_EQ(ledger.violation(), std::nullopt);
  EXPECT_EQ(ledger.front().lost, 2U);
}

// A reservation without a LOST needs a moment without losses during the attempt; one with a LOST
// needs a moment with losses.
TEST(LedgerRefusalTest, AnInterruptDoesNotExcuseAnyLost) {
  Ledger all_along = ring_of_4096();
  refuse(all_along);
  all_along.begin_attempt({1, 0, 4});
  refuse(all_along);
  all_along.note_reservation(0, 16, 0);
  EXPECT_EQ(violated(all_along), Invariant::no_loss);

  Ledger not_yet = ring_of_4096();
  not_yet.begin_attempt({1, 0, 4});
  refuse(not_yet);
  not_yet.note_reservation(0, 16, 0);
  EXPECT_EQ(not_yet.violation(), std::nullopt) << "rb->lost was read before";

  Ledger never = ring_of_4096();
  never.begin_attempt({1, 0, 4});
  accept(never, 4, 0, 16);
  never.note_reservation(16, 40, 0);
  EXPECT_EQ(violated(never), Invariant::no_loss);
}

TEST(LedgerRefusalTest, AReservedLostIsWrittenExactlyOnce) {
  Ledger silent = ring_of_4096();
  refuse(silent);
  silent.begin_attempt({0, 0, 4});
  silent.note_reservation(0, 40, 0);
  silent.end_attempt(0);
  EXPECT_EQ(violated(silent), Invariant::no_loss);

  Ledger twice = ring_of_4096();
  refuse(twice);
  twice.begin_attempt({0, 0, 4});
  twice.note_reservation(0, 40, 0);
  twice.note_report(1);
  twice.note_report(0);
  EXPECT_EQ(violated(twice), Invariant::no_loss);

  Ledger without = ring_of_4096();
  without.begin_attempt({0, 0, 4});
  without.note_reservation(0, 16, 0);
  without.note_report(0);
  EXPECT_EQ(violated(without), Invariant::no_loss);
}

}  // namespace
}  // namespace perfring::oracle
