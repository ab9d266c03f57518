// Why a round of sleepers whose writers nest has a short timeout: the kernel itself loses a wakeup
// there, and only there.

#include "harness/stress/sleepers.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace perfring::stress {
namespace {

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

// Three outputs of 80 bytes, the second interrupted at this step by the third; the second passes
// the watermark. Returns whether a sleeper is woken, or nullopt if an output has fewer steps.
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

// Between nest++ and the look at rb->wakeup: the inner writer leaves waking to the outer one, which
// does not see that there is something to wake for.
TEST(LostWakeupTest, AWakeupIsLostOnlyIfEarnedInsideGetHandle) {
  constexpr unsigned kAfterNestIsCounted = 3;
  unsigned at = 1;
  for (; woken(at).has_value(); ++at) {
    EXPECT_EQ(*woken(at), at != kAfterNestIsCounted) << "at step " << at;
  }
  EXPECT_GT(at, 10U);
}

}  // namespace
}  // namespace perfring::stress
