#ifndef PROPTESTS_WATCH_H_
#define PROPTESTS_WATCH_H_

// How a run sees each access: a Cpu for the simulated kernel and a Memory for the drain, both of
// which do what this machine's do, and tell.

#include <linux/types.h>

#include <cstddef>
#include <cstdint>

#include "harness/kernel/cpu.h"
#include "harness/kernel/ring_buffer.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"

namespace perfring::proptests {

class Watcher {
 public:
  virtual void step() = 0;  // between two accesses of the kernel's
  virtual void reads_tail() = 0;
  virtual void reserved(std::uint64_t position, std::uint64_t size) = 0;
  virtual void told(std::uint64_t lost) = 0;
  virtual void refused() = 0;
  virtual void published(std::uint64_t data_head) = 0;

  virtual void committed(std::uint64_t data_tail) = 0;
  virtual void read(const std::byte* address, std::size_t size) = 0;

 protected:
  ~Watcher() = default;
};

struct WatchedCpu : kernel::HardwareCpu {
  Watcher* watcher = nullptr;

  void step() { watcher->step(); }
  __u64 read_once(const __u64& data_tail) const {
    watcher->reads_tail();
    return HardwareCpu::read_once(data_tail);
  }
  void write_once(__u64& field, __u64 value) {
    watcher->published(value);
    HardwareCpu::write_once(field, value);
  }
  void reserved(const kernel::perf_buffer&, __u64 position, std::size_t size) {
    watcher->reserved(position, size);
  }
  void told(const kernel::perf_buffer&, __u64 lost) { watcher->told(lost); }
  void lost(const kernel::perf_buffer&, const kernel::perf_event&) { watcher->refused(); }
};

// A policy has no object, so who watches is a variable. The tests have one thread.
struct WatchedMemory : DefaultMemory {
  static inline constinit Watcher* watcher = nullptr;

  static void write_once(SharedPosition& field, SharedPosition value) {
    if (watcher != nullptr) watcher->committed(value);
    DefaultMemory::write_once(field, value);
  }
  template <class T>
  static T read(const std::byte* address) {
    if (watcher != nullptr) watcher->read(address, sizeof(T));
    return DefaultMemory::read<T>(address);
  }
};

static_assert(kernel::Cpu<WatchedCpu>);
static_assert(Memory<WatchedMemory>);

}  // namespace perfring::proptests

#endif  // PROPTESTS_WATCH_H_
