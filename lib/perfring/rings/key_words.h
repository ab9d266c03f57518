#ifndef PERFRING_RINGS_KEY_WORDS_H_
#define PERFRING_RINGS_KEY_WORDS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// A key and its ring in one word, which a LoserTree compares (W18). Internal to Merge.
// W: facts that were measured, in the project's harness/RINGS_FACTS.md.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/wire.h"

namespace perfring::internal {

// A word is (key - base) << bits | ring; far() << bits | ring if the key is too high to fit, and
// none() << bits | ring if the ring has no record. When a far one wins, the base is to be chosen
// anew. A key below the base has the word `ring`: it wins at once, since a key can only be so low
// if it was read behind one that has just been delivered, and is released, as that was; no other
// ring has one meanwhile.
class KeyWords {
 public:
  // No ring's number is all ones, and so no word is.
  void have_rings(std::size_t rings) noexcept {
    while (std::size_t{1} << bits_ <= rings) ++bits_;
    ring_mask_ = (std::uint32_t{1} << bits_) - 1;
  }

  // Chooses the base: the lowest key, and room for some that are lower.
  void rebase(std::uint64_t lowest) noexcept {
    const std::uint64_t margin = far() / 4;
    base_ = lowest > margin ? lowest - margin : 0;
    // Ensures that no key is so low that it seems to be far above.
    reach_ = smaller(far() - 1, ~base_) + 1;
  }
  // The words of keys lower than `bound` are released (M2), or all that fit.
  void release_below(std::uint64_t bound) noexcept { end_ = word(bound, 0); }
  void release_all() noexcept { end_ = far() << bits_; }

  [[gnu::always_inline]] std::uint64_t word(std::uint64_t key, std::size_t ring) const noexcept {
    const std::uint64_t distance = key - base_;
    if (distance < reach_) [[likely]]
      return (distance << bits_) + ring;
    return odd_word(key) | ring;
  }
  std::uint64_t none(std::size_t ring) const noexcept { return none() << bits_ | ring; }
  std::size_t ring_of(std::uint64_t word) const noexcept {
    return static_cast<std::uint32_t>(word) & ring_mask_;
  }
  [[gnu::always_inline]] bool is_released(std::uint64_t word) const noexcept { return word < end_; }
  // Whether the base must be chosen anew if `word` wins.
  bool are_old(std::uint64_t word) const noexcept { return word >> bits_ == far(); }

  // The lowest key of `ring` whose word is not released, or not lower than `other`.
  std::uint64_t key_at(std::uint64_t other, std::size_t ring) const noexcept {
    const std::uint64_t until = other < end_ ? other : end_;
    return base_ + smaller(reach_ - 1, (until >> bits_) + (ring < ring_of(until) ? 1 : 0));
  }

 private:
  std::uint64_t none() const noexcept { return ~std::uint64_t{0} >> bits_; }
  std::uint64_t far() const noexcept { return none() - 1; }
  std::uint64_t odd_word(std::uint64_t key) const noexcept {
    return key < base_ ? 0 : far() << bits_;
  }

  unsigned bits_ = 1;  // of a ring's number
  std::uint32_t ring_mask_ = 1;
  std::uint64_t base_ = 0;
  std::uint64_t reach_ = 0;  // above base_: keys that fit
  std::uint64_t end_ = 0;    // words from here on are not released
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_KEY_WORDS_H_
