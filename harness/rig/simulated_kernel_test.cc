#include "harness/rig/simulated_kernel.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "harness/kernel/perf_event.h"

namespace perfring::rig {
namespace {

using script::Step;

// Runs the script, and returns the observation after each step.
std::vector<Observed> run(std::string_view text) {
  const auto script = script::parse_script(text);
  if (!script) throw std::invalid_argument(script.error());
  SimulatedKernel kernel{script->settings};
  std::vector<Observed> observed;
  for (const Step& step : script->steps) observed.push_back(kernel.run(step));
  return observed;
}

TEST(SimulatedKernelTest, RunsEveryAction) {
  const auto observed =
      run("output 5\npoll\npoll\ndrain 1\npause\noutput 5\nresume\noutput 5\nepoll_wait\ntail 8\n"
          "disable\noutput 5\nenable\noutput 5\nrearm\nepoll_wait\n");
  const std::vector<Observed> expected{
      {0, 24, 0},                      // output
      {EPOLLIN | EPOLLRDNORM, 24, 0},  // poll
      {0, 24, 0},                      // poll
      {0, 24, 24},                     // drain
      {0, 24, 24},                     // pause
      {-ENOSPC, 24, 24, {1, 0}},       // output
      {0, 24, 24, {1, 0}},             // resume
      {0, 72, 24, {1, 0}},             // output: LOST and sample
      {EPOLLIN | EPOLLRDNORM, 72, 24, {1, 0}},
      {0, 72, 32, {1, 0}},            // tail
      {0, 72, 32, {1, 0}},            // disable
      {-EOPNOTSUPP, 72, 32, {1, 0}},  // output
      {0, 72, 32, {1, 0}},            // enable
      {0, 96, 32, {1, 0}},            // output
      {0, 96, 32, {1, 0}},            // rearm polls, and the item becomes ready anyway;
      {0, 96, 32, {1, 0}},            // but the poll has cleared the flag
  };
  EXPECT_EQ(observed, expected);
}

TEST(SimulatedKernelTest, ASecondEventSharesTheRing) {
  const auto observed = run("events 2\noutput 4 second\npoll second\npoll\noutput 5000 second\n");
  const std::vector<Observed> expected{
      {0, 16, 0}, {EPOLLIN | EPOLLRDNORM, 16, 0}, {0, 16, 0}, {-ENOSPC, 16, 0, {0, 1}}};
  EXPECT_EQ(observed, expected);
}

// The first event has the low 16 bits, the second event the next 16.
TEST(SimulatedKernelTest, AWaitReportsBothEvents) {
  constexpr std::int64_t kIn = EPOLLIN | EPOLLRDNORM;
  constexpr std::int64_t kHup = EPOLLHUP;
  SimulatedKernel kernel{script::parse_script("events 2\n")->settings};
  const Step output{.action = script::Action::Output, .number = 4};
  const Step wait{.action = script::Action::Epoll};
  EXPECT_EQ(kernel.run(wait).result, 0);
  // Two events that share a ring have one flag, so detach the second (K33: an event without a ring
  // hangs up).
  ASSERT_EQ(kernel::perf_event_set_output(kernel.ring().event(true), nullptr), 0);
  EXPECT_EQ(kernel.run(wait).result, kHup << 16);
  EXPECT_EQ(kernel.run({.action = script::Action::Poll, .second = true}).result, kHup);
  EXPECT_EQ(kernel.run({.action = script::Action::Poll}).result, 0);
  kernel.run(output);
  EXPECT_EQ(kernel.run(wait).result, kHup << 16 | kIn);
  EXPECT_EQ(kernel.run(wait).result, kHup << 16);
}

TEST(SimulatedKernelTest, AFaultyKernelWithoutAFaultIsThisOne) {
  const auto script = script::parse_script(
      "sample_type TIME|TID|CPU|ID|RAW\nevents 2\noutput 5\noutput 5000 second\npoll\n"
      "epoll_wait\ndrain 1\noutput 9 second\n");
  ASSERT_TRUE(script) << script.error();
  const Identity identity{.cpu = 3, .pid = 4, .tid = 5, .ids{6, 7}};
  SimulatedKernel one{script->settings, identity};
  FaultyKernel<StepCpu> other{script->settings, identity};
  for (std::uint64_t time = 100; const Step& step : script->steps) {
    EXPECT_EQ(one.run(step, time), other.run(step, time)) << to_text(step);
    EXPECT_TRUE(std::ranges::equal(one.ring().data(), other.ring().data())) << to_text(step);
    ++time;
  }
}

TEST(SimulatedKernelTest, PositionsStartAtTheSettingsStart) {
  EXPECT_EQ(run("word 32\nstart 4294967288\noutput 4\n"),
            (std::vector<Observed>{{0, 8, 4294967288}}));
}

class TailAfterTest : public ::testing::Test {
 protected:
  void put(std::size_t offset, std::uint16_t size) {
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, size};
    std::memcpy(&ring[offset], &header, sizeof(header));
  }
  std::uint64_t after(std::uint64_t head, std::uint64_t tail, std::uint64_t records) const {
    return tail_after(ring, settings, head, tail, records);
  }
  script::Settings settings;
  std::vector<std::byte> ring = std::vector<std::byte>(4096);
};

TEST_F(TailAfterTest, TheTailIsPastWholeRecords) {
  put(0, 16);
  put(16, 24);
  EXPECT_EQ(after(40, 0, 0), 0u);
  EXPECT_EQ(after(40, 0, 1), 16u);
  EXPECT_EQ(after(40, 0, 2), 40u);
  EXPECT_EQ(after(40, 0, 3), 40u);
  EXPECT_EQ(after(4096 + 40, 4096, 1), 4096u + 16);
}

TEST_F(TailAfterTest, IfNoRecordFitsTheTailIsTheHead) {
  EXPECT_EQ(after(40, 0, 1), 40u);  // a size of 0
  put(0, 48);
  EXPECT_EQ(after(40, 0, 1), 40u);  // past the head
  put(0, 7);
  EXPECT_EQ(after(40, 0, 1), 40u);
  put(0, 8);
  EXPECT_EQ(after(4104, 0, 1), 4104u);  // positions further apart than the ring's size
  EXPECT_EQ(after(4096, 0, 1), 8u);
  EXPECT_EQ(after(0, 8, 1), 0u);
  EXPECT_EQ(after(0, 8, 0), 8u);
}

TEST_F(TailAfterTest, TheTailCountsInTheKernelsWord) {
  put(4088, 16);
  settings.word = kernel::Word::k32;
  EXPECT_EQ(after(8, 0xffff'fff8, 1), 0x1'0000'0008u);
  settings.word = kernel::Word::k64;
  EXPECT_EQ(after(8, 0xffff'fff8, 1), 8u);
}

TEST_F(TailAfterTest, InABackwardRingTheTailIsTheHead) {
  settings.write_backward = true;
  EXPECT_EQ(after(~std::uint64_t{15}, 0, 1), ~std::uint64_t{15});
  EXPECT_EQ(after(~std::uint64_t{15}, 0, 0), 0u);
}

}  // namespace
}  // namespace perfring::rig
