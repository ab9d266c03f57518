// The judge of a merge, with hand-made histories: each rule for the order, for one ring's events,
// and for the ring's tail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/oracle/hand_ring.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"
#include "harness/simulator/judge.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {
namespace {

using oracle::Invariant;
using ::testing::HasSubstr;

// Returns the invariant and the message, or "holds" if there is no violation.
std::string in_words(const std::optional<oracle::Violation>& violation) {
  if (!violation) return "holds";
  return std::string{to_string(violation->invariant)} + ": " + violation->message;
}

class MergeOrderTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSlack = 10;

  // Delivers this event, marked late or not. Returns the violation found.
  std::string comes(const KeyedEvent& timed, bool late = false, std::size_t ring = 0) {
    const Ordered event{ring, timed.key, late, Lost{1}};
    order_.event = &event;
    return in_words(order_.check_order(timed));
  }
  std::string comes(std::uint64_t key, bool late = false, std::size_t ring = 0) {
    return comes({.key = key, .published = key, .position = next_ += 32}, late, ring);
  }

  MergeOrder order_{kSlack};
  std::uint64_t next_ = 0;
};

TEST_F(MergeOrderTest, EventsBelowTheBoundMayBeDelivered) {
  order_.begin_run(/*is_flush=*/false);
  order_.note_clock(100);
  EXPECT_EQ(order_.bound(), 90U);
  EXPECT_EQ(comes(0), "holds");
  EXPECT_EQ(comes(89), "holds");
  for (const std::uint64_t key : {90U, 91U, 100U, 1000U}) {
    EXPECT_THAT(comes(key), HasSubstr("merged: was delivered with the key")) << key;
  }
}

TEST_F(MergeOrderTest, TheBoundIsTheFirstClockOfTheRunMinusTheSlack) {
  const auto bound_of = [this](std::initializer_list<std::uint64_t> clocks) {
    order_.begin_run(/*is_flush=*/false);
    for (const std::uint64_t clock : clocks) order_.note_clock(clock);
    return order_.bound();
  };
  EXPECT_EQ(bound_of({100, 50, 200}), 90U);
  EXPECT_EQ(bound_of({50}), 40U) << "of each run";
  EXPECT_EQ(bound_of({11}), 1U);
  EXPECT_EQ(bound_of({10}), 0U);
  EXPECT_EQ(bound_of({9}), 0U);
  EXPECT_EQ(bound_of({0}), 0U);
}

TEST_F(MergeOrderTest, AFlushHasNoBound) {
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(comes(~std::uint64_t{0}), "holds");
  order_.begin_run(/*is_flush=*/false);
  order_.note_clock(~std::uint64_t{0});
  EXPECT_THAT(comes(~std::uint64_t{0}), HasSubstr("merged: ")) << "which ends with it";
}

TEST_F(MergeOrderTest, AnEventIsMarkedLateIfAHigherKeyHasCome) {
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(comes(50), "holds");
  EXPECT_EQ(comes(50), "holds") << "the same key";
  EXPECT_THAT(comes(50, /*late=*/true), HasSubstr("late: is marked as late"));
  const KeyedEvent slow{.key = 49, .published = 49 + kSlack + 1};
  EXPECT_THAT(comes(slow), HasSubstr("late: is marked as in time"));
  EXPECT_EQ(comes(slow, /*late=*/true), "holds");
  EXPECT_EQ(order_.late(), 1U);
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(comes(slow, /*late=*/true), "holds") << "of a run before, too";
  EXPECT_EQ(comes(51), "holds");
}

// An event may be late only if its writer took longer than the slack, or if the window cannot sort
// it.
TEST_F(MergeOrderTest, OnlySomeMayBeLate) {
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(comes(100), "holds");
  const auto late = [this](std::uint64_t took, std::size_t displaced_by) {
    return comes({.key = 50, .published = 50 + took, .displaced_by = displaced_by}, true);
  };
  EXPECT_EQ(late(kSlack + 1, 0), "holds");
  EXPECT_THAT(late(kSlack, 0), HasSubstr("late: is late by 50, although its writer took 10"));
  EXPECT_THAT(late(0, 0), HasSubstr("although its writer took 0"));
  EXPECT_EQ(late(0, kMergeWindow), "holds");
  EXPECT_THAT(late(0, kMergeWindow - 1), HasSubstr("late: is late"));
  EXPECT_THAT(comes({.key = 50, .published = 20}, true), HasSubstr("its writer took 0"))
      << "a clock that went back";
}

