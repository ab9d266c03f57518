#ifndef PERFRING_RING_DEFAULT_MEMORY_H_
#define PERFRING_RING_DEFAULT_MEMORY_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// DefaultMemory: TsanMemory in a build with ThreadSanitizer, otherwise HardwareMemory. This is the
// core's only choice by macro: no other build can link the functions that
// <sanitizer/tsan_interface.h> declares.

#if defined(__SANITIZE_THREAD__)
#define PERFRING_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERFRING_TSAN 1
#endif
#endif

#ifdef PERFRING_TSAN
#include "perfring/ring/tsan_memory.h"
#else
#include "perfring/ring/hardware_memory.h"
#endif

namespace perfring {

#ifdef PERFRING_TSAN
using DefaultMemory = TsanMemory;
#else
using DefaultMemory = HardwareMemory;
#endif

}  // namespace perfring

#undef PERFRING_TSAN

#endif
#endif  // PERFRING_RING_DEFAULT_MEMORY_H_
