#include "perfring/rings/loser_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perfring::internal {
namespace {

// Of any number of leaves, each winner is the smallest, and second() the smallest of the others.
TEST(LoserTreeTest, TheSmallestWins) {
  std::uint64_t random = 1;
  for (std::size_t leaves = 1; leaves <= 70; ++leaves) {
    std::vector<std::uint64_t> words;
    for (std::size_t i = 0; i < leaves; ++i) words.push_back((1000 << 8) + i);
    LoserTree tree;
    tree.reserve(leaves);
    tree.resize(leaves);
    std::uint64_t winner = tree.play([&](std::size_t leaf) { return words[leaf]; });
    for (unsigned step = 0; step < 500; ++step) {
      ASSERT_EQ(winner, *std::min_element(words.begin(), words.end())) << leaves << " leaves";
      const std::size_t leaf = winner & 255;
      words[leaf] = ~std::uint64_t{0};
      ASSERT_EQ(tree.second(leaf), *std::min_element(words.begin(), words.end()));
      random = random * 6364136223846793005U + 1442695040888963407U;
      words[leaf] = (random >> 50) << 8 | leaf;
      winner = tree.replace(leaf, words[leaf]);
    }
  }
}

TEST(LoserTreeTest, ItIsPlayedAnew) {
  LoserTree tree;
  tree.resize(3);
  EXPECT_EQ(tree.play([](std::size_t leaf) { return 10 + leaf; }), 10U);
  EXPECT_EQ(tree.play([](std::size_t leaf) { return 30 - leaf; }), 28U);
}

}  // namespace
}  // namespace perfring::internal
