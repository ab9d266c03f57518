#ifndef PERFRING_MERGE_KEY_WORDS_H_
#define PERFRING_MERGE_KEY_WORDS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// KeyWords: packs a key and its ring into one word, which a LoserTree compares (W18). Internal to
// Merge.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

#include <cstddef>
#include <cstdint>

#include "perfring/ring/wire.h"

namespace perfring::internal {

// A word is (key - base) << bits | ring. It is far() << bits | ring if the key is too high to fit,
// and none() << bits | ring if the ring has no record. When a far word wins, the base must be
// chosen anew. The word of a key below the base is just `ring`, so that it wins at once. This is
// correct: a key can be so low only if its record was read after one that has just been delivered,
// so it is released, as that one was, and no other ring has such a key at that time.
class KeyWords {
 public:
  // Sets the number of rings. No ring's number is all ones, so no word is.
  void set_ring_count(std::size_t rings) noexcept {
    while (std::size_t{1} << bits_ <= rings) ++bits_;
    ring_mask_ = (std::uint32_t{1} << bits_) - 1;
  }

  // Chooses the base: the lowest key, minus room for some lower keys.
  void rebase(std::uint64_t lowest) noexcept {
    const std::uint64_t margin = far() / 4;
    base_ = lowest > margin ? lowest - margin : 0;
    // A difference that wraps around must not look like a key that fits.
    reach_ = smaller(far() - 1, ~base_) + 1;
  }
  // Release the words of all keys lower than `bound` (M2), or all words of keys that fit.
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
  // Returns true if the base must be chosen anew when `word` wins.
  bool needs_rebase(std::uint64_t word) const noexcept { return word >> bits_ == far(); }

  // Returns the lowest key with which a word of `ring` is not released, or not lower than `other`.
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

  unsigned bits_ = 1;  // in a ring's number
  std::uint32_t ring_mask_ = 1;
  std::uint64_t base_ = 0;
  std::uint64_t reach_ = 0;  // the number of keys from base_ on that fit
  std::uint64_t end_ = 0;    // the lowest word that is not released
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_KEY_WORDS_H_
