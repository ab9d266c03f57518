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

// A word is (key - base + 1) << bits | ring. It is 0 << bits | ring if the key is lower than the
// base, far() << bits | ring if it is too high to fit, and none() << bits | ring if the ring has no
// record. These three are below or above all others; when one of them wins, the base is to be
// chosen anew.
class KeyWords {
 public:
  void have_rings(std::size_t rings) noexcept {
    while (std::size_t{1} << bits_ < rings) ++bits_;
  }

  // Chooses the base: the lowest key, and room for some that are lower.
  void rebase(std::uint64_t lowest) noexcept {
    const std::uint64_t margin = far() / 4;
    base_ = lowest > margin ? lowest - margin : 0;
    // No key is so low that it seems to be high above.
    reach_ = smaller(far() - 2, ~base_) + 1;
    first_ = std::uint64_t{1} << bits_;
    ring_mask_ = static_cast<std::uint32_t>(first_ - 1);
  }
  // From the base on, the words of keys lower than `bound` are released (M2), or all that fit.
  void release_below(std::uint64_t bound) noexcept { release_to(word(true, bound, 0)); }
  void release_all() noexcept { release_to(far() << bits_); }

  std::uint64_t base() const noexcept { return base_; }

  [[gnu::always_inline]] std::uint64_t word(bool any, std::uint64_t key,
                                            std::size_t ring) const noexcept {
    const std::uint64_t distance = key - base_;
    if (any && distance < reach_) [[likely]]
      return (distance + 1) << bits_ | ring;
    return odd_word(any, key) << bits_ | ring;
  }
  [[gnu::always_inline]] std::uint64_t even_word(std::uint64_t key,
                                                 std::size_t ring) const noexcept {
    const std::uint64_t distance = key - base_;
    if (distance < reach_) [[likely]]
      return (distance << bits_) + first_ + ring;
    return odd_word(true, key) << bits_ | ring;
  }
  std::size_t ring_of(std::uint64_t word) const noexcept {
    return static_cast<std::uint32_t>(word) & ring_mask_;
  }
  bool is_none(std::uint64_t word) const noexcept { return word >> bits_ == none(); }
  // Whether the key is neither too low nor too high: then no ring has a lower one.
  bool fits(std::uint64_t word) const noexcept {
    return word >> bits_ != 0 && word >> bits_ != far();
  }
  // Neither too low nor too high.
  [[gnu::always_inline]] bool is_released(std::uint64_t word) const noexcept {
    return word - first_ < released_;
  }

  // How far above the base the keys of `ring` are less than, whose words are released and lower
  // than `other`.
  [[gnu::always_inline]] std::uint64_t span_below(std::uint64_t other,
                                                  std::size_t ring) const noexcept {
    const std::uint64_t until = other < end_ ? other : end_;
    return smaller(reach_, (until >> bits_) - (ring < ring_of(until) ? 0 : 1));
  }

 private:
  std::uint64_t none() const noexcept { return ~std::uint64_t{0} >> bits_; }
  std::uint64_t far() const noexcept { return none() - 1; }
  std::uint64_t odd_word(bool any, std::uint64_t key) const noexcept {
    if (!any) return none();
    return key < base_ ? 0 : far();
  }
  void release_to(std::uint64_t end) noexcept {
    end_ = end < first_ ? first_ : end;
    released_ = end_ - first_;
  }

  unsigned bits_ = 1;  // of a ring's number
  std::uint64_t base_ = 0;
  std::uint64_t reach_ = 0;     // above base_: keys that fit
  std::uint64_t first_ = 0;     // the lowest word of base_
  std::uint64_t end_ = 0;       // words from here on are not released
  std::uint64_t released_ = 0;  // words from first_ on are
  std::uint32_t ring_mask_ = 1;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_KEY_WORDS_H_
