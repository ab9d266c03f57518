#ifndef PERFRING_RINGS_WINDOW_H_
#define PERFRING_RINGS_WINDOW_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// The records of a ring that were read and not delivered, in the order of their keys (M3, in
// merge.h): the front, which is delivered next, and behind it the window. So it is known which
// record comes after the front before another one is read. Internal to Merge.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "perfring/ring/wire.h"

namespace perfring::internal {

// A record that was read, checked and not delivered; or none. Two words, so that it is returned,
// and kept, in registers.
struct Held {
  // Beside the kinds of Malformed, which are kMalformed + Defect.
  static constexpr std::uint32_t kSample = 0;
  static constexpr std::uint32_t kLost = 1;
  static constexpr std::uint32_t kMalformed = 2;
  static constexpr std::uint32_t kKinds = kAlignment - 1;  // the bits that no index needs

  // `index` is that in the ring's data, `length` that of a Sample's raw bytes, or of a Malformed's.
  static Held of(std::uint64_t key, std::size_t index, std::uint32_t kind, std::size_t length) {
    return {key, std::uint64_t{length} << 32 | index | kind};
  }
  static constexpr Held none() noexcept { return {0, ~std::uint64_t{0}}; }

  bool is_none() const noexcept { return place == none().place; }
  std::size_t index() const noexcept { return static_cast<std::uint32_t>(place) & ~kKinds; }
  std::uint32_t kind() const noexcept { return static_cast<std::uint32_t>(place) & kKinds; }
  std::uint32_t length() const noexcept { return static_cast<std::uint32_t>(place >> 32); }

  std::uint64_t key;
  std::uint64_t place;
};

// The front, and where the window begins: what changes with each record, so that whoever takes many
// has it in registers. Keys and places are kept apart, here and in the window, or compilers copy
// both words by way of vectors.
struct Front {
  std::uint64_t key;
  unsigned first = 0;  // of the window, modulo its length
  unsigned count = 0;  // in the window
  std::uint64_t place;

  Held held() const noexcept { return {key, place}; }
  void hold(const Held& held) noexcept {
    key = held.key;
    place = held.place;
  }
};

// Keeps g++ from making vectors of words that stand side by side, which it then has to take apart
// again for each record: 1.25 times as long in runs.
template <class T>
T apart(T word) noexcept {
  asm("" : "+r"(word));
  return word;
}

// The part of a ring's state that each record changes. A loop over many keeps it in registers.
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

template <unsigned kLength>
class Window {
  static_assert(std::has_single_bit(kLength) && kLength <= 64,
                "a window is 1, 2, 4 .. or 64 records long");

 public:
  // The i-th, modulo the length: from front.first on there are front.count.
  void set(unsigned i, const Held& held) noexcept {
    keys_[i % kLength] = held.key;
    places_[i % kLength] = held.place;
  }
  Held at(unsigned i) const noexcept { return {keys_[i % kLength], places_[i % kLength]}; }
  std::uint64_t key_at(unsigned i) const noexcept { return keys_[i % kLength]; }

  // Before the first is taken in a run: while there is room for another, so that the front is the
  // lowest of as many as the window is long. Returns whether it comes before what is held.
  bool fill(const Held& another, Front& front) noexcept {
    if (front.held().is_none()) {
      front.hold(another);
      return false;
    }
    if (front.count + 1 == kLength || another.key >= front.key) return put(another, front);
    set(--front.first, front.held());
    front.hold(another);
    ++front.count;
    return true;
  }
  static bool has_room(const Front& front) noexcept { return front.count != kLength; }

  // The window's lowest takes the front's place, and `another`, unless it is none, its own in the
  // window. Returns whether it comes before what is held.
  [[gnu::always_inline]] bool advance(const Held& another, Front& front) noexcept {
    const unsigned first = front.first;
    if (front.count == kLength && !another.is_none() &&
        (kLength == 1 || another.key >= key_at(first - 1))) [[likely]] {
      // The window's first leaves its place to the one that is its last from now on.
      front.hold(at(first));
      set(first, another);
      front.first = first + 1;
      return false;
    }
    if (front.count == 0) {
      front.hold(another);
      return false;
    }
    front.hold(at(front.first++));
    --front.count;
    return !another.is_none() && put(another, front);
  }

 private:
  // Where its key belongs: behind those that are equal.
  [[gnu::always_inline]] bool put(const Held& held, Front& front) noexcept {
    unsigned place = front.first + front.count++;
    const unsigned last = place;
    for (; place != front.first && held.key < key_at(place - 1); --place) set(place, at(place - 1));
    set(place, held);
    return place != last;
  }
  std::array<std::uint64_t, kLength> keys_;
  std::array<std::uint64_t, kLength> places_;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_WINDOW_H_
