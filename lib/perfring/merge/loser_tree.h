#ifndef PERFRING_MERGE_LOSER_TREE_H_
#define PERFRING_MERGE_LOSER_TREE_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// LoserTree: finds the smallest of many words, where one word at a time changes. Internal to Merge.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perfring::internal {

// A tournament among `leaves` words, which the smallest wins. The root is nodes_[1], the parent of
// node n is n / 2, and leaf i would be node leaves + i. Each node holds the word that lost there,
// so a new word in the winner's leaf plays one match on each level, without a branch.
class LoserTree {
 public:
  // Sets the number of leaves. Does not allocate if that many were reserved.
  void resize(std::size_t leaves) {
    nodes_.resize(leaves);
    leaves_ = leaves;
  }
  void reserve(std::size_t leaves) { nodes_.reserve(leaves); }

  // Plays all matches among value(0), value(1) ... and returns the winner. No value may be all
  // ones.
  template <class Value>
  std::uint64_t play(Value&& value) {
    for (std::uint64_t& node : nodes_) node = kNobody;
    std::uint64_t winner = kNobody;
    for (std::size_t leaf = 0; leaf != nodes_.size(); ++leaf) {
      winner = value(leaf);
      // The first word to reach a node waits there for the second.
      for (std::size_t n = parent_of(leaf); n != 0; n /= 2) {
        if (nodes_[n] == kNobody) {
          nodes_[n] = winner;
          break;
        }
        winner = match(nodes_[n], winner);
      }
    }
    return winner;
  }

  // Puts `value` into the leaf that won. Returns the new winner.
  [[gnu::always_inline]] std::uint64_t replace(std::size_t leaf, std::uint64_t value) {
    std::uint64_t* const nodes = nodes_.data();
    std::size_t n = parent_of(leaf);
    if (n == 0) [[unlikely]]
      return value;  // the only leaf
    do {
      value = match(nodes[n], value);
    } while ((n >>= 1) != 0);
    return value;
  }

  // Returns the smallest word other than the winner; all ones if there is only one leaf.
  [[gnu::always_inline]] std::uint64_t second(std::size_t leaf) const {
    const std::uint64_t* const nodes = nodes_.data();
    std::uint64_t smallest = ~std::uint64_t{0};
    for (std::size_t n = parent_of(leaf); n != 0; n /= 2) {
      smallest = nodes[n] < smallest ? nodes[n] : smallest;
    }
    return smallest;
  }

 private:
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  std::size_t parent_of(std::size_t leaf) const noexcept { return (leaves_ + leaf) / 2; }

  // Leaves the loser in the node and returns the winner.
  [[gnu::always_inline]] static std::uint64_t match(std::uint64_t& node,
                                                    std::uint64_t value) noexcept {
    const std::uint64_t other = node;
    // Written so that it compiles to one comparison and two moves: 9 instructions a match, not 11.
    std::uint64_t loser = value;
    if (value < other) loser = other;
    if (other <= value) value = other;
    node = loser;
    return value;
  }

  std::vector<std::uint64_t> nodes_;  // as many as there are leaves
  std::size_t leaves_ = 0;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_LOSER_TREE_H_
