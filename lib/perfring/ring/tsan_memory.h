#ifndef PERFRING_RING_TSAN_MEMORY_H_
#define PERFRING_RING_TSAN_MEMORY_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

#include <sanitizer/tsan_interface.h>

#include "perfring/ring/hardware_memory.h"
#include "perfring/ring/memory.h"

namespace perfring {

// HardwareMemory, plus the two happens-before edges that ThreadSanitizer cannot infer because it
// does not model fences. Each edge is announced on the location that the fence names, where it
// meets the producer's acquire or release. Removing a fence therefore removes its edge.
struct TsanMemory : HardwareMemory {
  static void fence_after_read_of(const SharedPosition& field) noexcept {
    HardwareMemory::fence_after_read_of(field);
    __tsan_acquire(const_cast<SharedPosition*>(&field));
  }

  static void fence_before_write_of(const SharedPosition& field) noexcept {
    HardwareMemory::fence_before_write_of(field);
    __tsan_release(const_cast<SharedPosition*>(&field));
  }
};

static_assert(Memory<TsanMemory>);

}  // namespace perfring

#endif
#endif  // PERFRING_RING_TSAN_MEMORY_H_
