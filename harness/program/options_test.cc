#include "harness/program/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>
#include <cstdint>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perfring {
namespace {

using ::testing::HasSubstr;

// Returns the refusal of a text; empty if the validator accepts it.
std::string refusal_of(const CLI::Validator& validator, std::string text) {
  return validator(text);
}

TEST(NumberFromTest, AcceptsWholeNumbersInItsRange) {
  for (const char* text : {"1", "64", "007"})
    EXPECT_EQ(refusal_of(number_from(1, 64), text), "") << text;
  for (const char* text :
       {"", "0", "65", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e1", "x", "18446744073709551616"}) {
    EXPECT_THAT(refusal_of(number_from(1, 64), text),
                HasSubstr("is not accepted: give a number from 1 to 64"))
        << text;
  }
  EXPECT_EQ(refusal_of(number_from(0), "18446744073709551615"), "");
}

TEST(PowerOfTwoTest, AcceptsPowersUpToTheMost) {
  for (const char* text : {"1", "512", "1024"}) {
    EXPECT_EQ(refusal_of(power_of_two_up_to(1024), text), "") << text;
  }
  for (const char* text : {"", "0", "3", "-1", "1.5", "2048", "4294967296", "8k"}) {
    EXPECT_THAT(refusal_of(power_of_two_up_to(1024), text),
                HasSubstr("a power of two from 1 to 1024"));
  }
}

TEST(SecondsTest, AcceptsPositiveUpToOneDay) {
  for (const char* text : {"0.25", "86400", "1e-9"})
    EXPECT_EQ(refusal_of(seconds(), text), "") << text;
  for (const char* text : {"", "0", "-1", "nan", "inf", "86401", "1s", "1e99", " 1"}) {
    EXPECT_THAT(refusal_of(seconds(), text), HasSubstr("a number of seconds above 0")) << text;
  }
}

TEST(OneOfTest, ARefusalNamesTheChoices) {
  EXPECT_EQ(refusal_of(one_of({"A", "B"}), "B"), "");
  EXPECT_EQ(refusal_of(one_of({"A", "B"}), "C"), "'C' is not accepted: give one of A, B");
  EXPECT_EQ(refusal_of(one_of({"A", "B"}), ""), "'' is not accepted: give one of A, B");
}

TEST(OneOfManyTest, RefusalSuggestsThreeNearestNames) {
  const CLI::Validator names = one_of_many({"q", "abcxyf", "abcdef", "xyz", "abxdef"}, "p --list");
  EXPECT_EQ(refusal_of(names, "abcdef"), "");
  EXPECT_EQ(
      refusal_of(names, "abcdeg"),
      "'abcdeg' is not accepted: the nearest are abcdef, abxdef, abcxyf; 'p --list' prints all");
  EXPECT_EQ(refusal_of(one_of_many({"A"}, "p"), "C"),
            "'C' is not accepted: the nearest is A; 'p' prints all");
}

struct Words {
  std::string text;
  bool command = false;
  bool flag = false;

  bool operator==(const Words&) const = default;
};

// Parses the words as a program with an option, a flag and a command.
std::optional<Answer> parse_words(std::vector<const char*> words, Words* stored = nullptr) {
  CLI::App app{"A program.", "program"};
  Words into;
  app.add_option("--text", into.text);
  CLI::App* const command = app.add_subcommand("command");
  command->add_flag("--flag", into.flag);
  words.insert(words.begin(), "program");
  const auto answer = parse(app, static_cast<int>(words.size()), words.data());
  into.command = command->parsed();
  if (stored != nullptr) *stored = into;
  return answer;
}

TEST(ParseTest, AcceptedOptionsAreStored) {
  Words stored;
  EXPECT_FALSE(parse_words({}, &stored).has_value());
  EXPECT_EQ(stored, Words{});
  EXPECT_FALSE(parse_words({"--"}, &stored).has_value());
  EXPECT_EQ(stored, Words{});
  EXPECT_FALSE(parse_words({"--text", "x", "command"}, &stored).has_value());
  EXPECT_EQ(stored, (Words{.text = "x", .command = true, .flag = false}));
  EXPECT_FALSE(parse_words({"--text", "x", "command", "--flag"}, &stored).has_value());
  EXPECT_EQ(stored, (Words{.text = "x", .command = true, .flag = true}));
}

TEST(ParseTest, ARefusedOptionIsNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases{
      {{"--text", ""}, "--text: '' is not accepted: give a value, or leave the option out"},
      {{"--text="}, "'--text=' has no value after '='"},
      {{"--text"}, "--text: its value is missing"},
      {{"--text", "a", "--text", "b"}, "--text is given 2 times: give it once"},
      {{"--none"}, "'--none' is not an option here; the commands are command"},
      {{"one", "two"}, "'one' is not expected here; the commands are command"},
      {{"command", "--flag=maybe"}, "--flag takes no value"},
      {{"command", "--flag=false"}, "--flag takes no value"},
      {{"--", "one"}, "'one' is not expected here; the commands are command"},
      {{"command", "--text", "x"}, "'--text' is not an option here"},
      {{"command", "\x1b[2J"}, "'\\x1b[2J' is not expected here"},
  };
  for (const auto& [words, message] : cases) {
    const auto answer = parse_words(words);
    ASSERT_TRUE(answer.has_value()) << message;
    EXPECT_TRUE(answer->refused);
    EXPECT_EQ(answer->text, message + "\nRun with --help for the accepted options.");
  }
}

TEST(ParseTest, HelpHasTheExitCodes) {
  for (const auto& words : std::vector<std::vector<const char*>>{{"--help"},
                                                                 {"-h"},
                                                                 {"command", "--help"},
                                                                 {"--bogus", "--help"},
                                                                 {"--help", "--text", ""},
                                                                 {"command", "one", "-h"}}) {
    const auto answer = parse_words(words);
    ASSERT_TRUE(answer.has_value());
    EXPECT_FALSE(answer->refused);
    EXPECT_THAT(answer->text, HasSubstr("Exit codes: 0 holds, 1 violated"));
  }
}

}  // namespace
}  // namespace perfring
