// Slices that outlive their drain. Bytes outside live records are poisoned, so AddressSanitizer
// ends the program at the first look.

#include <gtest/gtest.h>

#include "harness/program/sanitizers.h"
#include "harness/simulator/consumer.h"
#include "harness/simulator/producer.h"
#include "harness/simulator/site.h"
#include "harness/simulator/world.h"

namespace perfring::simulator {
namespace {

struct OneRecord {
  // From position `start` on.
  explicit OneRecord(std::uint64_t start = 0)
      : world{1, RunSettings{.cpus = 1, .pages = 1, .start = start, .interrupts = 0}, 1000} {
    site.set_consumer(world.scheduler.add([] {}));
    site.set_producer(world.scheduler.add([] {}));
    world.scheduler.stop_interrupting();
    SimulatedMemory::site = &site;
  }

  void write() {
    const oracle::Payload payload{sequence++, 0, 40};
    std::byte bytes[40];
    oracle::fill(bytes, payload);
    site.begins(payload);
    site.ends(kernel::bpf_perf_event_output(cpu, site.map(), BPF_F_CURRENT_CPU, bytes));
  }

  Sample drain() {
    Sample kept{};
    site.drains().begins();
    RingDrain<>{site}.drain([&](const PerfEvent& event) {
      site.drains().delivered(event);
      kept = std::get<Sample>(event);
      return true;
    });
    site.drains().ends();
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

TEST(PoisonMapTest, AReadOfEitherPieceOfASliceThatWrapsEndsTheProgramAfterItsDrain) {
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

TEST(PoisonMapTest, EveryLapOfTheRingCanBeWrittenAndRead) {
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
