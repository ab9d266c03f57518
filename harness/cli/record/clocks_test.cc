// Tests the notes about records with another clock than this process's. perfring_test.cc and
// record_command_test.cc test them in a time namespace.

#include "harness/cli/record/clocks.h"

#include <gtest/gtest.h>

#include "harness/program/time_namespace.h"

namespace perfring::cli {
namespace {

TEST(ClockNoteTest, TheSameClockHasNoNote) {
  EXPECT_EQ(note_on_clock(0, 0), "");
}

TEST(ClockNoteTest, NoteExplainsRecordsAheadOfClock) {
  EXPECT_EQ(note_on_clock(4680, -3'000'000'000),
            "note: 4,680 records have times later than this process's clock: the records use "
            "another clock (this process is in a time namespace, where CLOCK_MONOTONIC is 3 s "
            "behind the kernel's). perfring did not hold them back, so records from different CPUs "
            "may be out of order");
  EXPECT_EQ(note_on_clock(1, 0),
            "note: 1 record has a time later than this process's clock: the records use another "
            "clock (as in a time namespace). perfring did not hold them back, so records from "
            "different CPUs may be out of order");
}

TEST(ClockNoteTest, AClockThatIsAheadOfTheRecordsIsNamed) {
  EXPECT_EQ(note_on_clock(0, 2'500'000'000),
            "note: the records use another clock than this process (this process is in a time "
            "namespace, where CLOCK_MONOTONIC is 2.5 s ahead of the kernel's). perfring did not "
            "hold them back, so records from different CPUs may be out of order");
}

TEST(ClockNoteTest, TheOffsetIsThatOfTheMonotonicClock) {
  EXPECT_EQ(
      monotonic_offset_of("monotonic           0         0\nboottime            5         0\n"), 0);
  EXPECT_EQ(
      monotonic_offset_of("monotonic          -3         0\nboottime            5         0\n"),
      -3'000'000'000);
  EXPECT_EQ(monotonic_offset_of("boottime 5 0\nmonotonic -3 250000000\n"), -2'750'000'000);
  EXPECT_EQ(monotonic_offset_of(""), 0);
  EXPECT_EQ(monotonic_offset_of("monotonic x 0\n"), 0);
}

}  // namespace
}  // namespace perfring::cli
