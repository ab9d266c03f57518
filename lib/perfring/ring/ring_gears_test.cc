// The drain takes sound samples in runs, and all other records one by one. Any gear delivers the
// records of the ring: runs of every length and size, broken off by any other record, by the ring's
// end, by a callback that breaks or throws.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::copy;
using testing::drain;
using testing::KnownRing;
using testing::payload;
using testing::ring_over;

constexpr std::size_t kSize = 65536;

void expect_all_delivered(KnownRing& known) {
  ASSERT_EQ(drain(ring_over(known)), known.expected());
  ASSERT_EQ(known.page().data_tail, known.fake().head());
}

TEST(RingGearsTest, TheRingsEndMayFallAnywhereInARunOfAnySize) {
  KnownRing known{kSize};
  for (const std::size_t size : {16U, 24U, 32U, 48U, 104U, 264U}) {
    for (unsigned before = 0; before <= 20; ++before) {
      for (std::uint64_t into = 0; into < size; into += 8) {
        known.restart(kSize - before * size - into);
        for (unsigned i = 0; i < 36; ++i) known.sample(payload(size - 12, i));
        expect_all_delivered(known);
        ASSERT_FALSE(HasFatalFailure())
            << before << " records of " << size << " and " << into << " bytes before the end";
      }
    }
  }
}

// Two sizes alternate, `first` records of one and `second` of the other.
TEST(RingGearsTest, RunsMayBeOfAnyLength) {
  KnownRing known{kSize};
  for (unsigned first = 1; first <= 20; ++first) {
    for (unsigned second = 1; second <= 20; ++second) {
      known.restart(kSize - 24 * first);
      for (unsigned i = 0; i < 4 * (first + second); ++i) {
        known.sample(payload(i % (first + second) < first ? 12 : 20, i));
      }
      expect_all_delivered(known);
      ASSERT_FALSE(HasFatalFailure()) << "runs of " << first << " and " << second;
    }
  }
}

// misc tells whether the kernel or user space was interrupted, and may differ between records.
TEST(RingGearsTest, MiscIsNotLookedAt) {
  KnownRing known{kSize, kSize - 600};
  for (unsigned i = 0; i < 60; ++i) {
    const std::uint64_t at = known.fake().head();
    if (i % 20 == 19) {
      known.lost(i);
    } else {
      known.sample(payload(12, i));
    }
    const auto misc = static_cast<std::uint16_t>(i < 25 ? 0xffff : i * 257);
    known.fake().put(at + offsetof(perf_event_header, misc), &misc, sizeof(misc));
  }
  expect_all_delivered(known);
}

// Every size that a header can state, for records with a small payload.
TEST(RingGearsTest, DeliversRecordsOfEveryPossibleSize) {
  KnownRing known{2 * kSize};
  for (std::size_t size = 16; size <= 65528; size += 8) {
    known.restart(2 * kSize - 40);
    known.sample(payload(4), 16);
    known.sample(payload(4), size);
    known.sample(payload(4), 16);
    expect_all_delivered(known);
    ASSERT_FALSE(HasFatalFailure()) << size;
  }
}

// Within a run of samples with the same header, one states a smaller, or too large, raw size.
TEST(RingGearsTest, EachRawSizeOfARunIsItsOwn) {
  KnownRing known{kSize};
  for (unsigned run = 0; run <= 20; ++run) {
    for (std::uint32_t raw = 0; raw <= 30; ++raw) {
      known.restart(0);
      for (unsigned i = 0; i < run; ++i) known.sample(payload(12, i), 24);
      if (raw <= 12) {
        known.sample(payload(raw, run), 24);
      } else {
        known.bad_raw(raw, 24);
      }
      for (unsigned i = 0; i < 20; ++i) known.sample(payload(12, i), 24);
      expect_all_delivered(known);
      ASSERT_FALSE(HasFatalFailure()) << "raw size " << raw << " after " << run << " records";
    }
  }
}

// Counts the loads from a ring, which show the gear that took a record.
struct CountingMemory : DefaultMemory {
  static inline std::size_t headers;
  static inline std::size_t raws;

  template <class T>
  static T read(const std::byte* address) {
    ++(sizeof(T) == 8 ? headers : raws);
    return DefaultMemory::read<T>(address);
  }
};

struct Loads {
  std::size_t ahead = 0;  // events delivered after the next record's header had been loaded
  std::size_t again = 0;  // raw sizes loaded twice: guesses that failed
};

Loads drain_counting(KnownRing& known) {
  Loads loads;
  CountingMemory::headers = CountingMemory::raws = 0;
  std::size_t events = 0;
  std::size_t before = 1;  // data_tail is loaded like a header
  Ring<CountingMemory>::over(known.page(), known.fake().data())->for_each([&](const PerfEvent&) {
    loads.ahead += CountingMemory::headers > before + ++events;
  });
  loads.again = CountingMemory::raws - events;
  return loads;
}

