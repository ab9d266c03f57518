#include "harness/stress/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/faults/kernel_faults.h"

namespace perfring::stress {
namespace {

// The totals that data_head shows of reservations of 24 bytes that the log has.
oracle::Totals totals_at(const Setting& setting, std::uint64_t reserved, std::uint64_t published) {
  const StressRing ring{setting};
  const Shared<FlightLog> log;
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
      EXPECT_EQ(totals_at(setting, 3, 2).refused, 4U);
      EXPECT_EQ(totals_at(setting, 20'000, 20'000).accepted, 20'000U);
      EXPECT_EQ(totals_at(setting, 20'000, 19'999).accepted, 19'999U);
    }
  }
}

// An outer writer comes to its LOST when those that interrupted it have ended, and lies before
// them.
TEST(PublishedTotalsTest, LossesAreCountedInTheRingsOrder) {
  const StressRing ring{Setting{}};
  const Shared<FlightLog> log;
  const std::uint64_t outer = log->append(24);
  log->report(log->append(48), 5);
  log->append(72);
  log->report(outer, 2);
  const auto refused_below = [&](std::uint64_t head) {
    ring.page().data_head = head;
    return published_totals(*log.get(), ring).refused;
  };
  EXPECT_EQ(refused_below(24), 2U);
  EXPECT_EQ(refused_below(48), 7U);
  EXPECT_EQ(refused_below(72), 7U);
  log->report(log->append(96), 1);
  EXPECT_EQ(refused_below(96), 8U);
}

// A data_head that is no record's end accounts for nothing.
TEST(PublishedTotalsTest, DataHeadInsideARecordAccountsForNothing) {
  Setting setting;
  const StressRing ring{setting};
  const Shared<FlightLog> log;
  log->append(24);
  ring.page().data_head = 16;
  EXPECT_EQ(published_totals(*log.get(), ring).accepted, 0U);
}

TEST(ProducerProcessTest, WritesUntilItIsKilled) {
  const StressRing ring{Setting{.payload_max = 64}};
  const Shared<FlightLog> log;
  ProducerProcess<kernel::HardwareCpu> producer{ring, log.get()};
  while (log->count.load() < 10) ::sched_yield();
  EXPECT_TRUE(producer.kill());
  const auto head = ring.page().data_head;
  EXPECT_GT(head, 0U);
  ::usleep(1000);
  EXPECT_EQ(ring.page().data_head, head);
}

// The first violation of such a producer's lives. On a busy machine many of them end before it has
// done anything: what counts is the time.
template <class Base>
std::string violation_of() {
  Random random{1};
  PartOutcome outcome;
  const auto limit = Clock::now() + std::chrono::seconds{50};
  while (outcome.holds() && Clock::now() < limit) {
    life<Base>(Setting{.payload_max = 64, .seed = random()}, random, outcome);
  }
  return outcome.holds() ? "" : outcome.violations.front();
}

// No consumer notices that the ring is filled to its last byte.
TEST(LifeTest, AViolatedLedgerOfTheProducerIsAViolation) {
  EXPECT_THAT(violation_of<faults::SpaceOffBy8<kernel::HardwareCpu>>(),
              ::testing::HasSubstr("the producer's own ledger is violated"));
}

struct Dies : kernel::HardwareCpu {
  void step() { ::_exit(0); }
};

TEST(LifeTest, AProducerThatDiesByItselfIsAViolation) {
  EXPECT_THAT(violation_of<Dies>(), ::testing::HasSubstr("the producer died by itself"));
}

}  // namespace
}  // namespace perfring::stress
