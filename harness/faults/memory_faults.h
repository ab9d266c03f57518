#ifndef HARNESS_FAULTS_MEMORY_FAULTS_H_
#define HARNESS_FAULTS_MEMORY_FAULTS_H_

// Memory policies with one fault each: a mixin over any perfring::Memory.

#include <linux/perf_event.h>

#include <cstddef>
#include <type_traits>

#include "perfring/ring/memory.h"

namespace perfring::faults {

// Edge C of lib/perfring/ring/memory.h is missing.
template <class M>
struct NoAcquireFence : M {
  static void fence_after_read_of(const SharedPosition&) noexcept {}
};

// Edge D is missing.
template <class M>
struct NoFullFence : M {
  static void fence_before_write_of(const SharedPosition&) noexcept {}
};

template <class M>
struct TailBehind : M {
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    M::write_once(data_tail, value - 8);
  }
};

template <class M>
struct CommitsOffTheGrid : M {
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    M::write_once(data_tail, value - 4);
  }
};

// The load is there, for a policy that counts accesses.
template <class M>
struct NeverCommits : M {
  static void write_once(SharedPosition& data_tail, SharedPosition) {
    static_cast<void>(
        M::template read<SharedPosition>(reinterpret_cast<const std::byte*>(&data_tail)));
  }
};

// An int where a u32 is: large raw sizes pass for small ones.
template <class M>
struct DropsTheSign : M {
  template <class T>
  static T read(const std::byte* address) {
    const T value = M::template read<T>(address);
    return sizeof(T) == 4 ? value & 0x7fff'ffff : value;
  }
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_MEMORY_FAULTS_H_
