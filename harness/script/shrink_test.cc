#include "harness/script/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/script/generate.h"

namespace perfring::script {
namespace {

bool has_output_of(const Script& script, std::uint64_t least) {
  return std::ranges::any_of(script.steps, [least](const Step& step) {
    return step.action == Action::Output && step.number >= least;
  });
}

// The first of these seeds for which it fails.
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

TEST(ShrinkTest, WhereEverythingFailsItEnds) {
  std::size_t asked = 0;
  const auto fails = [&](const Script&) {
    ++asked;
    return true;
  };
  EXPECT_EQ(shrink(generate(5), fails), Script{});
  EXPECT_LT(asked, 100u);
}

TEST(ShrinkTest, TheBoundOnRunsIsKept) {
  std::size_t asked = 0;
  const auto fails = [&](const Script& script) {
    ++asked;
    return has_output_of(script, 1);
  };
  const Script script = failing(fails);
  asked = 0;
  shrink(script, fails, 10);
  EXPECT_EQ(asked, 10u);
}

TEST(ShrinkTest, OnlyAsksAboutScriptsThatCanBeRun) {
  shrink(generate(11), [](const Script& script) {
    EXPECT_EQ(why_impossible(script), std::nullopt);
    return script.steps.size() % 3 != 0;
  });
}

}  // namespace
}  // namespace perfring::script
