#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/kernel/sample.h"
#include "harness/oracle/ledger.h"
#include "harness/stress/processes.h"
#include "harness/stress/run.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/stress_consumer.h"
#include "harness/stress/stress_producer.h"
#include "harness/stress/stress_testing.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"

namespace perfring::stress {
namespace {

int output(kernel::HardwareCpu& cpu, const StressRing& ring, std::size_t length) {
  const std::vector<std::byte> payload(length);
  kernel::perf_sample_data data;
  kernel::perf_sample_save_raw_data(data, ring.event(), payload);
  return kernel::perf_event_output(cpu, ring.event(), data);
}

TEST(LongestPayloadTest, IsTheLargestThatFitsAfterALost) {
  for (const std::size_t pages : {1U, 2U, 8U}) {
    Setting setting;
    setting.ring.pages = pages;
    const StressRing ring{setting};
    kernel::HardwareCpu cpu;
    const std::size_t longest = longest_payload(ring_size(setting));
    ASSERT_EQ(output(cpu, ring, longest), 0);
    ASSERT_EQ(output(cpu, ring, longest), -ENOSPC);
    ring.page().data_tail = ring.page().data_head;
    ASSERT_EQ(output(cpu, ring, longest + 1), -ENOSPC);
    EXPECT_EQ(output(cpu, ring, longest), 0);
  }
}

TEST(DrawSettingTest, CoversEveryCrossingOfBothWordSizes) {
  Random random{1};
  std::set<std::uint64_t> crossings;
  for (int i = 0; i < 1000; ++i) {
    const Setting setting = draw(random, 0);
    const bool wide = setting.ring.word == kernel::Word::k64;
    ASSERT_EQ(setting.ring.start % 8, 0U);
    // A few laps later, which multiple of 2^32 is the position in?
    const std::uint64_t on = setting.ring.start + 8 * ring_size(setting);
    if (setting.ring.start >> 32 != on >> 32) crossings.insert((on >> 32) + (wide ? 10 : 0));
    ASSERT_TRUE(wide || setting.ring.start >> 32 == 0);
    ASSERT_LE(setting.payload_max, longest_payload(ring_size(setting)));
    ASSERT_TRUE(setting.ring.pages == 1 || setting.ring.pages == 2);
    ASSERT_GE(setting.levels, 1U);
    ASSERT_LE(setting.levels, kLevelsMax);
  }
  // 32-bit past 2^32; 64-bit past 2^64, and past 2^32.
  EXPECT_EQ(crossings, (std::set<std::uint64_t>{1, 10, 11}));
}

TEST(DrawSettingTest, TheSameSeedDrawsTheSameSettings) {
  Random one{5};
  Random two{5};
  for (int i = 0; i < 100; ++i) {
    const Setting setting = draw(one, 0);
    const Setting again = draw(two, 0);
    EXPECT_EQ(describe(setting), describe(again));
    EXPECT_EQ(setting.seed, again.seed);
  }
}

// This is why a round of sleepers with nested writers has a short timeout: the kernel itself loses
// a wakeup there, and only there.
// An interrupt comes at one step of the outer output, counted from 1, and outputs too.
struct InterruptedAt : kernel::HardwareCpu {
  const StressRing* ring = nullptr;
  unsigned at = 0;
  unsigned steps = 0;

