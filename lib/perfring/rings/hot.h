#ifndef PERFRING_RINGS_HOT_H_
#define PERFRING_RINGS_HOT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// What changes of a ring with each record that is read: whoever reads many has it in registers.
// Internal to Merge.

#include <cstddef>
#include <cstdint>

#include "perfring/rings/window.h"

namespace perfring::internal {

// Keeps g++ from making vectors of words that stand side by side, which it then has to take apart
// again for each record: 1.25 times as long in runs.
template <class T>
T apart(T word) noexcept {
  asm("" : "+r"(word));
  return word;
}

struct Hot : Front {
  const std::byte* at;         // of what is read next
  const std::byte* stop;       // where its piece ends
  std::uint64_t last_key = 0;  // of what was read last
  bool has_last_key = false;

  // What `other` has of reading.
  [[gnu::always_inline]] void continue_from(const Hot& other) noexcept {
    at = other.at;
    stop = other.stop;
    last_key = other.last_key;
    has_last_key = other.has_last_key;
  }
  // The same in registers, with what was read meanwhile.
  [[gnu::always_inline]] Held resume(const Hot& other, const Held& held) noexcept {
    at = apart(other.at);
    stop = apart(other.stop);
    last_key = apart(other.last_key);
    has_last_key = other.has_last_key;
    return {apart(held.key), apart(held.place)};
  }
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_HOT_H_
