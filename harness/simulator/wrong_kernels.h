#ifndef HARNESS_SIMULATOR_WRONG_KERNELS_H_
#define HARNESS_SIMULATOR_WRONG_KERNELS_H_

// Each is a SimulatedCpu with one thing wrong.

#include <linux/types.h>

#include <cstddef>

#include "harness/simulator/simulated_cpu.h"

namespace perfring::simulator {

struct PublishesBeforeWriting : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  void reserved(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    SimulatedCpu::reserved(rb, position, size);
    write_once(rb.user_page->data_head, rb.head);
  }
};

struct PublishesNested : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  void reserved(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    SimulatedCpu::reserved(rb, position, size);
    nested = rb.nest > 1 ? &rb : nullptr;
  }
  void step() {
    SimulatedCpu::step();
    if (nested == nullptr || nested->nest > 1) return;
    write_once(nested->user_page->data_head, nested->head);  // when the inner writer has ended
    nested = nullptr;
  }
  const kernel::perf_buffer* nested = nullptr;
};

struct CountsLossesTwice : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  void lost(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    SimulatedCpu::lost(rb, event);
    ++rb.lost;
  }
};

struct ForgetsLosses : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  void lost(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    SimulatedCpu::lost(rb, event);
    rb.lost = 0;
  }
};

// Not of an empty ring, which would look full for ever.
struct SpaceOffBy8 : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  __u64 read_once(const __u64& data_tail) {
    const __u64 tail = SimulatedCpu::read_once(data_tail);
    return tail == site.rb().head ? tail : tail + 8;
  }
};

// Takes for read what is published.
struct IgnoresTail : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  __u64 read_once(const __u64&) { return SimulatedCpu::read_once(site.page().data_head); }
};

struct LeavesOutAWord : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  void copy(std::byte* to, const void* from, std::size_t size) {
    SimulatedCpu::copy(to, from, size > 16 ? size - 8 : size);
  }
};

struct WakesNobody : SimulatedCpu {
  using SimulatedCpu::SimulatedCpu;
  void irq_work_queue(const kernel::perf_event&) {}
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_WRONG_KERNELS_H_
