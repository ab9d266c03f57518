#ifndef PERFRING_TESTING_OPERATOR_NEW_H_
#define PERFRING_TESTING_OPERATOR_NEW_H_

// Replaces the operator new of a program with one that counts, and that may run out of memory. For
// one source of the program alone: a replacement must not be inline.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace perfring::testing {

inline std::atomic<std::size_t> allocations = 0;
// Asked by each operator new, which throws std::bad_alloc if the answer is true.
inline bool (*is_out_of_memory)() noexcept = nullptr;

}  // namespace perfring::testing

// (noinline: once inlined, a new that is a malloc would get a warning for its delete that is a
// free.)
[[gnu::noinline]] void* operator new(std::size_t size) {
  namespace testing = perfring::testing;
  ++testing::allocations;
  const bool out = testing::is_out_of_memory != nullptr && testing::is_out_of_memory();
  void* const memory = out ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#endif  // PERFRING_TESTING_OPERATOR_NEW_H_
