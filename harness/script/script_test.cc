#include "harness/script/script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace perfring::script {
namespace {

std::string error_of(std::string_view text) {
  const auto script = parse_script(text);
  return script ? "no error" : script.error();
}

TEST(ScriptTextTest, SettingsPrecedeSteps) {
  const auto script = parse_script(
      "# a comment\n"
      "word 32\npages 4\nsample_type RAW|TIME|IDENTIFIER\nsample_id_all 1\n"
      "wakeup_watermark 4294967295\nwrite_backward 1\nstart 4294967288\nevents 2\nepoll edge\n"
      "\n"
      "  output 200000 second  # and another\r\n"
      "drain 3\ntail 18446744073709551615\npoll\npoll second\nepoll_wait\nrearm\npause\nresume\n"
      "disable\nenable");
  ASSERT_TRUE(script) << script.error();
  const Settings& settings = script->settings;
  EXPECT_EQ(settings.word, kernel::Word::k32);
  EXPECT_EQ(settings.pages, 4u);
  EXPECT_EQ(settings.sample_type,
            std::uint64_t{PERF_SAMPLE_RAW | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER});
  EXPECT_TRUE(settings.sample_id_all);
  EXPECT_TRUE(settings.watermark);
  EXPECT_EQ(settings.wakeup, 0xffff'ffffu);
  EXPECT_TRUE(settings.write_backward);
  EXPECT_FALSE(settings.overwrite);
  EXPECT_EQ(settings.start, 0xffff'fff8u);
  EXPECT_EQ(settings.events, 2u);
  EXPECT_EQ(settings.epoll, Epoll::Edge);
  const std::vector<Step> steps{{Action::Output, 200000, true},
                                {Action::Drain, 3},
                                {Action::Tail, ~std::uint64_t{0}},
                                {Action::Poll},
                                {Action::Poll, 0, true},
                                {Action::Epoll},
                                {Action::Rearm},
                                {Action::Pause},
                                {Action::Resume},
                                {Action::Disable},
                                {Action::Enable}};
  EXPECT_EQ(script->steps, steps);
}

TEST(ScriptTextTest, PrintedScriptsAreReadBackEqual) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Script script = generate(seed, {.any_word = true, .any_start = true});
    const auto again = parse_script(to_text(script));
    ASSERT_TRUE(again) << again.error();
    ASSERT_EQ(*again, script) << to_text(script);
  }
}

TEST(ScriptTextTest, MarkersNestAStepInTheOneBefore) {
  const auto script = parse_script(
      "output 40\n"
      "> at 5 output 16\n"
      ">>  at 0\tdrain 1  # in that one\n"
      "> at 7 poll\n"
      "> at 9 die\n"
      "throw 2\n"
      ">at 1 output 8");
  ASSERT_TRUE(script) << script.error();
  const std::vector<Step> steps{{Action::Output, 40},
                                {Action::Output, 16, false, 1, 5},
                                {Action::Drain, 1, false, 2, 0},
                                {Action::Poll, 0, false, 1, 7},
                                {Action::Die, 0, false, 1, 9},
                                {Action::Throw, 2},
                                {Action::Output, 8, false, 1, 1}};
  EXPECT_EQ(script->steps, steps);
  EXPECT_TRUE(has_nested_steps(*script));
  EXPECT_FALSE(has_nested_steps(Script{{}, {{Action::Throw, 1}}}));
}

TEST(ScriptTextTest, NestedStepsAreReadBackEqual) {
  std::uint64_t deepest = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Script script = generate(seed, {.any_word = true, .any_start = true, .nested = true});
    ASSERT_FALSE(why_impossible(script)) << *why_impossible(script);
    const auto again = parse_script(to_text(script));
    ASSERT_TRUE(again) << again.error();
    ASSERT_EQ(*again, script) << to_text(script);
    for (const Step& step : script.steps) deepest = std::max(deepest, step.depth);
  }
  EXPECT_EQ(deepest, kDepthMax);
}

TEST(ScriptTextTest, EqualStepsInARowAreOneLine) {
  const Step nested{Action::Output, 4, false, 1, 2};
  const Script outputs{{}, {{Action::Output, 5}, {Action::Output, 5}, nested, nested}};
  const std::string text = "2 times output 5\n2 times > at 2 output 4\n";
  EXPECT_EQ(to_text(outputs), text);
  EXPECT_EQ(parse_script(text), outputs);
  EXPECT_EQ(parse_script("1 times poll")->steps.size(), 1u);
}

TEST(ScriptTextTest, DefaultSettingsAreNotPrinted) {
  EXPECT_EQ(to_text(Script{{}, {{Action::Output, 5}, {Action::Poll}}}), "output 5\npoll\n");
  EXPECT_EQ(to_text(Settings{.sample_type = 0}), "sample_type 0\n");
  EXPECT_EQ(to_text(Settings{.wakeup = 2}), "wakeup_events 2\n");
  EXPECT_EQ(to_text(Settings{.watermark = true}), "wakeup_watermark 1\n");
}

