#ifndef HARNESS_PROGRAM_SANITIZERS_H_
#define HARNESS_PROGRAM_SANITIZERS_H_

// The sanitizers that a program is built with, and functions that mark bytes as not to be touched.

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define PERFRING_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PERFRING_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define PERFRING_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERFRING_TSAN 1
#endif
#endif

#if defined(__has_feature)  // g++ has no macro for this one
#if __has_feature(undefined_behavior_sanitizer)
#define PERFRING_UBSAN 1
#endif
#endif

#ifdef PERFRING_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef PERFRING_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace perfring {

#ifdef PERFRING_TSAN
inline constexpr bool kReportsRaces = true;
#else
inline constexpr bool kReportsRaces = false;
#endif

#if defined(PERFRING_ASAN) || defined(PERFRING_TSAN) || defined(PERFRING_UBSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#ifdef PERFRING_ASAN
inline constexpr bool kPoisons = true;
inline void poison(const std::byte* from, std::size_t size) {
  __asan_poison_memory_region(from, size);
}
inline void unpoison(const std::byte* from, std::size_t size) {
  __asan_unpoison_memory_region(from, size);
}
#else
inline constexpr bool kPoisons = false;
inline void poison(const std::byte*, std::size_t) {}
inline void unpoison(const std::byte*, std::size_t) {}
#endif

}  // namespace perfring

#endif  // HARNESS_PROGRAM_SANITIZERS_H_
