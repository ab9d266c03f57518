#ifndef HARNESS_SIMULATOR_SIMULATED_CPU_H_
#define HARNESS_SIMULATOR_SIMULATED_CPU_H_

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "harness/kernel/cpu.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/rig/ledger_cpu.h"
#include "harness/simulator/site.h"

namespace perfring::simulator {

// The work of an interrupt.
class Interrupts {
 public:
  virtual void interrupt() = 0;

 protected:
  ~Interrupts() = default;
};

// The processor of a Site. Others run, or an interrupt comes, between any two of its steps; and a
// store is of 8 bytes at the most. A faulty one is derived from it.
struct SimulatedCpu : rig::LedgerCpu<> {
  SimulatedCpu(Site& of, Interrupts& by)
      : LedgerCpu{of.ledger()}, site{of}, scheduler{of.world().scheduler}, interrupts{by} {
    id = of.cpu();
  }

  Site& site;
  Scheduler& scheduler;
  Interrupts& interrupts;

  void step() {
    if (scheduler.step()) [[unlikely]]
      interrupts.interrupt();
  }
  __u64 clock() const { return scheduler.now(); }

  void copy(std::byte* to, const void* from, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    const std::size_t first = std::min(-reinterpret_cast<std::uintptr_t>(to) % 8, size);
    if (first != 0) {
      store_part(to, bytes, first);
      to += first;
      bytes += first;
      size -= first;
      step();
    }
    for (; size >= 8; size -= 8) {
      std::memcpy(to, bytes, 8);
      to += 8;
      bytes += 8;
      step();
    }
    store_part(to, bytes, size);
  }

  // Barriers order nothing here: there is one thread, and its stores are seen in their order.
  void control_dependency(const __u64&) {}
  void smp_wmb(const __u64&) {}

  void write_once(__u64& data_head, __u64 value) {
    LedgerCpu::write_once(data_head, value);
    site.published();
  }

  void irq_work_queue(kernel::perf_event&) { site.irq_work_queue(); }

  void on_reserve(const kernel::perf_buffer&, __u64 position, std::size_t size) {
    site.reserved(position, size);
  }

 private:
  // Less than 8 bytes. Most often it is 4 of them or none, for which memcpy() is not worth a call.
  static void store_part(std::byte* to, const std::byte* from, std::size_t size) {
    if (size == 4) {
      std::memcpy(to, from, 4);
    } else if (size != 0) {
      std::memcpy(to, from, size);
    }
  }
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SIMULATED_CPU_H_
