#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "harness/kernel/perf_event.h"
#include "harness/script/script.h"

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

// The standard defines the numbers of mt19937_64, and everything else is integer arithmetic, so
// every machine generates the script that x86-64 printed.
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

// The seeds of one short run generate everything that a script can have.
TEST(GenerateTest, ThousandSeedsCoverEveryScriptFeature) {
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

// With these options, scripts also have everything that only the simulated kernel can do.
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

bool has_output_of(const Script& script, std::uint64_t least) {
  return std::ranges::any_of(script.steps, [least](const Step& step) {
    return step.action == Action::Output && step.number >= least;
  });
}

// Returns the first of these seeds' scripts for which `fails` holds.
Script failing(const std::function<bool(const Script&)>& fails) {
  for (std::uint64_t seed = 0;; ++seed) {
    Script script = generate(seed, {.any_word = true, .any_start = true});
    if (script.steps.size() > 40 && fails(script)) return script;
  }
}

TEST(ShrinkTest, OneStepWithTheSmallestNumberIsLeft) {
  const auto fails = [](const Script& script) { return has_output_of(script, 137); };
  EXPECT_EQ(to_text(shrink(failing(fails), fails)), "output 137\n");
}

TEST(ShrinkTest, APairOfStepsIsLeftInItsOrder) {
  const auto fails = [](const Script& script) {
    const auto pause = std::ranges::find(script.steps, Action::Pause, &Step::action);
    return std::find_if(pause, script.steps.end(), [](const Step& step) {
             return step.action == Action::Output && step.second;
           }) != script.steps.end();
  };
  EXPECT_EQ(to_text(shrink(failing(fails), fails)), "events 2\npause\noutput 0 second\n");
}

TEST(ShrinkTest, SettingsThatMatterAreLeft) {
  const auto fails = [](const Script& script) {
    return script.settings.pages >= 4 && (script.settings.sample_type & PERF_SAMPLE_TIME) != 0;
  };
  EXPECT_EQ(to_text(shrink(failing(fails), fails)), "pages 4\nsample_type TIME|RAW\n");
  const auto without_raw = [](const Script& script) {
    return (script.settings.sample_type & PERF_SAMPLE_RAW) == 0;
  };
  EXPECT_EQ(to_text(shrink(failing(without_raw), without_raw)), "sample_type 0\n");
}

TEST(ShrinkTest, NestingThatMattersIsLeft) {
  const auto interrupted = [](const Script& script) {
    return std::ranges::any_of(script.steps, [](const Step& step) {
      return step.depth == 1 && step.at >= 3 && step.action == Action::Output;
    });
  };
  Script script = *parse_script(
      "output 40\n> at 9 poll\n> at 30 output 16\n>> at 2 output 8\n> at 40 pause\npoll");
  EXPECT_EQ(to_text(shrink(script, interrupted)), "output 0\n> at 3 output 0\n");
  const auto any = [](const Script& candidate) { return has_output_of(candidate, 8); };
  script = *parse_script("drain 1\n> at 4 drain 1\n>> at 2 output 8");
  EXPECT_EQ(to_text(shrink(script, any)), "output 8\n");
}

TEST(ShrinkTest, IfEveryScriptFailsTheEmptyOneIsLeft) {
  std::size_t calls = 0;
  const auto fails = [&](const Script&) {
    ++calls;
    return true;
  };
  EXPECT_EQ(shrink(generate(5), fails), Script{});
  EXPECT_LT(calls, 100u);
}

TEST(ShrinkTest, TheBoundOnRunsIsKept) {
  std::size_t calls = 0;
  const auto fails = [&](const Script& script) {
    ++calls;
    return has_output_of(script, 1);
  };
  const Script script = failing(fails);
  calls = 0;
  shrink(script, fails, 10);
  EXPECT_EQ(calls, 10u);
}

TEST(ShrinkTest, OnlyAsksAboutScriptsThatCanBeRun) {
  shrink(generate(11), [](const Script& script) {
    EXPECT_EQ(why_impossible(script), std::nullopt);
    return script.steps.size() % 3 != 0;
  });
}

}  // namespace
}  // namespace perfring::script
