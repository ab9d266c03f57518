#include "harness/stress/setting.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <vector>

#include "harness/kernel/ring_buffer.h"
#include "harness/kernel/sample.h"
#include "harness/stress/stress_ring.h"

namespace perfring::stress {
namespace {

int output(kernel::HardwareCpu& cpu, const StressRing& ring, std::size_t length) {
  const std::vector<std::byte> payload(length);
  kernel::perf_sample_data data;
  kernel::perf_sample_save_raw_data(data, ring.event(), payload);
  return kernel::perf_event_output(cpu, ring.event(), data);
}

TEST(LongestPayloadTest, IsTheLargestThatFitsBehindALost) {
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

TEST(DrawSettingTest, CoversBothWordsAndEveryCrossing) {
  Random random{1};
  std::set<std::uint64_t> crossings;
  for (int i = 0; i < 1000; ++i) {
    const Setting setting = draw(random, 0);
    const bool wide = setting.ring.word == kernel::Word::k64;
    ASSERT_EQ(setting.ring.start % 8, 0U);
    // Some laps further on, in which multiple of 2^32 it is.
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

}  // namespace
}  // namespace perfring::stress
