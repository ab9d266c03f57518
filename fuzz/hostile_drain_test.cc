#include "fuzz/hostile_drain.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fuzz/seed_file.h"
#include "harness/faults/consumer_faults.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/faults/memory_faults.h"
#include "harness/faults/planted.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/default_memory.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring::fuzz {
namespace {

std::string seed(const std::string& name) {
  return read_seed("fuzz/hostile_ring_seeds/" + name);
}

template <Memory M, class R = Ring<M>>
void drain(const std::string& name) {
  const std::string bytes = seed(name);
  const HostileRing ring{Input{bytes}};
  HostileDrain<M, R>{ring}.run();
}

// Faults that harness/faults does not have, each for one message of the target.

struct WritesTailTwice : CheckedMemory {
  static void write_once(SharedPosition& field, SharedPosition value) {
    CheckedMemory::write_once(field, value);
    CheckedMemory::write_once(field, value);
  }
};
struct MissesTheLast56Bytes : CheckedMemory {
  static Position read_once(const SharedPosition& field) {
    return CheckedMemory::read_once(field) - 56;
  }
};
template <class Number, Number from, Number to>
struct Mistakes : CheckedMemory {
  template <class T>
  static T read(const std::byte* address) {
    const T value = CheckedMemory::read<T>(address);
    if constexpr (sizeof(T) == sizeof(Number)) {
      if (value == from) return to;
    }
    return value;
  }
};
template <std::uint32_t from, std::uint32_t to>
struct MistakesType : CheckedMemory {
  template <class T>
  static T read(const std::byte* address) {
    const T value = CheckedMemory::read<T>(address);
    if constexpr (sizeof(T) == sizeof(perf_event_header)) {
      auto header = std::bit_cast<perf_event_header>(value);
      if (header.type != from || header.size == 0) return value;
      header.type = to;
      return std::bit_cast<T>(header);
    }
    return value;
  }
};

// Faults that a faulty Memory cannot cause.
template <class Faulty>
struct FaultyRing : Ring<CheckedMemory> {
  using Base = Ring<CheckedMemory>;
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{{*Base::over(page, data)}};
  }
};
struct CountsOneMore : FaultyRing<CountsOneMore> {
  template <class C, class F>
  C fold(C init, F f) {
    return Base::fold(init, f) + 1;
  }
};
struct ForgetsTheBreak : FaultyRing<ForgetsTheBreak> {
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    static_cast<void>(Base::try_fold(init, f));
    return Continue{};
  }
};
// Ends try_fold() after the first event; for_each() and fold() are complete.
struct EndsFoldsEarly : FaultyRing<EndsFoldsEarly> {
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    ControlFlow<> flow = Continue{};
    static_cast<void>(Base::try_fold(init, [&](Unit unit, const PerfEvent& event) -> ControlFlow<> {
      flow = f(unit, event);
      return Break{};
    }));
    return flow;
  }
};
struct ShiftsSamples : FaultyRing<ShiftsSamples> {
  template <class F>
  void for_each(F f) {
    Base::for_each([&f](const PerfEvent& event) {
      const Bytes head = std::get<Sample>(event).head;
      f(PerfEvent{Sample{{head.data() + 1, head.size()}, {}}});
    });
  }
};
struct IsAlwaysReadable : FaultyRing<IsAlwaysReadable> {
  bool readable() const { return true; }
};

TEST(HostileDrainTest, TheDrainHasNoViolation) {
  for (const char* name : {"three_samples", "breaks_twice", "lost_with_sample_id", "size_12"}) {
    drain<CheckedMemory>(name);
  }
}