TEST_F(MergeOrderTest, EqualKeysComeByRingThenPosition) {
  constexpr std::uint64_t kWrap = ~std::uint64_t{0} - 15;
  const auto at = [this](std::size_t ring, std::uint64_t position) {
    return comes({.key = 50, .published = 50, .position = position}, false, ring);
  };
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(at(1, kWrap), "holds");
  EXPECT_EQ(at(1, 16), "holds") << "positions wrap";
  EXPECT_EQ(at(1, 16), "holds");
  EXPECT_THAT(at(1, 8), HasSubstr("merged: was delivered after a later event with the same key"));
  EXPECT_EQ(at(2, 0), "holds");
  EXPECT_THAT(at(1, 64), HasSubstr("merged: was delivered after a later event"));
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(at(0, 0), "holds") << "another run";
}

TEST_F(MergeOrderTest, TheMergesOwnCountsAreCompared) {
  order_.note_publication(7);
  order_.note_publication(3);
  order_.begin_run(/*is_flush=*/true);
  EXPECT_EQ(comes(50), "holds");
  EXPECT_EQ(comes({.key = 20, .published = 99}, true), "holds");
  EXPECT_EQ(comes({.key = 10, .published = 99}, true), "holds");
  EXPECT_EQ(comes({.key = 30, .published = 99}, true), "holds");
  EXPECT_EQ(order_.longest_delay(), 7U);
  MergeCounts right;
  right.delivered = 4;
  right.late = 3;
  right.worst_late = 40;
  right.longest_delay = 7;
  EXPECT_EQ(in_words(order_.settle(right)), "holds");
  right.longest_delay = 0;
  EXPECT_EQ(in_words(order_.settle(right)), "holds") << "it need not have looked at each";
  const auto wrong = [&](void (*change)(MergeCounts&)) {
    MergeCounts counts = right;
    change(counts);
    return in_words(order_.settle(counts));
  };
  for (const auto change :
       {+[](MergeCounts& c) { ++c.delivered; }, +[](MergeCounts& c) { --c.delivered; },
        +[](MergeCounts& c) { ++c.late; }, +[](MergeCounts& c) { --c.late; },
        +[](MergeCounts& c) { ++c.worst_late; }, +[](MergeCounts& c) { --c.worst_late; },
        +[](MergeCounts& c) { ++c.ahead; }, +[](MergeCounts& c) { c.longest_delay = 8; }}) {
    EXPECT_THAT(wrong(change), HasSubstr("late: the merge counted"));
  }
}

// One ring. Its records have the keys that a test gives them, in the order in which they are
// written.
struct History {
  static constexpr std::uint64_t kSlack = 10;
  static constexpr std::uint64_t kClock = 1000;
  static constexpr std::uint32_t kLength = 20;  // a record of 32 bytes, or 56 with a LOST

  // Writes and publishes a record. Returns its position.
  std::uint64_t write(std::uint64_t key, std::uint64_t lost = 0) {
    const std::uint64_t at = ring.head;
    keys.push_back(key);
    ring.write(kLength, lost);
    judge->note_publication();
    return at;
  }
  // A refused record uses up a sequence number, and has no key.
  void refuse() {
    keys.push_back(0);
    ring.refuse();
  }
  // Delivers a sample or a LOST as an event with this key.
  void comes(PerfEvent what, std::uint64_t key, bool late = false) {
    const Ordered event{0, key, late, what};
    order.event = &event;
    judge->check_delivery(what);
    judge->check_finished(what);
    order.event = nullptr;
  }
  void sample_comes(std::uint64_t at, std::uint64_t key) {
    comes(ring.sample_at(at, kLength), key);
  }
  void begin_drain(bool is_flush = true) {
    judge->begin_drain();
    order.begin_run(is_flush);
    if (!is_flush) order.note_clock(kClock);
  }
  void end_drain(std::uint64_t tail) {
    ring.page.data_tail = tail;
    judge->end_drain(std::nullopt);
  }
  std::string found() const { return in_words(judge->violation()); }

  oracle::HandRing ring;
  MergeOrder order{kSlack};
  std::vector<std::uint64_t> keys;
  std::uint64_t now = 0;
  std::unique_ptr<MergeJudge> judge = judge_of_merge(
      ring.page, Bytes{ring.data}, ring.ledger, order,
      {[this] { return now; },
       [this](std::uint64_t sequence) { return keys.at(static_cast<std::size_t>(sequence)); }});
};

class MergeJudgeTest : public ::testing::Test, protected History {};

