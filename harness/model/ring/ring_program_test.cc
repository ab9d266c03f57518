// The source that ships, in every execution that the memory model allows: as it is it holds, and
// without any one of its edges it does not.

#include "harness/model/ring/ring_program.h"

#include <gtest/gtest.h>

#include "harness/model/engine/explorer.h"
#include "harness/model/ring/ring_faults.h"

namespace perfring::model {
namespace {

constexpr const char* kHolds = "holds";

std::string verdict(const Program& program, bool merge = true) {
  ExploreOptions how;
  how.merge = merge;
  const Result result = explore(program, how);
  if (!result.bound.empty()) return result.bound;
  return result.violation ? result.violation->cause.what : kHolds;
}

RingOptions three_records(RingOptions how) {
  how.records = 3;
  how.drains = 2;
  how.payloads = {4};
  return how;
}

// In form A words are atomic, in form B they are not.
class RingProgramTest : public testing::TestWithParam<bool> {
 protected:
  static RingOptions options() {
    RingOptions options;
    options.atomic_words = GetParam();
    return options;
  }

  static void expect_as_named(const RingFault& fault, RingOptions how) {
    SCOPED_TRACE(fault.name);
    const char* const check = GetParam() ? fault.in_a : fault.in_b;
    std::string found = kHolds;
    if (fault.shows_in == "ring/nested") {
      for (unsigned at = 1; at <= kStepsOfAnOutput && found == kHolds; ++at) {
        found = verdict(fault.make(nested(three_records(how), at)));
      }
    } else {
      found = verdict(fault.make(options_of(fault.shows_in, how)));
    }
    EXPECT_EQ(found, check != nullptr ? check : kHolds);
  }
};

TEST_P(RingProgramTest, SixRecordsAndThreeDrainsHaveNoViolation) {
  for (const auto consume :
       {Consume::ForEach, Consume::Fold, Consume::TryFold, Consume::Break, Consume::Throw}) {
    RingOptions how = options();
    how.consume = consume;
    EXPECT_EQ(verdict(ring_program<>(how)), kHolds);
  }
}

TEST_P(RingProgramTest, WithoutMergingThereIsNoViolation) {
  RingOptions how = options();
  how.records = 4;
  EXPECT_EQ(verdict(ring_program<>(how), false), kHolds);
}

TEST_P(RingProgramTest, TheWrapOfA32BitHeadIsNoViolation) {
  RingOptions how = options();
  how.word = kernel::Word::k32;
  how.start = 0xffff'ffe8;
  EXPECT_EQ(verdict(ring_program<>(how)), kHolds);
}

TEST_P(RingProgramTest, APayloadThatStraddlesTheEndIsNoViolation) {
  EXPECT_EQ(verdict(ring_program<>(options_of("ring/straddle", options()))), kHolds);
}

// The interrupt comes at each step of an output in turn.
TEST_P(RingProgramTest, ANestedWriterIsNoViolation) {
  unsigned at = 1;
  for (; at < 100; ++at) {
    const std::string seen = verdict(ring_program<>(nested(three_records(options()), at)));
    if (seen == "no_loss: attempted differs from delivered + lost") break;  // after the last step
    EXPECT_EQ(seen, kHolds) << at;
  }
  EXPECT_EQ(at, kStepsOfAnOutput + 1);
}

// Overwriting unread words is a race with any reader.
TEST_P(RingProgramTest, ADrainOfOverwrittenWordsStaysInTheRing) {
  RingOptions how = options();
  how.oversize = true;
  EXPECT_EQ(verdict(ring_program<>(how)), GetParam() ? kHolds : kDataRace);
}

// S10: the record can then be overwritten between the check and the use of its size.
TEST(RingFaultsTest, AHeaderReadTwiceLeadsOutsideTheRing) {
  RingOptions how;
  how.oversize = true;
  EXPECT_EQ(verdict(find_ring_fault(ring_faults(), "header_read_twice")->make(how)),
            "in_ring: a record is taken to end past data_head");
  how.oversize = false;
  EXPECT_EQ(verdict(find_ring_fault(ring_faults(), "header_read_twice")->make(how)), kHolds);
}

TEST_P(RingProgramTest, EachFaultIsFoundByTheCheckThatItNames) {
  for (const RingFault& fault : ring_faults()) expect_as_named(fault, options());
}

// Each of its drains looks twice, and holds a record from one look to the next.
class CursorProgramTest : public RingProgramTest {};

TEST_P(CursorProgramTest, SixRecordsAndSixLooksHaveNoViolation) {
  EXPECT_EQ(verdict(ring_program<Puller<>>(options())), kHolds);
}

TEST_P(CursorProgramTest, TheWrapOfA32BitHeadIsNoViolation) {
  RingOptions how = options();
  how.word = kernel::Word::k32;
  how.start = 0xffff'ffe8;
  EXPECT_EQ(verdict(ring_program<Puller<>>(how)), kHolds);
}

TEST_P(CursorProgramTest, ANestedWriterIsNoViolation) {
  for (unsigned at = 1; at <= kStepsOfAnOutput; ++at) {
    EXPECT_EQ(verdict(ring_program<Puller<>>(nested(three_records(options()), at))), kHolds) << at;
  }
}

TEST_P(CursorProgramTest, OverwrittenWordsLeadNowhereOutsideTheRing) {
  RingOptions how = options();
  how.oversize = true;
  EXPECT_EQ(verdict(ring_program<Puller<>>(how)), GetParam() ? kHolds : kDataRace);
}

TEST_P(CursorProgramTest, EachFaultIsFoundByTheCheckThatItNames) {
  for (const RingFault& fault : cursor_faults()) expect_as_named(fault, options());
}

std::string form(const testing::TestParamInfo<bool>& atomic) {
  return atomic.param ? "A" : "B";
}
INSTANTIATE_TEST_SUITE_P(Words, RingProgramTest, testing::Bool(), form);
INSTANTIATE_TEST_SUITE_P(Words, CursorProgramTest, testing::Bool(), form);

}  // namespace
}  // namespace perfring::model
