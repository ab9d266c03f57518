#include "harness/bench/race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace perfring::bench {
namespace {

TEST(MedianTest, NoValuesGiveNaN) {
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(MedianTest, AnOddNumberOfValuesGivesTheMiddleOne) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({1000, 3, 1, 2, 4}), 3);
}

TEST(MedianTest, EvenCountGivesMeanOfMiddleTwo) {
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({8, 1, 2, 6}), 4);
}

// A contender that delivers `each` in a pass, and appends its name to `turns` for each turn.
Contender contender(const char* name, const Tally& each, std::string* turns = nullptr) {
  return {name, [=](unsigned passes) {
            if (turns != nullptr) *turns += name;
            return times(each, passes);
          }};
}

TEST(RaceTest, EachRoundRunsContendersInRandomOrder) {
  const Tally one{.events = 1};
  std::string turns;
  Race race{{contender("a", one, &turns), contender("b", one, &turns), contender("c", one, &turns)},
            one};
  std::map<std::string, int> rounds;
  for (int i = 0; i < 600; ++i) {
    turns.clear();
    race.round();
    ++rounds[turns];
  }
  // Each of the six orders occurs, with about the same frequency.
  for (const char* const order :
       {"aaabbbccc", "aaacccbbb", "bbbaaaccc", "bbbcccaaa", "cccaaabbb", "cccbbbaaa"}) {
    EXPECT_NEAR(rounds[order], 100, 50) << order;
  }
}

TEST(RaceTest, AContenderThatDeliversSomethingElseIsNamed) {
  const Tally expected{.events = 3, .bytes = 36, .sum = 9};
  Tally other = expected;
  ++other.bytes;
  Race race{{contender("right", expected), contender("liar", other)}, expected};
  EXPECT_FALSE(race.wrong());
  race.round();
  EXPECT_EQ(race.wrong(), "liar");
}

TEST(RaceTest, TimesAreDividedByTheNumberOfEvents) {
  const Tally million{.events = 1'000'000};
  Race race{{contender("instant", million)}, million};
  EXPECT_TRUE(std::isnan(race.ns("instant")));
  race.round();
  EXPECT_GT(race.ns("instant"), 0);
  EXPECT_LT(race.ns("instant"), 1'000);  // at 1000 ns a pass would take a second
  EXPECT_TRUE(std::isnan(race.ns("nobody")));
}

}  // namespace
}  // namespace perfring::bench
