#ifndef PERFRING_RING_HARDWARE_MEMORY_H_
#define PERFRING_RING_HARDWARE_MEMORY_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

#include <bit>
#include <cstddef>
#include <cstdint>

#include "perfring/ring/memory.h"

namespace perfring {

// The Memory of the hardware: plain loads and stores, and the processor's own fences.
struct HardwareMemory {
  static Position read_once(const SharedPosition& field) noexcept {
    if constexpr (sizeof(void*) >= sizeof(SharedPosition)) {
      return static_cast<Position>(__atomic_load_n(&field, __ATOMIC_RELAXED));
    } else {
      // A 32-bit process loads 64 bits in two halves, and the kernel may write between the two.
      return __atomic_load_n(low_word(&field), __ATOMIC_RELAXED);
    }
  }

  static void write_once(SharedPosition& field, SharedPosition value) noexcept {
    if constexpr (sizeof(void*) >= sizeof(SharedPosition)) {
      __atomic_store_n(&field, value, __ATOMIC_RELAXED);
    } else {
      // The kernel uses data_tail modulo the ring's size, so only the low half must be one store.
      *const_cast<volatile SharedPosition*>(&field) = value;
    }
  }

  static void fence_after_read_of(const SharedPosition&) noexcept {
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  }

  static void fence_before_write_of(const SharedPosition&) noexcept {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }

  template <class T>
  static T read(const std::byte* address) noexcept {
    typedef T Aliasing __attribute__((may_alias));
    return *reinterpret_cast<const volatile Aliasing*>(address);
  }

 private:
  static const Position* low_word(const SharedPosition* field) noexcept {
    typedef Position Aliasing __attribute__((may_alias));
    constexpr std::size_t index = std::endian::native == std::endian::little ? 0 : 1;
    return reinterpret_cast<const Aliasing*>(field) + index;
  }
};

static_assert(Memory<HardwareMemory>);

}  // namespace perfring

#endif
#endif  // PERFRING_RING_HARDWARE_MEMORY_H_
