// RingSet::lost() and OverwritableRing::lost(): losses as the kernel counts them, on a stand-in for
// the kernel. harness/live/tests/ring_set_test.cc tests them on a real one.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "perfring/perf_buffer.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/snapshot/overwritable_ring.h"
#include "perfring/testing/fake_set.h"

namespace perfring {
namespace {

using RingSetLostTest = testing::FakeSetTest;

TEST_F(RingSetLostTest, LostIsTheSumOfWhatTheKernelCounts) {
  RingSet set = open();
  EXPECT_EQ(kernel_.event.read_format, std::uint64_t{PERF_FORMAT_LOST});
  kernel_.lost = {{event_of(0), 7}, {event_of(1), 5'000'000'000}};
  EXPECT_EQ(set.lost(0), 7U);
  EXPECT_EQ(set.lost(1), 5'000'000'000U);
  EXPECT_EQ(set.lost(), 5'000'000'007U);
  const RingSet taken = std::move(set);
  EXPECT_EQ(taken.lost(), 5'000'000'007U);
  EXPECT_EQ(set.lost(), 0U);  // NOLINT: moved from, on purpose
  EXPECT_DEATH(static_cast<void>(taken.lost(2)), "");
}

TEST_F(RingSetLostTest, AnOlderKernelDoesNotCountTheLost) {
  kernel_.knows_lost = false;
  RingSet set = open();
  EXPECT_EQ(kernel_.event.read_format, 0U);
  kernel_.lost = {{event_of(0), 7}, {event_of(1), 8}};
  EXPECT_EQ(set.lost(), std::nullopt);
  EXPECT_EQ(set.lost(0), std::nullopt);
}

// The losses of both events count, and those of the events that were open before the CPU came back.
TEST_F(RingSetLostTest, WhatClosedEventsHaveLostStillCounts) {
  RingSetOptions options = small();
  options.latency = std::chrono::milliseconds{1};
  options.cpus = {0};
  RingSet set = open(options);
  const int mapped = event_of(0);
  const int quiet = kernel_.opened()[1];
  kernel_.lost = {{mapped, 1}, {quiet, 20}};
  EXPECT_EQ(set.lost(), 21U);
  ASSERT_TRUE(set.cpu_changed(0, false));
  ASSERT_TRUE(set.cpu_changed(0, true));
  const int revived = event_of(0);
  ASSERT_NE(revived, mapped);
  kernel_.lost[revived] = 300;
  EXPECT_EQ(set.lost(), 321U);
}

TEST_F(RingSetLostTest, AnOverwritableRingReportsWhatItsPausesCost) {
  auto ring = OverwritableRing::open(PerfEventArray::from_fd(map_fd_).value(), 0, 1).value();
  kernel_.lost = {{ring.fd(), 3}};
  EXPECT_EQ(ring.lost(), 3U);
  kernel_.knows_lost = false;
  EXPECT_EQ(ring.lost(), std::nullopt);
  const auto taken = std::move(ring);
  EXPECT_EQ(ring.lost(), std::nullopt);  // NOLINT: moved from, on purpose
}

// S7: as in aya.
TEST_F(RingSetLostTest, APerfBuffersEventHasNoReadFormat) {
  const auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(kernel_.event.read_format, 0U);
}

}  // namespace
}  // namespace perfring