// The first of a run is chased; then the drain loads two headers before it delivers the first of
// the two samples.
TEST(RingGearsTest, ARunOfSamplesIsReadTwoAtATime) {
  KnownRing known{kSize};
  for (const std::size_t size : {16U, 24U, 104U}) {
    for (const auto misc : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{0xffff}}) {
      for (unsigned count = 1; count <= 100; ++count) {
        known.restart(0);
        for (unsigned i = 0; i < count; ++i) {
          known.sample(payload(size - 12, i));
          known.fake().put(i * size + offsetof(perf_event_header, misc), &misc, sizeof(misc));
        }
        const Loads loads = drain_counting(known);
        ASSERT_EQ(loads.ahead, (count - 1) / 2) << count << " of " << size << ", misc " << misc;
        ASSERT_EQ(loads.again, 0U);
      }
    }
  }
}

// Writes `run` samples that fill their records and then one that does not, under the same header,
// repeatedly.
void write_runs(KnownRing& known, std::size_t run, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    known.sample(payload(i % (run + 1) == run ? 11 : 12), 24);
  }
}

TEST(RingGearsTest, GuessesThatDoNotPayBecomeRareButAreStillTried) {
  KnownRing known{1 << 20};
  for (std::size_t run = 0; run <= 7; ++run) {
    known.restart(0);
    write_runs(known, run, 40000);
    const Loads loads = drain_counting(known);
    // Guesses are 1, 2, 4 ... 256 records apart, and then 256 each.
    EXPECT_GE(loads.again, 40000U / 300) << run;
    EXPECT_LE(loads.again, 40000U / 256 + 10) << run;
  }
}

TEST(RingGearsTest, GuessesThatDoNotPayStayRareBesideOtherRecords) {
  KnownRing known{1 << 20};
  for (unsigned i = 0; i < 5000; ++i) {
    write_runs(known, 0, 2);
    known.lost(i);
  }
  // A LOST has no raw size, so drain_counting() counts it as -1.
  EXPECT_LE(drain_counting(known).again + 5000, 10U);
}

TEST(RingGearsTest, SuccessfulGuessesAreRepeatedAtOnce) {
  KnownRing known{1 << 20};
  for (const std::size_t run : {8U, 9U, 30U}) {
    known.restart(0);
    write_runs(known, 0, 600);
    known.sample(payload(12), 24);
    for (unsigned i = 0; i < 600; ++i) known.sample(payload(12), 24);
    write_runs(known, run, 20000);
    EXPECT_GE(drain_counting(known).ahead, 20000 / (run + 1) * (run / 2)) << run;
  }
}

// Writes long and short runs, straddling records, LOST, and every record that is skipped.
void write_some_of_everything(KnownRing& known) {
  for (unsigned i = 0; i < 21; ++i) known.sample(payload(12, i));
  known.lost(1);
  for (unsigned i = 0; i < 3; ++i) known.sample(payload(4, i));
  known.bad(Defect::BadSample, PERF_RECORD_SAMPLE, 8);
  for (unsigned i = 0; i < 14; ++i) known.sample(payload(36, i));
  known.bad_raw(100, 48);
  known.bad(Defect::UnexpectedType, PERF_RECORD_COMM, 40);
  for (unsigned i = 0; i < 10; ++i) known.sample(payload(20, i));
  known.bad(Defect::BadLost, PERF_RECORD_LOST, 16);
  known.lost(2, 48);
  for (unsigned i = 0; i < 9; ++i) known.sample(payload(12, i));
}

class RingGearsResumedTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  RingGearsResumedTest() { write_some_of_everything(known_); }
  KnownRing known_{kSize, GetParam()};
};

// The ring's end is nowhere, in a run, in the LOST, in the malformed records, in the last run.
INSTANTIATE_TEST_SUITE_P(Starts, RingGearsResumedTest,
                         ::testing::Values(0, kSize - 256, kSize - 520, kSize - 592, kSize - 1288,
                                           kSize - 1336, kSize - 1600, kSize - 1880));

TEST_P(RingGearsResumedTest, DrainsThatBreakEarlyDeliverEverything) {
  for (std::size_t few = 1; few <= 24; ++few) {
    known_.page().data_tail = GetParam();
    std::vector<CopiedEvent> delivered;
    while (known_.page().data_tail != known_.page().data_head) {
      for (CopiedEvent& each : drain(ring_over(known_), few - 1))
        delivered.push_back(std::move(each));
      ASSERT_EQ(known_.page().data_tail, known_.ends().at(delivered.size() - 1));
    }
    ASSERT_EQ(delivered, known_.expected()) << few << " at a time";
  }
}

TEST_P(RingGearsResumedTest, DrainsThatThrowEarlyDeliverEverything) {
  for (std::size_t few = 1; few <= 24; ++few) {
    known_.page().data_tail = GetParam();
    std::vector<CopiedEvent> delivered;
    while (known_.page().data_tail != known_.page().data_head) {
      std::size_t count = 0;
      try {
        ring_over(known_).for_each([&](const PerfEvent& event) {
          delivered.push_back(copy(event));
          if (++count == few) throw std::runtime_error{"enough"};
        });
      } catch (const std::runtime_error&) {
      }
      ASSERT_EQ(known_.page().data_tail, known_.ends().at(delivered.size() - 1));
    }
    ASSERT_EQ(delivered, known_.expected()) << few << " at a time";
  }
}

}  // namespace
}  // namespace perfring