TEST(ScriptTextErrorTest, ALineThatDoesNotParseIsNamedWithTheReason) {
  EXPECT_EQ(error_of("\n# two\npages 3\n"), "line 3: a ring of 3 pages: a power of two up to 1024");
  EXPECT_EQ(error_of("pages 0"), "line 1: a ring of 0 pages: a power of two up to 1024");
  EXPECT_EQ(error_of("pages 2048"), "line 1: a ring of 2048 pages: a power of two up to 1024");
  EXPECT_EQ(error_of("output 1\nshout 2"), "line 2: 'shout': not a step or a setting");
  EXPECT_EQ(error_of("0 times poll"), "line 1: '0': at least 1 time");
  EXPECT_EQ(error_of("x times poll"), "line 1: 'x': a decimal number is expected");
  EXPECT_EQ(error_of("poll\n100000 times poll"), "line 2: too many steps");
  EXPECT_EQ(error_of("output 262145"), "line 1: output 262145: at most 262144");
  EXPECT_EQ(error_of("output"), "line 1: output: '': a decimal number is expected");
  EXPECT_EQ(error_of("output -1"), "line 1: output: '-1': a decimal number is expected");
  EXPECT_EQ(error_of("output 1x"), "line 1: output: '1x': a decimal number is expected");
  EXPECT_EQ(error_of("drain 18446744073709551616"),
            "line 1: drain: '18446744073709551616': a number of 64 bits");
  EXPECT_EQ(error_of("output 1 third"), "line 1: 'third': unexpected after a complete output");
  EXPECT_EQ(error_of("poll 1"), "line 1: '1': unexpected after a complete poll");
  EXPECT_EQ(error_of("poll\npages 2"), "line 2: a setting after the first step");
  EXPECT_EQ(error_of("output 1 second"), "line 1: there is no second event: set 'events 2'");
  EXPECT_EQ(error_of("overwrite 1\ndrain 1"), "line 2: an overwriting ring is mapped read-only");
  EXPECT_EQ(error_of("overwrite 1\ntail 1"), "line 2: an overwriting ring is mapped read-only");
  EXPECT_EQ(error_of("overwrite 2"), "line 1: overwrite: '2': 0 or 1");
  EXPECT_EQ(error_of("word 16"), "line 1: word: '16': 32 or 64");
  EXPECT_EQ(error_of("epoll once"), "line 1: epoll: 'once': level, edge or oneshot");
  EXPECT_EQ(error_of("events 3"), "line 1: events 3: 1 or 2");
  EXPECT_EQ(error_of("start 12"), "line 1: start 12: a multiple of 8");
  EXPECT_EQ(error_of("wakeup_events 4294967296"), "line 1: wakeup 4294967296: at most 4294967295");
  EXPECT_EQ(error_of("sample_type RAW|IP"),
            "line 1: sample_type: 'IP': not a sample_type that is simulated");
}

TEST(ScriptTextErrorTest, AStepThatCannotBeNestedIsNamed) {
  EXPECT_EQ(error_of("> at 0 poll"), "line 1: no enclosing step one level up");
  EXPECT_EQ(error_of("output 1\n>> at 0 poll"), "line 2: no enclosing step one level up");
  EXPECT_EQ(error_of("poll\n> at 0 output 1"),
            "line 2: nested in 'poll', which can have no nested steps");
  const std::string dies = "'die' must be nested in an output, at depth 1";
  EXPECT_EQ(error_of("die"), "line 1: " + dies);
  EXPECT_EQ(error_of("drain 1\n> at 0 die"), "line 2: " + dies);
  EXPECT_EQ(error_of("output 1\n> at 0 output 1\n>> at 0 die"), "line 3: " + dies);
  EXPECT_EQ(error_of("output 1\n> 5 output 1"),
            "line 2: '5': a nested step begins with 'at' and a number");
  EXPECT_EQ(error_of("output 1\n> at output 1"), "line 2: 'output': a decimal number is expected");
  EXPECT_EQ(error_of("output 1\n> at 65536 poll"), "line 2: at 65536: at most 65535");
  EXPECT_EQ(error_of("output 1\n>>>> at 0 poll"), "line 2: a depth of 4: at most 3");
  EXPECT_TRUE(why_impossible(Script{{}, {{.action = Action::Poll, .at = 1}}}));
}

// A caller may support only part of the language.
TEST(ScriptTextErrorTest, ALineThatTheCallerRefusesIsNamed) {
  const auto refuse = [](const Script& script) -> std::optional<std::string> {
    if (script.settings.events == 2) return "one event only";
    if (script.steps.size() == 2) return "one step only";
    return std::nullopt;
  };
  const auto refused = [&](std::string_view text) {
    const auto script = parse_script(text, refuse);
    return script ? "" : script.error();
  };
  EXPECT_EQ(refused("pages 2\n\nevents 2\npoll\n"), "line 3: one event only");
  EXPECT_EQ(refused("pages 2\npoll\n# another\npoll\n"), "line 4: one step only");
  EXPECT_EQ(refused("pages 2\npoll\n"), "");
}

