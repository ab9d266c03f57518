#include "harness/cli/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "harness/cli/cli_testing.h"

namespace perfring::cli {
namespace {

// Returns the string literals of a source file, one per line.
std::string texts_of(const std::string& file) {
  static const std::regex comment{"//[^\n]*"};
  static const std::regex joined{"\"\\s*\n\\s*\""};
  static const std::regex text{"\"((?:[^\"\\\\]|\\\\.)*)\""};
  const std::string source =
      std::regex_replace(std::regex_replace(contents(file), comment, ""), joined, "");
  std::string all;
  for (std::sregex_iterator each{source.begin(), source.end(), text}, end; each != end; ++each) {
    all += (*each)[1].str() + "\n";
  }
  return all;
}

// In the sources of events: no command prints the texts of tracepoint_fields.cc.
TEST(OptionWordsTest, NoAdviceOfTheLibrarysNamesItsFunctions) {
  const std::regex of_the_library{
      "[a-z_]+\\(\\)|\\(\\{|\\b(Counter|Sampler|Group|OverwritableRing|PerfEventArray|RingSet|"
      "longest_wait|batch)\\b"};
  std::stringstream files{environment_variable("SOURCES")};
  std::size_t looked_at = 0;
  std::size_t changed = 0;
  for (std::string file; files >> file;) {
    const bool is_of_events =
        file.find("/event/") != file.npos || file.find("/sampler/") != file.npos;
    if (!is_of_events || !file.ends_with(".cc") || file.ends_with("/tracepoint_fields.cc")) {
      continue;
    }
    std::istringstream texts{texts_of(file)};
    for (std::string text; std::getline(texts, text); ++looked_at) {
      const std::string reworded = to_option_words(text);
      changed += reworded != text ? 1 : 0;
      if (reworded.find("execve()") != std::string::npos) continue;  // a system call
      EXPECT_FALSE(std::regex_search(reworded, of_the_library)) << file << ": " << reworded;
    }
  }
  EXPECT_GE(looked_at, 500U);
  EXPECT_GE(changed, 15U);
}

TEST(OptionWordsTest, FunctionsBecomeOptions) {
  EXPECT_EQ(to_option_words("choose: watch system(); or watch system()"),
            "choose: watch all tasks (-a); or watch all tasks (-a)");
  EXPECT_EQ(to_option_words("use another one (or_else())"), "use another one");
  EXPECT_EQ(to_option_words("raise the limit (ulimit -n)"), "raise the limit (ulimit -n)");
}

}  // namespace
}  // namespace perfring::cli
