#include "harness/program/console.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/program/child_process.h"

namespace perfring {
namespace {

TEST(PrintableTest, PrintableTextIsUnchanged) {
  for (const std::string text : {"plain", "two\nlines", "Grüße, 世界 🙂", ""}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(PrintableTest, WhatATerminalActsOnIsEscaped) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"\x1b]0;title\a", "\\x1b]0;title\\x07"},
      {"a\rb\tc\x7f", "a\\x0db\\x09c\\x7f"},
      {std::string{"a\0b", 3}, "a\\x00b"},
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},                             // U+009B, which begins a sequence, too
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"},           // U+202E, right to left from here on
      {"\xff\xc3", "\\xff\\xc3"},                    // no UTF-8, and half of a character
      {"\xc0\xaf", "\\xc0\\xaf"},                    // longer than it needs to be
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},  // beyond Unicode
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable(text), shown);
}

TEST(InQuotesTest, ControlCharactersAreEscapedAndLongTextIsCut) {
  EXPECT_EQ(in_quotes("a\nb"), "'a\\x0ab'");
  EXPECT_EQ(in_quotes(std::string(201, 'x')), "'" + std::string(200, 'x') + "...'");
}

// Returns a word as a shell reads it.
std::string echoed_by(const std::string& shell, const std::string& word) {
  return run_child({shell, "-c", "printf %s " + word}).out;
}

TEST(ShellWordTest, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(shell_word("seed-1.trace"), "seed-1.trace");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ShellWordTest, AShellReadsTheTextBack) {
  for (const std::string text : {"two words", "it's of $HOME", "Grüße", "*?[a]", ";|&<>(){}#~!"}) {
    EXPECT_EQ(echoed_by("/bin/sh", shell_word(text)), text) << shell_word(text);
  }
}

TEST(ShellWordTest, ControlCharactersAreWrittenAsEscapesThatBashReadsBack) {
  const std::string text = "x\x1b]0;it's\a\n7\xff";
  const std::string word = shell_word(text);
  EXPECT_EQ(printable(word), word);
  EXPECT_EQ(echoed_by("/bin/bash", word), text);
}

}  // namespace
}  // namespace perfring
