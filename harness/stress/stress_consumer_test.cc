// Faults that StressConsumer itself detects in addition to the checker's invariants; each part
// checks in the end that everything published was delivered; when rounds end. Consumers and rings
// are hand-made and share one thread, except in the last two SettleTests.

#include "harness/stress/stress_consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/ring_wrappers.h"
#include "harness/kernel/cpu.h"
#include "harness/stress/run.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/stress_producer.h"
#include "harness/stress/stress_testing.h"
#include "harness/stress/threads.h"
#include "perfring/ring/default_memory.h"

namespace perfring::stress {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string in_words(const std::optional<oracle::Violation>& violation) {
  return violation ? to_string(*violation) : "holds";
}

// A ring with `records` records. Its writer has ended.
struct Written {
  explicit Written(unsigned records, unsigned levels = 1)
      : ring{Setting{.levels = levels, .payload_max = 64, .calm = 1000}}, producer{ring} {
    for (unsigned i = 0; i < records; ++i) EXPECT_EQ(producer.output(), 0);
  }
  template <class R>
  void settle(StressConsumer<R>& consumer) const {
    consumer.settle(producer.ledger().totals(), producer.ledger().unreported());
  }

  StressRing ring;
  StressProducer<> producer;
};

// Returns the violation that finish() finds in a ring of 30 records.
template <class R>
std::string finished() {
  const Written written{30};
  StressConsumer<R> consumer{written.ring};
  consumer.finish();
  return in_words(consumer.violation());
}

TEST(StressConsumerTest, AFaultlessConsumerHolds) {
  EXPECT_EQ(finished<Ring<>>(), "holds");
  for (const unsigned records : {0U, 1U, 30U}) {
    const Written written{records, /*levels=*/2};
    StressConsumer<> consumer{written.ring};
    EXPECT_EQ(consumer.drain_to_the_end(), records != 0);
    consumer.finish();
    written.settle(consumer);
    EXPECT_EQ(in_words(consumer.violation()), "holds");
    EXPECT_EQ(consumer.received().delivered, written.producer.ledger().totals().accepted);
  }
}

TEST(StressConsumerTest, ADrainThatLeavesAnIdleRingReadableIsFound) {
  EXPECT_THAT(finished<faults::TakesOneAtATime<DefaultMemory>>(),
              HasSubstr("a drain of an idle ring left it readable"));
}

template <int kOff>
struct Miscounts : Around<Miscounts<kOff>> {
  using Around<Miscounts>::Around;
  template <class C, class F>
  C fold(C init, F f) {
    const C before = init;
    const C after = Around<Miscounts>::fold(std::move(init), std::move(f));
    return kOff == 0 ? before : after + static_cast<C>(kOff);
  }
};

// The seed decides which drains are folds.
template <class R>
std::string drained_often() {
  const Written none{0};
  StressProducer<> producer{none.ring};
  StressConsumer<R> consumer{none.ring};
  for (int i = 0; i < 200 && !consumer.violation(); ++i) {
    EXPECT_EQ(producer.output(), 0);
    consumer.drain();
  }
  return in_words(consumer.violation());
}

TEST(StressConsumerTest, AFoldThatLosesWhatItCarriesIsFound) {
  EXPECT_THAT(drained_often<Miscounts<0>>(), HasSubstr("fold lost count"));
  EXPECT_THAT(drained_often<Miscounts<1>>(), HasSubstr("fold lost count"));
  EXPECT_EQ(drained_often<Ring<>>(), "holds");
}

TEST(StressConsumerTest, AnEventAfterTheDrainsLastIsFound) {
  EXPECT_THAT(finished<faults::IgnoresBreak<DefaultMemory>>(),
              HasSubstr("an event was delivered after the drain's last"));
}

// Claims to be readable, and delivers nothing.
struct NeverDone : Around<NeverDone> {
  using Around::Around;
  static bool readable() { return true; }
  static ControlFlow<> drain(const faults::Visit&) { return Continue{}; }
};

TEST(StressConsumerTest, ARestThatDoesNotEndIsFound) {
  EXPECT_THAT(finished<NeverDone>(), StartsWith("bounded: "));
}

TEST(StressConsumerTest, AnEventOfAnEmptyRingIsFound) {
  EXPECT_THAT(finished<faults::SleepsAfterBreak<DefaultMemory>>(),
              HasSubstr("an empty ring delivered an event"));
}

// Claims that the ring is empty.
struct Blind : Around<Blind> {
  using Around::Around;
  static bool readable() { return false; }
  static ControlFlow<> drain(const faults::Visit&) { return Continue{}; }
};

TEST(StressConsumerTest, ARingThatWasNotReadToItsEndIsFound) {
  EXPECT_THAT(finished<Blind>(), HasSubstr("the ring is empty, but data_tail is not data_head"));
}

TEST(StressConsumerTest, AfterPartsTheRingIsEmpty) {
  const Written none{0};
  StressProducer<> producer{none.ring};
  StressConsumer<> consumer{none.ring};
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 5; ++k) EXPECT_EQ(producer.output(), 0);
    consumer.drain_in_parts();
    ASSERT_EQ(none.ring.page().data_tail, none.ring.page().data_head);
  }
  EXPECT_EQ(in_words(consumer.violation()), "holds");
}

