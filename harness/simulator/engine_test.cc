// When a run is checked, which sleepers are violations, and how far the consumer of a hostile ring
// may move data_tail, with hand-made writers and consumers. Also slices that outlive their drain.

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/faults/kernel_faults.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"
#include "harness/program/sanitizers.h"
#include "harness/simulator/engine.h"
#include "harness/simulator/scheduler.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulated_consumer.h"
#include "harness/simulator/simulated_producer.h"
#include "harness/simulator/simulation.h"
#include "harness/simulator/site.h"
#include "harness/simulator/world.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {
namespace {

using oracle::Invariant;

RunSettings settings_of(std::string_view scenario, std::string_view lines = "") {
  return *parse_settings(lines, "test", *parse_settings(find_scenario(scenario)->lines, scenario));
}

// A writer that announces nothing and acts when the consumer is asleep.
class Silent final : public Writer {
 public:
  Silent(Site& site, std::function<void(Silent&)> act) : site_{site}, act_{std::move(act)} {}

  void run() override {
    while (!site_.consumer().asleep(site_.world().scheduler.now())) site_.producer().yield();
    act_(*this);
  }

  void begin() { site_.begin_attempt({sequence_++, 0, 4}); }
  void accept() {
    site_.note_reservation(head_, 16);
    head_ += 16;
    site_.page().data_head = head_;
    site_.end_attempt(0);
  }
  void refuse() {
    site_.ledger().note_refusal(true);
    site_.end_attempt(-ENOSPC);
  }
  // Returns true if the consumer's sleep counts as a violation by the kernel.
  bool is_found() {
    site_.check_awake();
    return site_.judge().violation().has_value();
  }
  void begin_drain() { site_.drains().begin_drain(); }

 private:
  Site& site_;
  std::function<void(Silent&)> act_;
  std::uint64_t head_ = 0;
  std::uint64_t sequence_ = 0;
};

std::optional<Found> found(const std::function<void(Silent&)>& act) {
  const SimulationPlan plan{
      .seed = 1, .steps = 1000, .settings = settings_of("bursts", "cpus 1\n")};
  const Observer observer;
  Engine engine{plan, observer, true};
  Site& site = engine.sites().front();
  site.set_consumer(engine.world().scheduler.add([&site] { site.wait(0); }));
  engine.add_writer(site, std::make_unique<Silent>(site, act));
  return engine.run().found;
}

TEST(EngineTest, ASleeperBesideARecordAtTheEndIsAViolation) {
  const auto end = found([](Silent& writer) {
    writer.begin();
    writer.accept();
  });
  ASSERT_TRUE(end.has_value());
  EXPECT_STREQ(to_string(end->violation.invariant), to_string(Invariant::awake));
}

// Only one thing excuses the kernel: a record that an interrupt added to an output that was
// refused.
TEST(SiteTest, KernelGapExcusesSleeperUntilNextDrain) {
  static_cast<void>(found([](Silent& writer) {
    writer.begin();
    writer.begin();
    writer.accept();
    writer.refuse();
    EXPECT_FALSE(writer.is_found());
    writer.begin_drain();
    EXPECT_TRUE(writer.is_found()) << "the consumer has seen the ring since";
  }));
}

TEST(SiteTest, AcceptedOuterOutputExcusesNoSleeper) {
  static_cast<void>(found([](Silent& writer) {
    writer.begin();
    writer.begin();
    writer.accept();
    writer.accept();
    EXPECT_TRUE(writer.is_found());
  }));
}

TEST(SiteTest, ARefusalThatWasNotInterruptedExcusesNoSleeper) {
  static_cast<void>(found([](Silent& writer) {
    writer.begin();
    writer.begin();
    writer.accept();
    writer.refuse();
    writer.begin_drain();
    writer.begin();
    writer.refuse();
    EXPECT_TRUE(writer.is_found());
  }));
}

TEST(SiteTest, ASleeperIsLookedForAfterEachOutput) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const SimulationPlan plan{
        .seed = seed, .steps = 300'000, .settings = settings_of("bursts", "idle_max 0\n")};
    const SimulationOutcome outcome =
        simulate_with<faults::WakesEverySecondTime<SimulatedCpu>, RingDrain<>>(plan, {});
    ASSERT_TRUE(outcome.found.has_value()) << seed;
    EXPECT_STREQ(to_string(outcome.found->violation.invariant), to_string(Invariant::awake));
  }
}

// A drain may consume up to the data_head that it read, not up to the current data_head.
TEST(HostileJudgeTest, ATailPastTheHeadThatTheDrainReadIsAViolation) {
  for (const std::uint32_t head : {16U, 24U}) {
    World world{1, settings_of("hostile"), 1000};
    Site site{world, 0};
    site.drains().begin_drain();
    site.drains().note_head(head);
    site.drains().check_delivery(Malformed{Defect::UnexpectedType, site.data().first(16), {}});
    site.page().data_tail = 24;
    site.drains().end_drain();
    EXPECT_EQ(site.judge().violation().has_value(), head == 16);
  }
}