// A Cursor that looks twice, and one that releases twice. Each breaks a rule.
struct LooksTwice : Cursor<CheckedMemory> {
  static std::optional<LooksTwice> over(perf_event_mmap_page& page, Bytes data) {
    return LooksTwice{*Cursor<CheckedMemory>::over(page, data)};
  }
  std::size_t look() {
    static_cast<void>(data_head());
    return Cursor<CheckedMemory>::look();
  }
};
struct ReleasesTwice : LooksTwice {
  static std::optional<ReleasesTwice> over(perf_event_mmap_page& page, Bytes data) {
    return ReleasesTwice{*LooksTwice::over(page, data)};
  }
  std::size_t look() { return Cursor<CheckedMemory>::look(); }
  void release() {
    release_bytes(8);
    Cursor<CheckedMemory>::release();
  }
};

TEST(HostileDrainTest, ACursorHasNoViolation) {
  for (const char* name : {"three_samples", "breaks_twice", "lost_with_sample_id", "size_12"}) {
    drain<CheckedMemory, testing::RingOverCursor<Cursor<CheckedMemory>>>(name);
  }
}

TEST(HostileDrainTest, AFaultyCursorIsAViolation) {
  EXPECT_DEATH((drain<CheckedMemory, testing::RingOverCursor<LooksTwice>>("three_samples")),
               "data_head was not read exactly once");
  EXPECT_DEATH((drain<CheckedMemory, testing::RingOverCursor<ReleasesTwice>>("three_samples")),
               "data_tail was written more than once");
}

TEST(HostileDrainTest, PositionsReadOrWrittenWronglyAreAViolation) {
  EXPECT_DEATH(drain<faults::HeadReadAgain<CheckedMemory>>("three_samples"),
               "data_head was not read exactly once");
  EXPECT_DEATH(drain<WritesTailTwice>("three_samples"), "data_tail was written more than once");
  EXPECT_DEATH(drain<faults::NeverCommits<CheckedMemory>>("three_samples"),
               "data_tail moved by 0 in a drain");
  EXPECT_DEATH(drain<faults::TailTooHigh<CheckedMemory>>("breaks_twice"),
               "data_tail is not the reference's");
}

TEST(HostileDrainTest, AReadOutsideTheUnreadBytesIsAViolation) {
  EXPECT_DEATH(drain<faults::Overreads<CheckedMemory>>("three_samples"), "in_ring: a read outside");
}

TEST(HostileDrainTest, AnEventUnlikeTheReferencesIsAViolation) {
  EXPECT_DEATH(drain<MissesTheLast56Bytes>("run_of_equal_headers"), "an event was not delivered");
  EXPECT_DEATH((drain<MistakesType<PERF_RECORD_LOST, PERF_RECORD_SAMPLE>>("lost_with_sample_id")),
               "a Sample that the reference does not have");
  EXPECT_DEATH((drain<MistakesType<PERF_RECORD_SAMPLE, PERF_RECORD_LOST>>("three_samples")),
               "a Lost that the reference does not have");
  EXPECT_DEATH((drain<Mistakes<std::uint64_t, 3, 4>>("lost_at_ring_end")),
               "a Lost that the reference does not have");
  EXPECT_DEATH((drain<MistakesType<PERF_RECORD_SAMPLE, 16>>("three_samples")),
               "a Malformed that the reference does not have");
  EXPECT_DEATH((drain<MistakesType<PERF_RECORD_LOST, 16>>("lost_too_short")), "or a different one");
  EXPECT_DEATH((drain<Mistakes<std::uint32_t, 12, 8>>("three_samples")), "other sizes");
}

// Allows a consumer to read data_head more than once, so that only its planted fault is found.
struct AnyHeadReads : CheckedMemory {
  static Position read_once(const SharedPosition& field) {
    static_cast<Accesses*>(observer)->head_reads = 1;
    return DefaultMemory::read_once(field);
  }
};

