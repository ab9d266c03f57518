#ifndef HARNESS_RIG_CHECKED_MEMORY_H_
#define HARNESS_RIG_CHECKED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"

namespace perfring::rig {

// Sees each access of a drain before it happens.
class MemoryObserver {
 public:
  virtual void on_read(const std::byte* address, std::size_t size) = 0;
  virtual void on_commit(SharedPosition data_tail) = 0;

 protected:
  ~MemoryObserver() = default;
};

// This machine's memory, and an observer. A policy has no object, so the observer is a variable.
// For one thread that plays all parts: nothing else runs between two accesses, as it does with
// SimulatedMemory of harness/simulator.
struct CheckedMemory : DefaultMemory {
  static inline constinit MemoryObserver* observer = nullptr;

  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    if (observer != nullptr) observer->on_commit(value);
    DefaultMemory::write_once(data_tail, value);
  }
  static void sees_read(const std::byte* address, std::size_t size) {
    if (observer != nullptr) observer->on_read(address, size);
  }
  template <class T>
  static T read(const std::byte* address) {
    sees_read(address, sizeof(T));
    return DefaultMemory::read<T>(address);
  }
};
static_assert(Memory<CheckedMemory>);

// Drains observed from here on, until the end of this scope; scopes nest.
class Observing {
 public:
  explicit Observing(MemoryObserver& observer)
      : before_{std::exchange(CheckedMemory::observer, &observer)} {}
  ~Observing() { CheckedMemory::observer = before_; }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  MemoryObserver* const before_;
};

}  // namespace perfring::rig

#endif  // HARNESS_RIG_CHECKED_MEMORY_H_