TEST(SchedulerTest, RunRethrowsExceptionThrownByTask) {
  Scheduler scheduler{1, 4};
  int turns = 0;
  std::vector<Task*> tasks(2);
  for (std::size_t i = 0; i < 2; ++i) {
    tasks[i] = &scheduler.add([&tasks, i, &turns] {
      Task& self = *tasks[i];
      for (;;) {
        self.yield();
        if (++turns == 10) throw std::runtime_error{"enough"};
      }
    });
  }
  EXPECT_THROW(scheduler.run([] {}), std::runtime_error);
  EXPECT_EQ(turns, 10);
}

TEST(SchedulerTest, RunRethrowsExceptionThrownBeforeTurn) {
  Scheduler scheduler{1, 4};
  Task* self = nullptr;
  int turns = 0;
  self = &scheduler.add([&] {
    for (;;) {
      ++turns;
      self->yield();
    }
  });
  int calls = 0;
  const auto run = [&] {
    scheduler.run([&] {
      if (++calls == 5) throw std::runtime_error{"no more"};
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(turns, 4);
}

// Bytes outside live records are poisoned: AddressSanitizer ends the program at the first access.
struct OneRecord {
  // The record is at position `start`.
  explicit OneRecord(std::uint64_t start = 0)
      : world{1, RunSettings{.cpus = 1, .ring{.start = start}, .interrupts = 0}, 1000} {
    site.set_consumer(world.scheduler.add([] {}));
    site.set_producer(world.scheduler.add([] {}));
    world.scheduler.stop_interrupting();
    SimulatedMemory::site = &site;
  }

  void write() {
    const oracle::Payload payload{sequence++, 0, 40};
    std::byte bytes[40];
    oracle::fill(bytes, payload);
    site.begin_attempt(payload);
    site.end_attempt(kernel::bpf_perf_event_output(cpu, site.map(), BPF_F_CURRENT_CPU, bytes));
  }

  Sample drain() {
    Sample kept{};
    site.drains().begin_drain();
    RingDrain<>{site}.drain([&](const PerfEvent& event) {
      site.drains().check_delivery(event);
      kept = std::get<Sample>(event);
      return true;
    });
    site.drains().end_drain();
    return kept;
  }

  struct Nothing : Interrupts {
    void interrupt() override {}
  };

  World world;
  Site site{world, 0};
  Nothing nothing;
  SimulatedCpu cpu{site, nothing};
  std::uint64_t sequence = 0;
};

int first_byte(Bytes bytes) {
  return std::to_integer<int>(*const_cast<const volatile std::byte*>(bytes.data()));
}

TEST(PoisonMapTest, AReadOfASliceAfterItsDrainEndsTheProgram) {
  OneRecord ring;
  ring.write();
  const Sample kept = ring.drain();
  EXPECT_FALSE(ring.site.judge().violation().has_value());
  if constexpr (kPoisons) {
    EXPECT_DEATH(first_byte(kept.head), "use-after-poison");
  } else {
    EXPECT_EQ(first_byte(kept.head), 0) << "without AddressSanitizer nobody notices";
  }
}

TEST(PoisonMapTest, ReadOfWrappedSliceAfterDrainEndsProgram) {
  OneRecord ring{4096 - 24};
  ring.write();
  const Sample kept = ring.drain();
  EXPECT_FALSE(ring.site.judge().violation().has_value());
  ASSERT_EQ(kept.head.size(), 12U);
  ASSERT_EQ(kept.tail.size(), 32U);
  if constexpr (kPoisons) {
    EXPECT_DEATH(first_byte(kept.head), "use-after-poison");
    EXPECT_DEATH(first_byte(kept.tail), "use-after-poison");
  }
}

TEST(PoisonMapTest, AReadBeyondTheRecordsEndsTheProgram) {
  OneRecord ring;
  ring.write();
  const Bytes beyond = ring.site.data().subspan(56, 8);
  if constexpr (kPoisons) {
    EXPECT_DEATH(first_byte(beyond), "use-after-poison");
  } else {
    EXPECT_EQ(first_byte(beyond), 0);
  }
}

TEST(PoisonMapTest, EveryLapOfRingIsUsable) {
  OneRecord ring;
  for (int i = 0; i < 1000; ++i) {
    ring.write();
    ring.drain();
    ASSERT_FALSE(ring.site.judge().violation().has_value())
        << ring.site.judge().violation()->message;
  }
  EXPECT_EQ(ring.site.judge().received().delivered, 1000U);
}

}  // namespace
}  // namespace perfring::simulator