TEST_F(MergeJudgeTest, AFaultlessHistoryHolds) {
  now = 100;
  refuse();
  const std::uint64_t first = write(70, /*lost=*/1);
  const std::uint64_t second = write(60);
  EXPECT_TRUE(judge->has_undelivered());
  EXPECT_EQ(judge->end_of_oldest(), first + 56);
  EXPECT_EQ(judge->newest_key(), 60U);
  EXPECT_EQ(order.longest_delay(), 40U);
  begin_drain();
  sample_comes(second, 60);
  comes(Lost{1}, 70);
  end_drain(first + 24);
  begin_drain();
  sample_comes(first + 24, 70);
  end_drain(second + 32);
  EXPECT_FALSE(judge->has_undelivered());
  EXPECT_EQ(judge->end_of_oldest(), std::nullopt);
  judge->settle();
  EXPECT_EQ(found(), "holds");
  EXPECT_EQ(judge->released(), second + 32);
  EXPECT_EQ(judge->received().delivered, 2U);
  EXPECT_EQ(judge->received().lost, 1U);
  EXPECT_EQ(judge->received().bytes, 88U);
}

// The tail must be exactly where the delivered events end; here it is off by a record or a LOST.
TEST_F(MergeJudgeTest, ATailThatIsNotWhereTheEventsEndIsAViolation) {
  const auto found_with = [](std::size_t delivered, std::uint64_t tail) {
    History own;
    own.refuse();
    const std::array at{own.write(1, /*lost=*/1), own.write(2), own.write(3)};
    own.begin_drain();
    if (delivered > 0) own.comes(Lost{1}, 1);
    if (delivered > 1) own.sample_comes(at[0] + 24, 1);
    for (std::size_t i = 1; i + 1 < delivered; ++i) own.sample_comes(at[i], i + 1);
    own.end_drain(tail);
    return own.found();
  };
  const std::array<std::uint64_t, 5> ends{0, 24, 56, 88, 120};
  for (std::size_t delivered = 0; delivered < ends.size(); ++delivered) {
    for (const std::uint64_t tail : {0U, 8U, 24U, 48U, 56U, 64U, 88U, 112U, 120U, 128U}) {
      const std::string verdict = found_with(delivered, tail);
      if (tail == ends[delivered]) {
        EXPECT_EQ(verdict, "holds") << delivered;
      } else {
        EXPECT_THAT(verdict, HasSubstr("tail_honest: data_tail is"))
            << delivered << " and " << tail;
        const bool is_past = delivered + 1 < ends.size() && tail > ends[delivered];
        EXPECT_EQ(verdict.find(", past stream 0 sequence") != verdict.npos, is_past) << verdict;
      }
    }
  }
}

TEST_F(MergeJudgeTest, ATailThatMovesBetweenRunsIsAViolation) {
  write(1);
  ring.page.data_tail = 32;
  begin_drain();
  EXPECT_EQ(found(), "tail_honest: data_tail went from 0 to 32 outside any run");
}

TEST_F(MergeJudgeTest, ATailThatMovesWithinARunIsAViolation) {
  write(1);
  begin_drain();
  ring.page.data_tail = 32;
  sample_comes(0, 1);
  EXPECT_THAT(found(), HasSubstr("tail_honest: data_tail went from 0 to 32 while events"));
}

TEST_F(MergeJudgeTest, AnEventOutsideAnyRunIsAViolation) {
  write(1);
  sample_comes(0, 1);
  EXPECT_EQ(found(), "once: an event was delivered outside any run");
}

TEST_F(MergeJudgeTest, AMalformedIsAViolation) {
  write(1);
  begin_drain();
  comes(Malformed{Defect::BadSize, Bytes{ring.data}.first(16), {}}, 1);
  EXPECT_THAT(found(), HasSubstr("intact: BadSize of 16 bytes"));
}

TEST_F(MergeJudgeTest, ARecordThatComesTwiceIsAViolation) {
  write(1);
  write(2);
  begin_drain();
  sample_comes(0, 1);
  sample_comes(0, 1);
  EXPECT_THAT(found(),
              HasSubstr("once: stream 0 sequence 0 of 20 bytes was delivered, but was not due"));
}

TEST_F(MergeJudgeTest, AnUnpublishedRecordIsNotDue) {
  keys = {1, 2};
  ring.ledger.note_publication(0);
  ring.write(kLength);
  judge->note_publication();
  EXPECT_FALSE(judge->has_undelivered());
  begin_drain();
  sample_comes(0, 1);
  EXPECT_THAT(found(), HasSubstr("once: "));
}

