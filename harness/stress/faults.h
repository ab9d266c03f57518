#ifndef HARNESS_STRESS_FAULTS_H_
#define HARNESS_STRESS_FAULTS_H_

// Producers and consumers that do one thing wrong with the memory that they share: each a
// kernel::Cpu under a Producer, or the Memory of a Consumer. A to D are the edges in
// lib/perfring/ring/memory.h.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"
#include "perfring/ring/default_memory.h"

namespace perfring::stress {

// No A: the record may be written before data_tail said that there is room.
struct NoControlDependency : kernel::HardwareCpu {
  void control_dependency(const __u64&) {}
};

// No B: data_head may be seen before the record.
struct NoSmpWmb : kernel::HardwareCpu {
  void smp_wmb(const __u64&) {}
};

// data_head is published when the record is reserved.
struct PublishesFirst : kernel::HardwareCpu {
  void on_reserve(const kernel::perf_buffer& rb, __u64, std::size_t) {
    smp_wmb(rb.user_page->data_head);
    write_once(rb.user_page->data_head, rb.head);
  }
};

// Inner writers publish too, and with that what the outer one has not finished.
struct PublishesNested : kernel::HardwareCpu {
  const kernel::perf_buffer* buffer = nullptr;
  void on_reserve(const kernel::perf_buffer& rb, __u64, std::size_t) { buffer = &rb; }
  void step() {
    if (buffer == nullptr || buffer->nest < 2) return;
    smp_wmb(buffer->user_page->data_head);
    write_once(buffer->user_page->data_head, buffer->head);
  }
};

// Takes the room of what is unread for free: reads data_tail as if all were read.
struct IgnoresTail : kernel::HardwareCpu {
  const kernel::perf_buffer* buffer = nullptr;
  void on_reserve(const kernel::perf_buffer& rb, __u64, std::size_t) { buffer = &rb; }
  __u64 read_once(const __u64& data_tail) const {
    return buffer != nullptr ? buffer->head : HardwareCpu::read_once(data_tail);
  }
};

// Wakes the consumer when the record is reserved, not when it is published.
struct WakesFirst : kernel::HardwareCpu {
  void on_reserve(const kernel::perf_buffer& rb, __u64, std::size_t) {
    for (kernel::perf_event* const event : rb.event_list) kernel::perf_pending_irq(*event);
  }
  void irq_work_queue(kernel::perf_event&) {}
};

// No C: records may be read before data_head.
struct NoAcquireFence : DefaultMemory {
  static void fence_after_read_of(const SharedPosition&) noexcept {}
};

// No D: records may be read after data_tail was written.
struct NoFullFence : DefaultMemory {
  static void fence_before_write_of(const SharedPosition&) noexcept {}
};

// data_tail is committed, with every fence, as soon as data_head is known.
struct CommitsFirst : DefaultMemory {
  static void fence_after_read_of(const SharedPosition& data_head) noexcept {
    DefaultMemory::fence_after_read_of(data_head);
    // The two are neighbours in the control page.
    static_assert(offsetof(perf_event_mmap_page, data_tail) ==
                  offsetof(perf_event_mmap_page, data_head) + sizeof(SharedPosition));
    auto& data_tail = const_cast<SharedPosition&>(*(&data_head + 1));
    DefaultMemory::fence_before_write_of(data_tail);
    DefaultMemory::write_once(data_tail, __atomic_load_n(&data_head, __ATOMIC_RELAXED));
  }
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_FAULTS_H_