TEST(ScriptTextErrorTest, AScriptThatWasNotParsedIsCheckedAlike) {
  EXPECT_FALSE(why_impossible(Script{{}, {{Action::Drain, 1}}}));
  EXPECT_TRUE(why_impossible(Script{{.overwrite = true}, {{Action::Drain, 1}}}));
  EXPECT_TRUE(why_impossible(Script{{.pages = 3}, {}}));
  EXPECT_TRUE(why_impossible(Settings{.events = 0}));
  EXPECT_TRUE(why_impossible(Settings{.events = 3}));
  EXPECT_FALSE(why_impossible(Settings{.events = 2}));
  EXPECT_TRUE(why_impossible(Settings{.sample_type = PERF_SAMPLE_CALLCHAIN}));
  EXPECT_TRUE(why_impossible(Script{{}, std::vector<Step>(kStepsMax + 1, {Action::Poll})}));
}

TEST(FirstWithNestedTest, OnlyDeeperStepsAreNestedInAStep) {
  const auto count = [](std::vector<std::uint64_t> depths) {
    std::vector<Step> steps;
    for (const std::uint64_t depth : depths) steps.push_back({.depth = depth});
    const std::span<const Step> first = first_with_nested(steps);
    EXPECT_EQ(first.data(), steps.data());
    return first.size();
  };
  EXPECT_EQ(count({0}), 1U);
  EXPECT_EQ(count({0, 0}), 1U);
  EXPECT_EQ(count({0, 1, 1, 0, 1}), 3U) << "its own alone";
  EXPECT_EQ(count({0, 1, 2, 1}), 4U) << "to the end";
  EXPECT_EQ(count({1, 1, 0}), 1U) << "a neighbour is not nested";
  EXPECT_EQ(count({1, 2, 1, 2}), 2U);
  EXPECT_EQ(count({1, 2, 3, 2, 1}), 4U);
  EXPECT_EQ(count({2, 1, 2}), 1U);
  EXPECT_EQ(count({1, 0, 1}), 1U);
}

// A runner that logs the steps that it begins, their moments, and the steps that are due at their
// ends.
TEST(UnderWayTest, NestedStepsAreDueOnceAtTheirMomentOrAtTheEnd) {
  const std::vector<Step> steps{
      {.number = 1},
      {.number = 2, .depth = 1, .at = 1},
      {.number = 3, .depth = 2, .at = 0},
      {.number = 4, .depth = 2, .at = 9},
      {.number = 5, .depth = 1, .at = 1},
      {.number = 6, .depth = 1, .at = 7},
  };
  ActiveSteps under_way;
  std::string order;
  const std::function<void(std::span<const Step>)> perform = [&](std::span<const Step> all) {
    const auto nested = [&](bool at_a_moment, std::span<const Step> due) {
      order += at_a_moment ? "" : "end:";
      perform(due);
    };
    order += std::to_string(all.front().number) + "(";
    under_way.begin(all);
    EXPECT_EQ(under_way.innermost(), all.front());
    EXPECT_EQ(under_way.depth(), all.front().depth + 1);
    for (int moment = 0; moment < 3; ++moment) {
      order += std::to_string(moment) + " ";
      under_way.pass_moment(nested);
    }
    under_way.perform_rest(nested);
    under_way.end();
    order += ")";
  };
  for (int again = 0; again < 2; ++again) {
    order.clear();
    perform(steps);
    EXPECT_EQ(order, "1(0 1 2(0 3(0 1 2 )1 2 end:4(0 1 2 ))5(0 1 2 )2 end:6(0 1 2 ))");
  }
  EXPECT_EQ(under_way.depth(), 0);
  under_way.pass_moment(
      [](bool, std::span<const Step>) { ADD_FAILURE() << "no step is under way"; });
}

TEST(ScriptTextTest, AChangedByteIsParsedOrItsLineIsNamed) {
  // Changes each byte of a script in turn.
  const std::string text = to_text(generate(7, {.any_word = true, .any_start = true}));
  std::size_t parsed = 0, refused = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'\0', '\n', ' ', '9', '#', '|', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      if (const auto script = parse_script(changed)) {
        ++parsed;
        EXPECT_FALSE(why_impossible(*script));
      } else {
        ++refused;
        EXPECT_EQ(script.error().substr(0, 5), "line ");
      }
    }
  }
  EXPECT_GT(parsed, text.size() / 10);
  EXPECT_GT(refused, text.size() / 10);
}

// SplitMix64 (Steele, Lea, Flood, 2014) seeded with 0 begins with these bytes, in little endian.
TEST(FillPayloadTest, APayloadIsTheSameOnEveryMachine) {
  std::vector<std::byte> payload(11);
  fill_payload(payload, 0);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(payload[i]), 0xe220'a839'7b1d'cdafULL >> (8 * i) & 0xff);
  }
  for (std::size_t i = 8; i < payload.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(payload[i]),
              0x6e78'9e6a'a1b9'65f4ULL >> (8 * (i - 8)) & 0xff);
  }
  std::vector<std::byte> other(11);
  fill_payload(other, 1);
  EXPECT_NE(payload, other);
}

}  // namespace
}  // namespace perfring::script