TEST_F(MergeJudgeTest, BytesThatNobodyWroteAreAViolation) {
  write(1);
  begin_drain();
  comes(ring.slices(100, 12), 1);
  EXPECT_EQ(found(), "no_invention: a sample of 12 bytes that nobody wrote");
  History other;
  other.write(1);
  other.begin_drain();
  oracle::fill({other.ring.data.data() + 100, 20}, {.sequence = 9, .stream = 0, .length = 20});
  other.ring.data[119] ^= std::byte{1};
  other.comes(other.ring.slices(100, 20), 1);
  EXPECT_EQ(other.found(), "no_invention: a sample of 20 bytes that nobody wrote");
}

TEST_F(MergeJudgeTest, OtherBytesAreAViolation) {
  write(1);
  ring.data[12 + 19] ^= std::byte{1};
  begin_drain();
  sample_comes(0, 1);
  EXPECT_THAT(found(), HasSubstr("intact: stream 0 sequence 0"));
}

TEST_F(MergeJudgeTest, AnotherPlaceIsAViolation) {
  write(1);
  std::array<std::byte, 20> copy;
  std::copy_n(ring.data.begin() + 12, copy.size(), copy.begin());
  begin_drain();
  comes(Sample{Bytes{copy}, {}}, 1);
  EXPECT_THAT(found(), HasSubstr("from a place other than where it was written"));
}

TEST_F(MergeJudgeTest, AnOverwrittenEventIsAViolation) {
  write(1);
  begin_drain();
  const Sample sample = ring.sample_at(0, kLength);
  const Ordered event{0, 1, false, sample};
  order.event = &event;
  judge->check_delivery(sample);
  ring.data[12 + 3] ^= std::byte{1};
  judge->check_finished(sample);
  EXPECT_THAT(found(), HasSubstr("no_early_release: "));
}

TEST_F(MergeJudgeTest, ALostOfAnotherCountOrKeyIsAViolation) {
  for (const std::pair<std::uint64_t, std::uint64_t>& each :
       {std::pair<std::uint64_t, std::uint64_t>{2, 1}, {1, 2}, {(1ULL << 32) + 1, 1}}) {
    History own;
    own.refuse();
    own.write(1, /*lost=*/1);
    own.begin_drain();
    own.comes(Lost{each.first}, each.second);
    EXPECT_THAT(own.found(), HasSubstr("no_loss: an unexpected LOST of"));
  }
}

TEST_F(MergeJudgeTest, ALostThatComesTwiceIsAViolation) {
  refuse();
  write(1, /*lost=*/1);
  begin_drain();
  comes(Lost{1}, 1);
  comes(Lost{1}, 1);
  EXPECT_THAT(found(), HasSubstr("no_loss: an unexpected LOST of 1 with the key 1"));
}

TEST_F(MergeJudgeTest, AnEventOrderedByAnotherKeyIsAViolation) {
  write(5);
  begin_drain();
  sample_comes(0, 6);
  EXPECT_THAT(found(), HasSubstr("merged: stream 0 sequence 0 of 20 bytes was ordered by 6"));
}

TEST_F(MergeJudgeTest, TheOrdersViolationNamesTheEvent) {
  write(kClock);
  begin_drain(/*is_flush=*/false);
  sample_comes(0, kClock);
  EXPECT_THAT(found(), HasSubstr("merged: stream 0 sequence 0 of 20 bytes was delivered with the"));
}

TEST_F(MergeJudgeTest, ARecordLeftAtTheEndIsAViolation) {
  write(1);
  judge->settle();
  EXPECT_THAT(found(), HasSubstr("no_loss: 1 records were not delivered, the first of them"));
}

TEST_F(MergeJudgeTest, LossesThatNobodyReportedAreAViolation) {
  refuse();
  write(1, /*lost=*/1);
  begin_drain();
  sample_comes(24, 1);
  end_drain(0);
  EXPECT_EQ(found(), "holds") << "its LOST is due";
  judge->settle();
  EXPECT_THAT(found(), HasSubstr("no_loss: 1 records were not delivered"));
}

TEST_F(MergeJudgeTest, LossesSinceTheLastRecordNeedNoLost) {
  refuse();
  judge->settle();
  EXPECT_EQ(found(), "holds");
}