// The drain is to stop at a later event, or at the very event where the faulty one ends.
TEST(HostileDrainTest, ADrainThatEndsEarlyWithoutABreakIsAViolation) {
  using faults::TakesOneAtATime;
  const auto stopping_at = [](unsigned event) {
    std::string bytes = seed("three_samples");
    bytes[0] |= 1 << 5;
    bytes.insert(17, 1, static_cast<char>(event - 1));
    return bytes;
  };
  const auto run = []<class R = Ring<AnyHeadReads>>(const std::string& bytes) {
    const HostileRing ring{Input{bytes}};
    HostileDrain<AnyHeadReads, R>{ring}.run();
  };
  for (const unsigned event : {1U, 2U, 3U, 4U, 9U}) run(stopping_at(event));
  for (const unsigned event : {2U, 3U, 4U, 9U}) {
    EXPECT_DEATH(run.operator()<TakesOneAtATime<AnyHeadReads>>(stopping_at(event)),
                 "no_loss: an event was not delivered");
    EXPECT_DEATH(run.operator()<EndsFoldsEarly>(stopping_at(event)),
                 "no_loss: an event was not delivered");
  }
  EXPECT_DEATH(run.operator()<faults::CommitsAllOnBreak<AnyHeadReads>>(stopping_at(2)),
               "violated: ");
  EXPECT_DEATH(run.operator()<faults::RedeliversAfterBreak<AnyHeadReads>>(stopping_at(2)),
               "violated: ");
  EXPECT_DEATH(run.operator()<faults::IgnoresBreak<AnyHeadReads>>(stopping_at(2)), "violated: ");
}

TEST(HostileDrainTest, AWrongAnswerOfTheRingIsAViolation) {
  EXPECT_DEATH((drain<CheckedMemory, CountsOneMore>("breaks_once")), "fold's result");
  EXPECT_DEATH((drain<CheckedMemory, ForgetsTheBreak>("breaks_twice")), "try_fold's result");
  EXPECT_DEATH((drain<CheckedMemory, faults::IgnoresBreak<CheckedMemory>>("breaks_twice")),
               "try_fold's result");
  EXPECT_DEATH((drain<CheckedMemory, ShiftsSamples>("three_samples")), "another place");
  EXPECT_DEATH((drain<CheckedMemory, IsAlwaysReadable>("three_samples")), "readable\\(\\) after");
}

// A fault of a memory or of a consumer, planted in the target.
struct HostileFault {
  std::string name;
  void (*drain)(const HostileRing& ring);  // nullptr for a kernel's fault
};

std::vector<HostileFault> all_faults() {
  const auto of_a_kernel = []<template <class> class F>(faults::Named<F> fault) {
    return HostileFault{fault.name, nullptr};
  };
  const auto of_a_memory = []<template <class> class F>(faults::Named<F> fault) {
    return HostileFault{
        fault.name, [](const HostileRing& ring) { HostileDrain<F<CheckedMemory>>{ring}.run(); }};
  };
  const auto of_a_consumer = []<template <class> class F>(faults::Named<F> fault) {
    return HostileFault{fault.name, [](const HostileRing& ring) {
                          HostileDrain<AnyHeadReads, F<AnyHeadReads>>{ring}.run();
                        }};
  };
  auto all = faults::plant_all<HostileFault>(of_a_kernel, of_a_memory, of_a_consumer);
  std::erase_if(all, [](const HostileFault& fault) {
    const faults::Expected expected = faults::by_fuzzing(*faults::find_fault(fault.name));
    const auto* const reason = std::get_if<faults::Reason>(&expected);
    return reason != nullptr && is_not_planted(*reason);
  });
  return all;
}

class HostileFaultTest : public ::testing::TestWithParam<HostileFault> {};

