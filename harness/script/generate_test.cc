#include "harness/script/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

namespace perfring::script {
namespace {

constexpr GenerateOptions kAll{.any_word = true, .any_start = true};

TEST(GenerateTest, EveryScriptCanBeRun) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Script script = generate(seed, kAll);
    ASSERT_EQ(why_impossible(script), std::nullopt) << to_text(script);
    ASSERT_LE(script.steps.size(), 80u);
  }
}

// The standard says what mt19937_64 gives, and all else is integers: what x86-64 printed is every
// machine's.
TEST(GenerateTest, ASeedGivesTheSameScriptOnEveryMachine) {
  EXPECT_EQ(to_text(generate(2, {.steps_max = 6})),
            "pages 2\nwakeup_watermark 8193\nevents 2\nepoll oneshot\n"
            "output 413\noutput 69\noutput 4 second\n");
  EXPECT_EQ(generate(3, kAll), generate(3, kAll));
  EXPECT_NE(generate(3, kAll), generate(4, kAll));
}

TEST(GenerateTest, ScriptsForALiveKernelKeepToItsBounds) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Script script = generate(seed, {.pages_max = 8});
    ASSERT_EQ(script.settings.word, kernel::Word::k64);
    ASSERT_EQ(script.settings.start, 0u);
    ASSERT_LE(script.settings.pages, 8u);
  }
}

// Everything that a script can have comes, within the seeds of one short run.
TEST(GenerateTest, EveryActionAndSettingIsGenerated) {
  std::set<Action> actions;
  std::set<std::uint64_t> pages, wakeups, types, sizes;
  std::set<Epoll> epolls;
  bool backward = false, overwrite = false, second = false, id_all = false, watermark = false;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Script script = generate(seed);
    const Settings& settings = script.settings;
    pages.insert(settings.pages);
    wakeups.insert(settings.wakeup);
    types.insert(settings.sample_type);
    epolls.insert(settings.epoll);
    backward |= settings.write_backward;
    overwrite |= settings.overwrite;
    id_all |= settings.sample_id_all;
    watermark |= settings.watermark;
    for (const Step& step : script.steps) {
      actions.insert(step.action);
      if (step.action == Action::Output) sizes.insert(step.number);
      second |= step.second;
    }
  }
  EXPECT_EQ(actions.size(), 10u);
  EXPECT_EQ(pages, (std::set<std::uint64_t>{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(epolls.size(), 3u);
  EXPECT_TRUE(backward && overwrite && second && id_all && watermark);
  for (const std::uint64_t wakeup : {0ull, 1ull, 64ull, 0x8000'0000ull, 0xffff'ffffull}) {
    EXPECT_TRUE(wakeups.contains(wakeup)) << wakeup;
  }
  EXPECT_TRUE(types.contains(0));
  for (std::uint64_t bit = 1; bit <= PERF_SAMPLE_IDENTIFIER; bit <<= 1) {
    const bool comes =
        std::ranges::any_of(types, [bit](std::uint64_t type) { return (type & bit) != 0; });
    EXPECT_EQ(comes, (bit & kernel::kSampleTypes) != 0) << bit;
  }
  for (std::uint64_t size = 0; size <= 32; ++size) EXPECT_TRUE(sizes.contains(size)) << size;
  for (std::uint64_t size = 65507; size <= 65548; ++size) EXPECT_TRUE(sizes.contains(size)) << size;
  for (const std::uint64_t size : {131052u, 200000u}) EXPECT_TRUE(sizes.contains(size)) << size;
}

// And what only the simulated kernel can be made to do.
TEST(GenerateTest, EverySettingOfTheSimulatedKernelIsGenerated) {
  std::set<kernel::Word> words;
  std::set<Action> actions;
  std::set<std::uint64_t> depths, moments, tails;
  bool at_0 = false, before_4_gib = false, before_the_end = false;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Script script = generate(seed, {.any_word = true, .any_start = true, .nested = true});
    words.insert(script.settings.word);
    const std::uint64_t start = script.settings.start;
    at_0 |= start == 0;
    before_4_gib |= start < 0x1'0000'0000 && start >= 0xffff'0000;
    before_the_end |= start >= 0 - std::uint64_t{0x1'0000};
    for (const Step& step : script.steps) {
      actions.insert(step.action);
      depths.insert(step.depth);
      if (step.depth != 0) moments.insert(step.at);
      if (step.action == Action::Tail) tails.insert(step.number);
    }
  }
  EXPECT_EQ(words.size(), 2u);
  EXPECT_EQ(actions.size(), 11u);
  EXPECT_EQ(depths, (std::set<std::uint64_t>{0, 1, 2, 3}));
  for (std::uint64_t at = 0; at < 30; ++at) EXPECT_TRUE(moments.contains(at)) << at;
  for (const std::uint64_t tail : {1ull, 8ull, 4096ull, 1ull << 32, 0 - 8ull}) {
    EXPECT_TRUE(tails.contains(tail)) << tail;
  }
  EXPECT_TRUE(at_0 && before_4_gib && before_the_end);
}

}  // namespace
}  // namespace perfring::script