// Only [data_tail, data_head) may be read, and no other byte.
TEST_F(MergeJudgeTest, OnlyUnreadBytesMayBeRead) {
  const auto reads = [](std::ptrdiff_t offset, std::size_t size) {
    History own;
    own.write(1);
    own.write(2);
    own.begin_drain();
    own.sample_comes(0, 1);
    own.end_drain(32);
    own.begin_drain();
    own.judge->check_read(own.ring.data.data() + offset, size);
    return own.found();
  };
  EXPECT_EQ(reads(32, 32), "holds");
  EXPECT_EQ(reads(63, 1), "holds");
  for (const auto& [offset, size] : {std::pair<std::ptrdiff_t, std::size_t>{31, 1},
                                     {24, 16},
                                     {63, 2},
                                     {64, 1},
                                     {32, 33},
                                     {-8, 8},
                                     {4095, 2},
                                     {4096, 1}}) {
    EXPECT_THAT(reads(offset, size), HasSubstr("in_ring: ")) << offset << " " << size;
  }
}

TEST_F(MergeJudgeTest, BytesAcrossTheRingsEndMayBeRead) {
  for (int i = 0; i < 127; ++i) {
    const std::uint64_t at = write(1);
    begin_drain();
    sample_comes(at, 1);
    end_drain(at + 32);
  }
  const std::uint64_t last = write(1);
  write(1);
  judge->check_read(ring.data.data() + last % 4096, 32);
  judge->check_read(ring.data.data(), 32);
  EXPECT_EQ(found(), "holds");
  judge->check_read(ring.data.data() + 32, 1);
  EXPECT_THAT(found(), HasSubstr("in_ring: "));
}

// What a merge must have released by now: events older than the clock, below the bound, and among
// the first that it sorts.
TEST_F(MergeJudgeTest, NothingDueIsHeldBack) {
  EXPECT_EQ(judge->held_back_key(100, 100), std::nullopt) << "there is nothing";
  now = 50;
  write(40);
  EXPECT_EQ(judge->held_back_key(51, 41), 40U);
  EXPECT_EQ(judge->held_back_key(51, 40), std::nullopt) << "it is at the bound";
  EXPECT_EQ(judge->held_back_key(50, 41), std::nullopt) << "it is as old as the clock";
  EXPECT_EQ(judge->held_back_key(49, 41), std::nullopt);
  now = 60;
  write(30);
  EXPECT_EQ(judge->held_back_key(60, 40), std::nullopt) << "the second is younger";
  EXPECT_EQ(judge->held_back_key(61, 40), 30U) << "the first is above the bound";
  EXPECT_EQ(judge->held_back_key(61, 41), 40U);
}

TEST_F(MergeJudgeTest, WhatTheWindowDoesNotReachMayWait) {
  constexpr std::uint64_t kHigh = 500;
  for (std::size_t before = 0; before < kMergeWindow; ++before) {
    EXPECT_EQ(judge->held_back_key(1, kHigh), std::nullopt) << before;
    write(kHigh);
  }
  write(7);
  EXPECT_EQ(judge->held_back_key(1, kHigh), std::nullopt) << "eight are sorted before it";
  begin_drain();
  sample_comes(0, kHigh);
  EXPECT_EQ(judge->held_back_key(1, kHigh), 7U) << "seven are";
}

TEST_F(MergeJudgeTest, ALostIsOneOfTheWindowsEvents) {
  refuse();
  constexpr std::uint64_t kHigh = 500;
  write(kHigh, /*lost=*/1);
  for (std::size_t i = 2; i + 1 < kMergeWindow; ++i) write(kHigh);
  write(7);
  EXPECT_EQ(judge->held_back_key(1, kHigh), 7U) << "seven are sorted before it";
  write(6);
  EXPECT_EQ(judge->held_back_key(1, 7), std::nullopt) << "eight are sorted before the second";
}

// A late event is excused if at least kMergeWindow earlier events of its ring have higher keys.
TEST_F(MergeJudgeTest, AnEventIsLateOnlyAfterAWindowOfHigherKeys) {
  const auto late_after = [](std::size_t higher) {
    History own;
    for (std::size_t i = 0; i < higher; ++i) own.write(500);
    const std::uint64_t at = own.write(7);
    own.begin_drain();
    for (std::size_t i = 0; i < higher; ++i) own.sample_comes(32 * i, 500);
    own.comes(own.ring.sample_at(at, kLength), 7, /*late=*/true);
    return own.found();
  };
  EXPECT_THAT(late_after(kMergeWindow - 1), HasSubstr("late: stream 0 sequence 7"));
  EXPECT_EQ(late_after(kMergeWindow), "holds");
  write(500);
  for (std::size_t i = 0; i < kMergeWindow; ++i) write(7);
  begin_drain();
  sample_comes(0, 500);
  comes(ring.sample_at(32 * kMergeWindow, kLength), 7, /*late=*/true);
  EXPECT_THAT(found(), HasSubstr("late: stream 0 sequence 8")) << "equal keys displace nothing";
}

}  // namespace
}  // namespace perfring::simulator