// Checks the column "fuzz" of harness/faults/FAULTS.md.
TEST_P(HostileFaultTest, IsFoundAsTheCatalogueExpects) {
  const auto all_seeds = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{"fuzz/hostile_ring_seeds"}) {
      names.insert(entry.path().filename());
    }
    for (const std::string& name : names) {
      const std::string bytes = seed(name);
      const HostileRing ring{Input{bytes}};
      GetParam().drain(ring);
    }
    std::fputs("nothing\n", stderr);
    std::exit(0);
  };
  const faults::Expected expected = faults::by_fuzzing(*faults::find_fault(GetParam().name));
  if (is_found(expected)) {
    EXPECT_DEATH(all_seeds(), "violated: " + in_words(expected) + ": ");
  } else {
    EXPECT_EXIT(all_seeds(), ::testing::ExitedWithCode(0), "nothing") << in_words(expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileFaultTest, ::testing::ValuesIn(all_faults()),
                         [](const auto& named) { return named.param.name; });

// The expected bytes were converted by hand: type, misc, size, and the numbers in the body.
TEST(TurnRecordsTest, RecordsOfTheOtherByteOrderAreTheSame) {
  std::array<unsigned char, 56> bytes{9,   0,   0, 0, 1,  2, 16, 0, 4,  0, 0, 0, 'a', 'b',
                                      'c', 'd', 2, 0, 0,  0, 1,  2, 24, 0, 7, 6, 0,   0,
                                      0,   0,   0, 0, 3,  5, 0,  0, 0,  0, 0, 0, 9,   1,
                                      0,   0,   3, 4, 12, 0, 4,  0, 0,  0, 1, 2, 3,   4};
  const std::array<unsigned char, 56> turned{0,   0,   0, 9, 2, 1,  0, 16, 0, 0,  0, 4, 'a', 'b',
                                             'c', 'd', 0, 0, 0, 2,  2, 1,  0, 24, 0, 0, 0,   0,
                                             0,   0,   6, 7, 0, 0,  0, 0,  0, 0,  5, 3, 0,   0,
                                             1,   9,   4, 3, 0, 12, 4, 0,  0, 0,  1, 2, 3,   4};
  turn_records(std::as_writable_bytes(std::span{bytes}));
  EXPECT_EQ(bytes, turned);
}

// A seed that no longer shows its defect would leave the defect untested.
TEST(HostileRingSeedsTest, EachSeedShowsTheDefectThatItIsNamedFor) {
  const std::map<std::string, Defect> defects{{"size_0", Defect::BadSize},
                                              {"size_4", Defect::BadSize},
                                              {"size_12", Defect::BadSize},
                                              {"size_20", Defect::BadSize},
                                              {"size_past_head", Defect::BadSize},
                                              {"size_8", Defect::BadSample},
                                              {"raw_size_2_31", Defect::BadSample},
                                              {"raw_size_one_too_large", Defect::BadSample},
                                              {"oversize_65517", Defect::BadSize},
                                              {"oversize_65525", Defect::BadSample},
                                              {"oversize_65533", Defect::BadSample},
                                              {"lost_too_short", Defect::BadLost},
                                              {"unexpected_type", Defect::UnexpectedType},
                                              {"nothing_but_headers", Defect::UnexpectedType},
                                              {"tail_off_the_grid", Defect::BadPositions},
                                              {"head_off_the_grid", Defect::BadPositions},
                                              {"further_than_the_ring", Defect::BadPositions},
                                              {"further_than_2_gib", Defect::BadPositions},
                                              {"more_than_a_ring_behind", Defect::BadPositions},
                                              {"one_behind_off_the_grid", Defect::BadPositions}};
  for (const auto& [name, defect] : defects) {
    const std::string bytes = seed(name);
    const HostileRing ring{Input{bytes}};
    HostileMemory& memory = HostileMemory::of(ring.log2_pages);
    memory.write(ring);
    std::optional<Defect> first;
    Ring<>::over(memory.page(), memory.data())->for_each([&](const PerfEvent& event) {
      const auto* const bad = std::get_if<Malformed>(&event);
      if (bad != nullptr && !first) first = bad->defect;
    });
    memory.wipe(ring);
    EXPECT_EQ(first, defect) << name;
  }
}

}  // namespace
}  // namespace perfring::fuzz