// Two writers: only their totals reveal which records are missing.
constexpr Setting kTwoLevels{.levels = 2, .payload_max = 64, .calm = 20};

TEST(SettleTest, AConsumerIsAskedForAllThatWasPublished) {
  Written written{30, /*levels=*/2};
  StressConsumer<DropsTheSecond> consumer{written.ring};
  consumer.finish();
  EXPECT_EQ(in_words(consumer.violation()), "holds") << "nothing else tells";
  written.settle(consumer);
  EXPECT_THAT(in_words(consumer.violation()), HasSubstr(" accepted, but "));
}

TEST(SettleTest, ThreadsAreAskedForAllThatTheyPublished) {
  for (const bool drops : {true, false}) {
    std::unique_ptr<ThreadedRing> ring;
    if (drops) {
      ring = std::make_unique<ThreadedRingOf<kernel::HardwareCpu, StressConsumer<DropsTheSecond>>>(
          kTwoLevels);
    } else {
      ring = std::make_unique<ThreadedRingOf<kernel::HardwareCpu, StressConsumer<>>>(kTwoLevels);
    }
    std::atomic<bool> stop{false};
    PartReport outcome;
    ring->start(stop);
    const auto limit = Clock::now() + std::chrono::seconds{60};
    while (!ring->drain() && Clock::now() < limit) ::sched_yield();
    stop = true;
    ring->end(outcome);
    ASSERT_EQ(outcome.violations.size(), drops ? 1U : 0U);
    EXPECT_GT(outcome.delivered, 0U);
    if (drops) {
      EXPECT_THAT(outcome.violations.front(), HasSubstr(" accepted, but "));
    } else {
      EXPECT_EQ(outcome.attempted, outcome.delivered + outcome.lost);
    }
  }
}

TEST(SettleTest, SleepersAreAskedForAllThatTheyPublished) {
  const stress::Run run;
  PartReport outcome;
  const std::vector<Setting> settings{kTwoLevels};
  // The writer waits before each burst until everything is read. The first drain of the rest drops
  // one.
  for (int i = 0; i < 100 && outcome.holds(); ++i) {
    SleepersRound<kernel::HardwareCpu, Waits::Documented, DropsTheSecond>{settings, run, outcome}
        .run(std::chrono::milliseconds{10});
  }
  ASSERT_FALSE(outcome.holds());
  EXPECT_THAT(outcome.violations.front(), HasSubstr(" accepted, but "));
}

TEST(RoundsTest, GoOnUntilTheTimeIsOverOrSomethingIsViolated) {
  const auto rounds_of = [](const stress::Run& run, unsigned violated_in) {
    unsigned count = 0;
    const PartReport outcome = rounds("x", run, [&](PartReport& so_far, Random&) {
      if (++count == violated_in) so_far.violate({oracle::Invariant::once, "it"}, Setting{});
    });
    EXPECT_EQ(outcome.rounds, count);
    EXPECT_EQ(outcome.holds(), count < violated_in);
    return count;
  };
  EXPECT_EQ(rounds_of({.seconds = 0}, 99), 1U) << "one at the least";
  EXPECT_EQ(rounds_of({.seconds = 1e9}, 3), 3U);
  const auto began = Clock::now();
  EXPECT_GT(rounds_of({.seconds = 0.05, .keep_going = true}, 1), 1U);
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds{50});
  const std::atomic<bool> interrupted{true};
  EXPECT_EQ(rounds_of({.seconds = 1e9, .keep_going = true, .interrupt = &interrupted}, 99), 1U);
}

TEST(RoundsTest, TheSameSeedGivesTheSameRounds) {
  const auto first = [](std::uint64_t seed) {
    std::uint64_t number = 0;
    const stress::Run run{.seconds = 0, .seed = seed};
    rounds("x", run, [&](PartReport&, Random& random) { number = random(); });
    return number;
  };
  EXPECT_EQ(first(7), first(7));
  EXPECT_NE(first(7), first(8));
}

TEST(RoundsTest, OnlyTheFirstViolationsAreKept) {
  PartReport outcome;
  for (int i = 0; i < 20; ++i) {
    outcome.violate({oracle::Invariant::once, std::to_string(i)}, Setting{});
  }
  ASSERT_EQ(outcome.violations.size(), 8U);
  EXPECT_THAT(outcome.violations.front(), StartsWith("once: 0 ("));
  EXPECT_THAT(outcome.violations.back(), StartsWith("once: 7 ("));
}

}  // namespace
}  // namespace perfring::stress