  int output() {
    const std::vector<std::byte> payload(64);
    kernel::perf_sample_data data;
    kernel::perf_sample_save_raw_data(data, ring->event(), payload);
    return kernel::perf_event_output(*this, ring->event(), data);
  }
  void step() {
    if (++steps == at) output();
  }
};

// Three outputs of 80 bytes. The third interrupts the second at step `at`; the second passes the
// watermark. Returns whether a sleeper is woken, or nullopt if the output has fewer steps.
std::optional<bool> woken(unsigned at) {
  const StressRing ring{Setting{.ring = {.watermark = true, .wakeup = 150}}};
  InterruptedAt cpu;
  cpu.ring = &ring;
  cpu.output();
  cpu.steps = 0;
  cpu.at = at;
  cpu.output();
  if (cpu.steps < at) return std::nullopt;
  EXPECT_EQ(ring.page().data_head, 3 * 80U);
  return kernel::perf_poll(ring.event()) != 0;
}

// Between nest++ and the read of rb->wakeup: the inner writer leaves the wakeup to the outer one,
// which does not see the change.
TEST(LostWakeupTest, AWakeupIsLostOnlyIfEarnedInsideGetHandle) {
  constexpr unsigned kAfterNestIsCounted = 3;
  unsigned at = 1;
  for (; woken(at).has_value(); ++at) {
    EXPECT_EQ(*woken(at), at != kAfterNestIsCounted) << "at step " << at;
  }
  EXPECT_GT(at, 10U);
}

// The totals that data_head shows for a log with reservations of 24 bytes each.
oracle::Totals totals_at(const Setting& setting, std::uint64_t reserved, std::uint64_t published) {
  const StressRing ring{setting};
  const SharedObject<FlightLog> log;
  for (std::uint64_t i = 1; i <= reserved; ++i)
    log->report(log->append(setting.ring.start + 24 * i), 2);
  ring.page().data_head = setting.ring.start + 24 * published;
  if (setting.ring.word == kernel::Word::k32) ring.page().data_head &= 0xffff'ffff;
  return published_totals(*log.get(), ring);
}

TEST(PublishedTotalsTest, RecordsBelowDataHeadAreAccepted) {
  Setting setting;
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{0xffff'fff8}}) {
    for (const auto word : {kernel::Word::k32, kernel::Word::k64}) {
      setting.ring.start = start;
      setting.ring.word = word;
      EXPECT_EQ(totals_at(setting, 0, 0).accepted, 0U);
      EXPECT_EQ(totals_at(setting, 3, 0).accepted, 0U);
      EXPECT_EQ(totals_at(setting, 3, 2).accepted, 2U);
      EXPECT_EQ(totals_at(setting, 3, 2).lost, 4U);
      EXPECT_EQ(totals_at(setting, 20'000, 20'000).accepted, 20'000U);
      EXPECT_EQ(totals_at(setting, 20'000, 19'999).accepted, 19'999U);
    }
  }
}

// An outer writer writes its LOST after the writers that interrupted it have ended, but the LOST is
// before their records.
TEST(PublishedTotalsTest, LossesAreCountedInTheRingsOrder) {
  const StressRing ring{Setting{}};
  const SharedObject<FlightLog> log;
  const std::uint64_t outer = log->append(24);
  log->report(log->append(48), 5);
  log->append(72);
  log->report(outer, 2);
  const auto refused_below = [&](std::uint64_t head) {
    ring.page().data_head = head;
    return published_totals(*log.get(), ring).lost;
  };
  EXPECT_EQ(refused_below(24), 2U);
  EXPECT_EQ(refused_below(48), 7U);
  EXPECT_EQ(refused_below(72), 7U);
  log->report(log->append(96), 1);
  EXPECT_EQ(refused_below(96), 8U);
}

// A data_head that is not the end of a record accounts for no record.
TEST(PublishedTotalsTest, DataHeadInsideARecordAccountsForNothing) {
  Setting setting;
  const StressRing ring{setting};
  const SharedObject<FlightLog> log;
  log->append(24);
  ring.page().data_head = 16;
  EXPECT_EQ(published_totals(*log.get(), ring).accepted, 0U);
}

TEST(ProducerProcessTest, WritesUntilItIsKilled) {
  const StressRing ring{Setting{.payload_max = 64}};
  const SharedObject<FlightLog> log;
  ProducerProcess<kernel::HardwareCpu> producer{ring, log.get()};
  while (log->count.load() < 10) ::sched_yield();
  EXPECT_TRUE(producer.kill());
  const auto head = ring.page().data_head;
  EXPECT_GT(head, 0U);
  ::usleep(1000);
  EXPECT_EQ(ring.page().data_head, head);
}

// Finds as many events as the ring has bytes, on every drain. Counts the calls of readable().
struct Endless : faults::PositionsOf64Bits<DefaultMemory> {
  using PositionsOf64Bits::PositionsOf64Bits;
  static std::optional<Endless> over(perf_event_mmap_page& page, Bytes data) {
    return Endless{page, data};
  }
  bool readable() const {
    ++calls;
    return PositionsOf64Bits::readable();
  }
  static inline unsigned calls = 0;
};

TEST(StressConsumerTest, TheRestEndsWhereTheCheckerObjects) {
  Setting setting{.payload_max = 64};
  setting.ring.word = kernel::Word::k32;
  setting.ring.start = 0xffff'fff8;
  const StressRing ring{setting};
  StressProducer<> producer{ring};
  for (int i = 0; i < 3; ++i) ASSERT_EQ(producer.output(), 0);
  StressConsumer<Endless> consumer{ring};
  consumer.finish();
  EXPECT_TRUE(consumer.violation());
  EXPECT_LT(Endless::calls, 20U);
}

struct Death {
  std::uint64_t reservations;
  std::uint64_t data_head;
  bool operator==(const Death&) const = default;
};

Death death_after(std::uint64_t steps) {
  const StressRing ring{Setting{.levels = 2, .payload_max = 64, .seed = 3}};
  const SharedObject<FlightLog> log;
  ProducerProcess<kernel::HardwareCpu> producer{ring, log.get(), steps};
  const auto limit = Clock::now() + std::chrono::seconds{60};
  while (!log->dead && Clock::now() < limit) ::sched_yield();
  EXPECT_TRUE(log->dead) << "it lives";
  EXPECT_TRUE(producer.kill());
  return {log->count, ring.page().data_head};
}

// Always between the same two accesses, mostly within a record, whatever else the machine does.
TEST(ProducerProcessTest, WithStepsItDiesAtTheSameAccessEachTime) {
  unsigned in_record = 0;
  for (std::uint64_t steps = 1; steps <= 40; ++steps) {
    const Death death = death_after(steps);
    EXPECT_EQ(death, death_after(steps)) << steps;
    EXPECT_LE(death.reservations, 1 + steps / 8);
    if (HasFailure()) break;
    in_record += death.reservations > 0 && death.data_head == 0 ? 1U : 0U;
  }
  EXPECT_GT(in_record, 10U);
}

// Returns the first violation in the lives of such a producer, with such a consumer. On a busy
// machine many producers are killed before they have done anything, so the loop is limited by time.
template <class Base, class R = Ring<>>
std::string violation_of(unsigned levels = 1) {
  Random random{1};
  PartReport outcome;
  const auto limit = Clock::now() + std::chrono::seconds{200};
  while (outcome.holds() && Clock::now() < limit) {
    run_until_killed<Base, R>(Setting{.levels = levels, .payload_max = 64, .seed = random()},
                              random, outcome);
  }
  return outcome.holds() ? "" : outcome.violations.front();
}

// No consumer can notice that the ring was filled to its last byte.
TEST(ProducerLifeTest, AViolatedLedgerOfTheProducerIsAViolation) {
  EXPECT_THAT(violation_of<faults::SpaceOffBy8<kernel::HardwareCpu>>(),
              ::testing::HasSubstr("the producer's own ledger is violated"));
}

// With several writers, a consumer cannot tell which records are missing. Only the killed
// producer's log says what it had published.
TEST(ProducerLifeTest, APublishedRecordThatDidNotComeIsAViolation) {
  EXPECT_THAT((violation_of<kernel::HardwareCpu, DropsTheSecond>(/*levels=*/2)),
              ::testing::HasSubstr(" accepted, but "));
}

TEST(ProducerLifeTest, EachLifeIsCounted) {
  Random random{1};
  PartReport outcome;
  const auto limit = Clock::now() + std::chrono::seconds{200};
  unsigned lives = 0;
  while ((outcome.delivered == 0 || outcome.lost == 0 || outcome.killed_in_record == 0) &&
         outcome.holds() && Clock::now() < limit) {
    run_until_killed<kernel::HardwareCpu>(Setting{.payload_max = 64, .seed = random()}, random,
                                          outcome);
    ++lives;
  }
  EXPECT_TRUE(outcome.holds()) << outcome.violations.front();
  EXPECT_EQ(outcome.attempted, outcome.delivered + outcome.lost);
  EXPECT_GT(outcome.delivered, 0U) << lives;
  EXPECT_GT(outcome.lost, 0U) << lives;
  EXPECT_GT(outcome.killed_in_record, 0U) << lives;
}

struct Dies : kernel::HardwareCpu {
  void step() { ::_exit(0); }
};

TEST(ProducerLifeTest, AProducerThatDiesByItselfIsAViolation) {
  EXPECT_THAT(violation_of<Dies>(), ::testing::HasSubstr("the producer died without being killed"));
}

}  // namespace
}  // namespace perfring::stress
