// Checks the source that ships in every execution that the memory model allows: it holds, and
// without any one of its ordering edges it fails.

#include "harness/model/ring/ring_program.h"

#include <gtest/gtest.h>

#include <optional>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/trace.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"

namespace perfring::model {
namespace {

constexpr const char* kHolds = "holds";

std::string verdict(const Program& program, bool merge = true) {
  ExploreOptions how;
  how.merge = merge;
  const Result result = explore(program, how);
  if (!result.bound.empty()) return result.bound;
  return result.proved() ? kHolds : result.not_proved();
}

RingOptions three_records(RingOptions how) {
  how.records = 3;
  how.drains = 2;
  how.payloads = {4};
  return how;
}

// The parameter is true for form A (atomic words), false for form B.
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
    } else if (fault.shows_in == "ring/nested_before_5_2") {
      for (unsigned at = 1; at <= kStepsBefore52 && found == kHolds; ++at) {
        found = verdict(fault.make(nested_before_5_2(three_records(how), at)));
      }
    } else {
      found = verdict(fault.make(options_of(fault.shows_in, how)));
    }
    EXPECT_EQ(found, check != nullptr ? check : kHolds);
  }
};

TEST_P(RingProgramTest, SixRecordsWithThreeDrainsHaveNoViolation) {
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

// A LOST is as long as a record here, so that a position does not tell the losses before it.
TEST_P(RingProgramTest, CheckpointsAreTrueWhereALostIsAsLongAsARecord) {
  RingOptions how = options();
  how.payloads = {12};
  const Comparison comparison = compare_merged(ring_program<>(how));
  EXPECT_EQ(comparison.differences, std::vector<std::string>{});
  EXPECT_EQ(comparison.each.not_proved() + comparison.merged.not_proved(), "");
  EXPECT_GT(comparison.merged.merged, 0u);
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

// The interrupt arrives at each step of an output in turn.
TEST_P(RingProgramTest, ANestedWriterIsNoViolation) {
  unsigned at = 1;
  for (; at < 100; ++at) {
    const std::string result = verdict(ring_program<>(nested(three_records(options()), at)));
    if (result == "no_loss: attempted differs from delivered + lost") break;  // after the last step
    EXPECT_EQ(result, kHolds) << at;
  }
  EXPECT_EQ(at, kStepsOfAnOutput + 1);
}

TEST_P(RingProgramTest, ANestedWriterBeforeKernel52IsNoViolation) {
  for (unsigned at = 1; at <= kStepsBefore52; ++at) {
    const RingOptions how = nested_before_5_2(three_records(options()), at);
    EXPECT_EQ(verdict(ring_program<>(how)), kHolds) << at;
    EXPECT_EQ(verdict(ring_program<Puller<>>(how)), kHolds) << at << ", by a Cursor";
  }
}

// A write over unread words races with any reader.
TEST_P(RingProgramTest, ADrainOfOverwrittenWordsStaysInTheRing) {
  RingOptions how = options();
  how.oversize = true;
  EXPECT_EQ(verdict(ring_program<>(how)), GetParam() ? kHolds : kDataRace);
}

// S10: with an oversize record, a header can change between the check and the use of its size.
TEST(RingFaultsTest, AHeaderReadTwiceLeadsOutsideTheRing) {
  RingOptions how;
  how.oversize = true;
  EXPECT_EQ(verdict(find_ring_fault(ring_faults(), "header_read_twice")->make(how)),
            "in_ring: a record extends past data_head");
  how.oversize = false;
  EXPECT_EQ(verdict(find_ring_fault(ring_faults(), "header_read_twice")->make(how)), kHolds);
}

struct SkipsALap : ModelMemory {
  static void write_once(SharedPosition& field, SharedPosition value, Where where = Where::here()) {
    ModelMemory::write_once(field, value + ModelRing::here->size(), where);
  }
};

// Any events may be delivered here, so data_tail is not compared with the end of an event.
TEST(RingFaultsTest, FindsSkippedLapDespiteOverwriting) {
  RingOptions how;
  how.oversize = true;
  EXPECT_EQ(verdict(ring_program<Ring<SkipsALap>>(how)), "tail_honest: data_tail skips a lap");
}

// Replaces each event by one with a slice as long as the ring: the slice begins kFrom bytes after
// the ring's beginning, so it ends 8 bytes past the ring, or begins 8 bytes before it.
template <class Event, Bytes Event::* kSlice, int kFrom = 8>
class Oversteps : public Ring<ModelMemory> {
 public:
  explicit Oversteps(const Ring& ring) : Ring{ring} {}
  static std::optional<Oversteps> over(perf_event_mmap_page& page, Bytes data) {
    return Oversteps{*Ring::over(page, data)};
  }
  template <class F>
  void for_each(F f) {
    Ring::for_each([&](const PerfEvent&) {
      Event event{};
      event.*kSlice = Bytes{ModelRing::here->begin() + kFrom, ModelRing::here->size()};
      f(PerfEvent{event});
    });
  }
};

TEST(RingFaultsTest, FindsSliceOutsideRingDespiteOverwriting) {
  RingOptions how;
  how.oversize = true;
  const std::string found = "in_ring: a slice outside the ring";
  EXPECT_EQ(verdict(ring_program<Oversteps<Sample, &Sample::head>>(how)), found);
  EXPECT_EQ(verdict(ring_program<Oversteps<Sample, &Sample::tail>>(how)), found);
  EXPECT_EQ(verdict(ring_program<Oversteps<Malformed, &Malformed::head>>(how)), found);
  EXPECT_EQ(verdict(ring_program<Oversteps<Malformed, &Malformed::tail>>(how)), found);
  EXPECT_EQ(verdict(ring_program<Oversteps<Sample, &Sample::head, -8>>(how)), found);
}

// Delivers the same LOST forever; try_fold() delivers nothing.
struct Repeats : Ring<ModelMemory> {
  static std::optional<Repeats> over(perf_event_mmap_page& page, Bytes data) {
    return Repeats{*Ring::over(page, data)};
  }
  template <class F>
  void for_each(F f) {
    for (;;) f(PerfEvent{Lost{0}});
  }
  template <class Sum, class F>
  ControlFlow<Sum, Sum> try_fold(Sum sum, F) {
    return Continue{sum};
  }
};

TEST(RingFaultsTest, AConsumerThatNeverEndsOrNeverBeginsIsFound) {
  RingOptions how;
  EXPECT_EQ(verdict(ring_program<Repeats>(how)), kTooMany.text);
  how.consume = Consume::Break;
  how.oversize = true;  // the program does not compare lost with delivered events
  EXPECT_EQ(verdict(ring_program<Repeats>(how)), kUndelivered.text);
}

TEST_P(RingProgramTest, EachFaultIsFoundByTheCheckThatItNames) {
  for (const RingFault& fault : ring_faults()) expect_as_named(fault, options());
}

// Each drain looks twice, and holds a record from one look to the next.
class CursorProgramTest : public RingProgramTest {};

TEST_P(CursorProgramTest, SixRecordsWithSixLooksHaveNoViolation) {
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

// A record becomes malformed when the next one is handed out.
class OneAtATime : public Cursor<ModelMemory> {
 public:
  explicit OneAtATime(const Cursor& cursor) : Cursor{cursor} {}
  static std::optional<OneAtATime> over(perf_event_mmap_page& page, Bytes data) {
    return OneAtATime{*Cursor::over(page, data)};
  }
  class Record : public Cursor::Record {
   public:
    Record(const Cursor::Record& record, std::size_t number)
        : Cursor::Record{record}, number_{number} {}
    PerfEvent event() const {
      return number_ == handed_out ? Cursor::Record::event() : PerfEvent{Malformed{}};
    }

   private:
    std::size_t number_;
  };
  std::optional<Record> next() {
    const auto record = Cursor::next();
    if (!record) return std::nullopt;
    return Record{*record, ++handed_out};
  }

 private:
  static inline std::size_t handed_out = 0;
};

TEST(RingFaultsTest, ARecordThatChangesWhileItIsHeldIsFound) {
  EXPECT_EQ(verdict(ring_program<Puller<OneAtATime>>({})), "no_invention: a malformed record");
}

// Cursors that show a Puller's behavior: it releases the record that it held, and looks twice.
struct ReleasesNothing : Cursor<ModelMemory> {
  static std::optional<ReleasesNothing> over(perf_event_mmap_page& page, Bytes data) {
    return ReleasesNothing{*Cursor::over(page, data)};
  }
  template <class Position>
  void release(Position) {}
};
struct CannotLookTwice : Cursor<ModelMemory> {
  static std::optional<CannotLookTwice> over(perf_event_mmap_page& page, Bytes data) {
    return CannotLookTwice{*Cursor::over(page, data)};
  }
  std::size_t look() {
    check(++look_count_ < 2, std::string{"a second look"});
    return Cursor::look();
  }
  int look_count_ = 0;
};
TEST(RingFaultsTest, PullerReleasesRecordsAcrossTwoLooks) {
  RingOptions how;
  how.drains = 1;
  EXPECT_EQ(verdict(ring_program<Puller<ReleasesNothing>>(how)), kTailNotReleased.text);
  EXPECT_EQ(verdict(ring_program<Puller<CannotLookTwice>>(how)), "a second look");
}

// The next store depends on the outer output's read of data_tail, not on the interrupt's read.
TEST(ScriptedCpuTest, AnInterruptReturnsWithTheRegistersThatItFound) {
  ScriptedCpu<ModelCpu> cpu;
  cpu.position_read = 1, cpu.record_bytes = 24, cpu.tail_read = 48;
  cpu.steps = 2;
  unsigned interrupts = 0;
  cpu.interrupt = [&] {
    ++interrupts;
    cpu.position_read = 2, cpu.record_bytes = 16, cpu.tail_read = 64;
  };
  for (int i = 0; i < 3; ++i) cpu.step();
  EXPECT_EQ(interrupts, 1u);
  EXPECT_EQ(cpu.position_read, 1u);
  EXPECT_EQ(cpu.record_bytes, 24u);
  EXPECT_EQ(cpu.tail_read, 48u);
}

std::string form(const testing::TestParamInfo<bool>& atomic) {
  return atomic.param ? "A" : "B";
}
INSTANTIATE_TEST_SUITE_P(Words, RingProgramTest, testing::Bool(), form);
INSTANTIATE_TEST_SUITE_P(Words, CursorProgramTest, testing::Bool(), form);

}  // namespace
}  // namespace perfring::model
