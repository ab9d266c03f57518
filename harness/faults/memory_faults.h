#ifndef HARNESS_FAULTS_MEMORY_FAULTS_H_
#define HARNESS_FAULTS_MEMORY_FAULTS_H_

// Memory policies with one fault each: mixins over any perfring::Memory.

#include <linux/perf_event.h>

#include <cstddef>
#include <type_traits>

#include "perfring/ring/memory.h"
#include "perfring/testing/missing_edges.h"

namespace perfring::faults {

// Edge C or edge D of lib/perfring/ring/memory.h is missing.
using testing::NoAcquireFence;
using testing::NoFullFence;

// The fence is on the wrong side of the read.
template <class M>
struct AcquireFenceFirst : M {
  static Position read_once(const SharedPosition& data_head) {
    M::fence_after_read_of(data_head);
    return M::read_once(data_head);
  }
  static void fence_after_read_of(const SharedPosition&) noexcept {}
};

// The fence follows a first read of data_head, but the drain uses a second read.
template <class M>
struct HeadReadAgain : M {
  static Position read_once(const SharedPosition& data_head) {
    M::read_once(data_head);
    M::fence_after_read_of(data_head);
    return M::read_once(data_head);
  }
  static void fence_after_read_of(const SharedPosition&) noexcept {}
};

// Commits data_tail, with every fence, as soon as data_head is known.
template <class M>
struct CommitsBeforeReading : M {
  static void fence_after_read_of(const SharedPosition& data_head) noexcept {
    M::fence_after_read_of(data_head);
    // The two fields are neighbors in the control page.
    static_assert(offsetof(perf_event_mmap_page, data_tail) ==
                  offsetof(perf_event_mmap_page, data_head) + sizeof(SharedPosition));
    auto& data_tail = const_cast<SharedPosition&>(*(&data_head + 1));
    M::fence_before_write_of(data_tail);
    const auto tail =
        M::template read<SharedPosition>(reinterpret_cast<const std::byte*>(&data_tail));
    const Position ahead = M::read_once(data_head) - static_cast<Position>(tail);
    M::write_once(data_tail, tail + ahead);
  }
};

template <class M>
struct TailTooLow : M {
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    M::write_once(data_tail, value - 8);
  }
};

template <class M>
struct TailTooHigh : M {
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    M::write_once(data_tail, value + 8);
  }
};

template <class M>
struct CommitsUnaligned : M {
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    M::write_once(data_tail, value - 4);
  }
};

// Loads data_tail instead, for policies that count accesses.
template <class M>
struct NeverCommits : M {
  static void write_once(SharedPosition& data_tail, SharedPosition) {
    static_cast<void>(
        M::template read<SharedPosition>(reinterpret_cast<const std::byte*>(&data_tail)));
  }
};

// Works as if S11 did not exist: a data_head that went back counts as damage, and everything up to
// it is skipped. (The core sees a data_head that is half of all positions ahead, which is damage in
// any ring.)
template <class M>
struct TreatsRetreatAsDamage : M {
  static Position read_once(const SharedPosition& data_head) {
    const Position head = M::read_once(data_head);
    const auto tail = static_cast<Position>(
        M::template read<SharedPosition>(reinterpret_cast<const std::byte*>(&data_head + 1)));
    back = tail - head;
    const bool went_back = back != 0 && back < kHalf && (head | tail) % 8 == 0;
    if (!went_back) back = 0;
    return went_back ? tail + kHalf + 8 : head;
  }
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    const SharedPosition to_head = (SharedPosition{kHalf} << 1) - back;
    M::write_once(data_tail, back == 0 ? value : value - kHalf - 8 + to_head);
  }

 private:
  static constexpr Position kHalf = Position{1} << 31;
  static inline thread_local Position back = 0;  // how far data_head went back in this drain
};

// Reports a read to a Memory that watches reads. Does not read, because the address may not be
// mapped.
template <class M>
void stray_read(const std::byte* address, std::size_t size) {
  if constexpr (requires { M::note_read(address, size); }) M::note_read(address, size);
}

// Reads at an address one page too low. In a ring of one page this is the control page.
template <class M>
struct Underreads : M {
  template <class T>
  static T read(const std::byte* address) {
    if constexpr (sizeof(T) == 4) stray_read<M>(address - 4096, sizeof(T));
    return M::template read<T>(address);
  }
};

template <class M>
struct Overreads : M {
  template <class T>
  static T read(const std::byte* address) {
    if constexpr (sizeof(T) == 4) stray_read<M>(address + 256, sizeof(T));
    return M::template read<T>(address);
  }
};

template <class M>
struct ShortensSamples : M {
  template <class T>
  static T read(const std::byte* address) {
    const T value = M::template read<T>(address);
    if constexpr (sizeof(T) == 4) return value - 4;
    return value;
  }
};

// Uses an int in place of a u32: large raw sizes pass for small ones.
template <class M>
struct IgnoresTopSizeBit : M {
  template <class T>
  static T read(const std::byte* address) {
    const T value = M::template read<T>(address);
    return sizeof(T) == 4 ? value & 0x7fff'ffff : value;
  }
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_MEMORY_FAULTS_H_
